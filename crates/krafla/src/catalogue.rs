//! What manifests are: a kind that the cluster serves, or that a CustomResourceDefinition beside them will make it serve.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow, bail, ensure};
use krafla_api::{Key, Kind, Scope, Served};
use krafla_apiserver::registry::{Registry, Resource, custom};
use krafla_schema::spelling::{Unknown, closest, unknown_fields, wrong_types};
use serde_json::{Map, Value};

use crate::home::{Home, plainly};
use crate::manifest::{Document, none_of};
use crate::progress::FOLLOWED;
use crate::run::BadInput;

/// One object that a cluster can be given.
pub(crate) struct Manifest {
    /// File and document, for messages.
    pub(crate) place: String,
    pub(crate) of: Served,
    pub(crate) object: Value,
}

impl Manifest {
    /// The kind, if a run waits for its end. A pod that is started again whenever it ends is there for the others.
    pub(crate) fn followed(&self) -> Option<Kind> {
        let kind = self.of.known().filter(|kind| FOLLOWED.contains(kind))?;
        let ends = || ["Never", "OnFailure"].contains(&self.text("/spec/restartPolicy"));
        (kind != Kind::Pod || ends()).then_some(kind)
    }

    /// A field of text.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Where it is, or will be.
    pub(crate) fn key(&self) -> Key {
        Key::new(self.text("/metadata/namespace"), self.text("/metadata/name"))
    }

    /// Whether something runs as soon as it is made.
    pub(crate) fn runs(&self) -> bool {
        self.of.known() == Some(Kind::Pod) || is_workload(&self.of) || self.followed().is_some()
    }

    /// What others stand on comes first, and jobs last: they find everything that they need, wherever it was written.
    fn rank(&self) -> u8 {
        match self.of.known() {
            Some(Kind::Namespace | Kind::CustomResourceDefinition) => 0,
            _ if self.followed().is_some() => 3,
            _ if self.runs() => 2,
            _ => 1,
        }
    }
}

/// Whether somebody makes pods of it, without end.
pub(crate) fn is_workload(of: &Served) -> bool {
    let kinds = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"];
    ["", "apps"].contains(&&*of.group) && kinds.contains(&&*of.kind)
}

/// Finds out what all documents are, and brings them in an order in which they can be made. Nothing is made if one of them
/// is of no kind. What names no namespace is meant to be in that of `home`.
pub(crate) async fn identify(home: &Home, documents: Vec<Document>) -> Result<Vec<Manifest>> {
    let (served, defined) = (Vec::new(), definitions(&documents));
    let mut catalogue = Catalogue { served, defined, knows_all_fields: home.is_krafla };
    let versions: BTreeSet<&str> = documents.iter().map(|document| &*document.api_version).collect();
    for version in versions {
        let served = home.manifests.served(version).await;
        let unheard = |error| anyhow!("cannot read the discovery of the cluster: {}", plainly(&error));
        catalogue.served.extend(served.map_err(unheard)?);
    }
    Ok(catalogue.identify_all(documents, &home.namespace).map_err(BadInput)?)
}

/// What the definitions among the documents will have the cluster serve.
fn definitions(documents: &[Document]) -> Vec<Resource> {
    let is_definition = |document: &&Document| {
        Kind::of_manifest(&document.api_version, &document.kind) == Some(Kind::CustomResourceDefinition)
    };
    documents.iter().filter(is_definition).flat_map(|document| custom::resources(&document.object)).collect()
}

/// The kinds that there are, or will be.
struct Catalogue {
    served: Vec<Served>,
    defined: Vec<Resource>,
    /// Whether a field of a served kind that is not known here is one that there is not. Another cluster may be newer than
    /// this program: what it does not know, it refuses itself.
    knows_all_fields: bool,
}

impl Catalogue {
    fn identify_all(&self, documents: Vec<Document>, namespace: &str) -> Result<Vec<Manifest>> {
        let mut manifests: Vec<Manifest> = Vec::new();
        let mut mistakes = Vec::new();
        for document in documents {
            match self.identify(document, namespace) {
                Ok(manifest) => manifests.push(manifest),
                Err(error) => mistakes.push(format!("{error:#}")),
            }
        }
        none_of(mistakes)?;
        refuse_doubles(&manifests)?;
        if !manifests.iter().any(|manifest| manifest.followed().is_some()) {
            bail!(
                "the files contain nothing to wait for: no Job, JobFlow or CronJob, and no Pod with restartPolicy Never or \
                 OnFailure; fix: add one, or use `krafla up` and kubectl"
            );
        }
        manifests.sort_by_key(Manifest::rank);
        Ok(manifests)
    }

    fn identify(&self, document: Document, namespace: &str) -> Result<Manifest> {
        let Document { place, api_version, kind, mut object } = document;
        let is_meant = |served: &Served| served.api_version() == api_version && served.kind == kind;
        let defined = self.defined.iter().find(|resource| is_meant(&Served::from(*resource)));
        let served = self.served.iter().find(|served| is_meant(served)).cloned();
        let Some(of) = served.or_else(|| defined.map(Served::from)) else {
            bail!("{place}: {}", self.unserved(&api_version, &kind));
        };
        let schema = defined.and_then(|resource| resource.custom.as_ref()).map(|custom| &*custom.compiled);
        if self.knows_all_fields || schema.is_some() {
            let (unknown, wrong) = (unknown_fields(&of, schema, &object), wrong_types(&of, &object));
            let namesake = namesake(&of, &unknown, &object);
            let unknown = unknown.iter().map(ToString::to_string);
            let mistakes: Vec<String> =
                unknown.chain(wrong.iter().map(ToString::to_string)).chain(namesake).collect();
            ensure!(mistakes.is_empty(), "{place}: {}", mistakes.join("; "));
        }
        if let (Scope::Namespaced, Some(fields)) = (of.scope, object.as_object_mut()) {
            let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.entry("namespace").or_insert_with(|| namespace.into());
            }
        }
        Ok(Manifest { place, of, object })
    }

    /// That there is no such kind, and which one was probably meant: misspelt, or of another group.
    fn unserved(&self, api_version: &str, kind: &str) -> String {
        let known = Kind::of_manifest(api_version, kind);
        if known.is_some_and(|kind| Kind::VOLCANO.contains(&kind)) {
            let remedy =
                "Volcano's kinds are installed with `krafla crds | kubectl apply --server-side -f -`";
            return format!("the cluster does not serve {api_version} {kind}; {remedy}");
        }
        // Where two kinds have one name, it is Volcano's that people run here, so those that have names here come first.
        let named = Kind::ALL.into_iter().map(Served::from);
        let builtin = Registry::builtin().table();
        let others = builtin.resources().filter(|resource| resource.is_kept());
        let defined = self.defined.iter().map(Served::from);
        let all: Vec<Served> =
            named.chain(defined).chain(others.map(|resource| Served::from(&**resource))).collect();
        let meant = closest(kind, all.iter().map(|served| &*served.kind));
        let of_that_name = || all.iter().filter(|served| Some(&*served.kind) == meant);
        let remedy = of_that_name()
            .find(|served| served.api_version() == api_version)
            .or_else(|| of_that_name().next())
            .filter(|served| served.api_version() != api_version || served.kind != kind)
            .map_or_else(
                || "add the CustomResourceDefinition that defines it to the files, or correct apiVersion and kind".to_owned(),
                |served| format!("did you mean `apiVersion: {}` and `kind: {}`?", served.api_version(), served.kind),
            );
        format!("the cluster does not serve {api_version} {kind}; {remedy}")
    }
}

/// That a kind of the same name in another group has fields which this one has not: Volcano and Kubernetes both have a Job.
fn namesake(of: &Served, unknown: &[Unknown], object: &Value) -> Option<String> {
    let is_namesake = |other: &Served| other.kind == of.kind && other.group != of.group;
    let other = Kind::ALL.into_iter().map(Served::from).find(is_namesake)?;
    let still_unknown = unknown_fields(&other, None, object);
    // What is below a field that it does not have either is not its own.
    let is_in = |field: &str, outer: &str| {
        field.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let has = |field: &&Unknown| !still_unknown.iter().any(|it| is_in(&field.path, &it.path));
    let fields: Vec<&str> = unknown.iter().filter(has).map(|field| &*field.path).collect();
    let (version, kind) = (other.api_version(), &other.kind);
    let whose = if version.contains("volcano") { "Volcano's" } else { "Kubernetes' own" };
    let fields = (!fields.is_empty()).then(|| fields.join(", "))?;
    Some(format!("{whose} {kind} has {fields}: did you mean `apiVersion: {version}`?"))
}

/// Of two objects with one name, the second would be taken for a change of the first, and nobody means that.
fn refuse_doubles(manifests: &[Manifest]) -> Result<()> {
    let mut places: BTreeMap<[&str; 4], &str> = BTreeMap::new();
    for manifest in manifests {
        let (namespace, name) = (manifest.text("/metadata/namespace"), manifest.text("/metadata/name"));
        let whose = [&*manifest.of.group, &*manifest.of.plural, namespace, name];
        // What has no name yet gets one of its own.
        let earlier = if name.is_empty() { None } else { places.insert(whose, &manifest.place) };
        if let Some(earlier) = earlier {
            let (place, kind) = (&manifest.place, &manifest.of.kind);
            bail!("{place}: metadata.name: {kind} {name} is already in {earlier}: rename one of them");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    const JOB: &str = "{apiVersion: batch/v1, kind: Job, metadata: {name: j}}";
    const WIDGETS: &str = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, \
        spec: {group: example.com, scope: Namespaced, names: {plural: widgets, kind: Widget}, versions: \
        [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}}]}}";

    fn documents(texts: &[&str]) -> Vec<Document> {
        let document = |(index, text): (usize, &&str)| {
            let object = krafla_schema::yaml::parse(text.as_bytes()).unwrap().into_value();
            let field = |name: &str| object[name].as_str().unwrap().to_owned();
            let (api_version, kind) = (field("apiVersion"), field("kind"));
            Document { place: format!("document {}", index + 1), api_version, kind, object }
        };
        texts.iter().enumerate().map(document).collect()
    }

    /// What an embedded server makes of documents.
    fn identified(texts: &[&str]) -> Result<Vec<Manifest>> {
        let documents = documents(texts);
        let builtin = Registry::builtin().table();
        let builtin = builtin.resources().filter(|resource| resource.is_kept());
        let served = builtin.map(|resource| Served::from(&**resource));
        let served = served.chain(Kind::VOLCANO.map(Served::from)).collect();
        let catalogue = Catalogue { served, defined: definitions(&documents), knows_all_fields: true };
        catalogue.identify_all(documents, "here")
    }

    /// What is known of another cluster, which serves these.
    fn elsewhere(served: Vec<Served>) -> Catalogue {
        Catalogue { served, defined: Vec::new(), knows_all_fields: false }
    }

    fn check(texts: &[&str], expected: Expect) {
        let said = identified(texts).err().map(|error| error.to_string()).unwrap_or_default();
        expected.assert_eq(&said);
    }

    #[test]
    fn every_kind_that_is_served_is_taken_and_those_that_definitions_beside_it_make() {
        let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}}";
        let widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, size: 1}";
        let space = "{apiVersion: v1, kind: Namespace, metadata: {name: ns}}";
        let manifests = identified(&[JOB, widget, role, WIDGETS, space]).unwrap();
        let names: Vec<String> = manifests
            .iter()
            .map(|manifest| {
                let (singular, namespace) = (&manifest.of.singular, manifest.text("/metadata/namespace"));
                format!("{singular}/{} in '{namespace}'", manifest.text("/metadata/name"))
            })
            .collect();
        assert_eq!(
            names,
            [
                "customresourcedefinition/widgets.example.com in ''",
                "namespace/ns in ''",
                "widget/w in 'here'",
                "role/r in 'here'",
                "job/j in 'here'"
            ]
        );
    }

    #[test]
    fn a_kind_that_nobody_serves_is_refused_with_the_one_that_was_meant() {
        check(
            &[JOB, "{apiVersion: batch/v1alpha1, kind: job}"],
            expect![
                "document 2: the cluster does not serve batch/v1alpha1 job; did you mean `apiVersion: batch.volcano.sh/v1alpha1` and `kind: Job`?"
            ],
        );
        check(
            &["{apiVersion: batch/v1, kind: Jobb}"],
            expect![
                "document 1: the cluster does not serve batch/v1 Jobb; did you mean `apiVersion: batch/v1` and `kind: Job`?"
            ],
        );
        check(
            &["{apiVersion: extensions/v1beta1, kind: Deployment}"],
            expect![
                "document 1: the cluster does not serve extensions/v1beta1 Deployment; did you mean `apiVersion: apps/v1` and `kind: Deployment`?"
            ],
        );
        check(
            &[WIDGETS, "{apiVersion: example.com/v2, kind: Widget}"],
            expect![
                "document 2: the cluster does not serve example.com/v2 Widget; did you mean `apiVersion: example.com/v1` and `kind: Widget`?"
            ],
        );
        check(
            &["{apiVersion: v1, kind: Sparkle}"],
            expect![
                "document 1: the cluster does not serve v1 Sparkle; add the CustomResourceDefinition that defines it to the files, or correct apiVersion and kind"
            ],
        );
        // One that can only be asked, not kept.
        check(
            &["{apiVersion: authentication.k8s.io/v1, kind: TokenReview}"],
            expect![
                "document 1: the cluster does not serve authentication.k8s.io/v1 TokenReview; add the CustomResourceDefinition that defines it to the files, or correct apiVersion and kind"
            ],
        );
    }

    #[test]
    fn a_cluster_without_volcanos_kinds_is_told_how_to_get_them() {
        let catalogue = elsewhere(vec![Kind::Job.into()]);
        let job = documents(&["{apiVersion: batch.volcano.sh/v1alpha1, kind: Job}"]);
        let said = catalogue.identify_all(job, "here").err().unwrap().to_string();
        expect!["document 1: the cluster does not serve batch.volcano.sh/v1alpha1 Job; Volcano's kinds are installed with `krafla crds | kubectl apply --server-side -f -`"].assert_eq(&said);
    }

    #[test]
    fn a_misspelt_field_is_found_in_every_kind() {
        check(
            &["{apiVersion: v1, kind: Pod, metadata: {nmae: a}, spec: {containers: [{comand: [a]}]}}"],
            expect![
                "document 1: unknown field metadata.nmae, did you mean name?; unknown field spec.containers[0].comand, did you mean command?"
            ],
        );
        check(
            &["{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rule: []}"],
            expect!["document 1: unknown field rule, did you mean rules?"],
        );
        check(
            &[WIDGETS, "{apiVersion: example.com/v1, kind: Widget, sise: 1}"],
            expect!["document 2: unknown field sise, did you mean size?"],
        );
    }

    #[test]
    fn a_job_with_the_fields_of_the_other_job_is_told_which_one_that_is() {
        check(
            &["{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {minAvailable: 1, tasks: []}}"],
            expect![
                "document 1: unknown field spec.minAvailable; unknown field spec.tasks; Volcano's Job has spec.minAvailable, spec.tasks: did you mean `apiVersion: batch.volcano.sh/v1alpha1`?"
            ],
        );
        check(
            &[
                "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j}, spec: {completions: 1, template: {}}}",
            ],
            expect![
                "document 1: unknown field spec.completions; unknown field spec.template; Kubernetes' own Job has spec.completions, spec.template: did you mean `apiVersion: batch/v1`?"
            ],
        );
        check(
            &[
                "{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {jobTemplate: {spec: {queue: q}}}}",
            ],
            expect![
                "document 1: unknown field spec.jobTemplate.spec.queue; Volcano's CronJob has spec.jobTemplate.spec.queue: did you mean `apiVersion: batch.volcano.sh/v1alpha1`?"
            ],
        );
        // It is no field of either.
        check(
            &[
                "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j}, spec: {policies: {event: X}}}",
            ],
            expect![
                "document 1: unknown field spec.policies.event; spec.policies: it must be a list: `[a, b]`, or a line that begins with `-` for each"
            ],
        );
        check(
            &["{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {task: []}}"],
            expect!["document 1: unknown field spec.task"],
        );
    }

    #[test]
    fn a_field_that_another_cluster_may_know_is_left_to_it() {
        let newer = documents(&["{apiVersion: batch/v1, kind: Job, spec: {newerThanThis: 1}}"]);
        let manifests = elsewhere(vec![Kind::Job.into()]).identify_all(newer, "here").unwrap();
        assert_eq!(manifests[0].object["spec"], json!({ "newerThanThis": 1 }));
        // What a definition in the files says of its fields, is known.
        let mut catalogue = elsewhere(vec![Kind::Job.into(), Kind::CustomResourceDefinition.into()]);
        let widgets = documents(&[WIDGETS, "{apiVersion: example.com/v1, kind: Widget, sise: 1}"]);
        catalogue.defined = definitions(&widgets);
        let said = catalogue.identify_all(widgets, "here").err().unwrap().to_string();
        assert_eq!(said, "document 2: unknown field sise, did you mean size?");
    }

    #[test]
    fn two_objects_of_one_name_are_refused_unless_they_are_of_two_kinds() {
        let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: j}}";
        check(
            &[JOB, map, map],
            expect!["document 3: metadata.name: ConfigMap j is already in document 2: rename one of them"],
        );
        check(&[JOB, "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j}}"], expect![""]);
        check(
            &[map],
            expect![
                "the files contain nothing to wait for: no Job, JobFlow or CronJob, and no Pod with restartPolicy Never or OnFailure; fix: add one, or use `krafla up` and kubectl"
            ],
        );
    }

    #[test]
    fn what_has_no_metadata_gets_a_namespace_all_the_same() {
        let manifests = identified(&["{apiVersion: batch/v1, kind: Job}"]).unwrap();
        assert_eq!(manifests[0].object["metadata"], json!({ "namespace": "here" }));
    }
}
