//! Words that name kinds and objects on a command line: `jobs`, `vcjob/train`, `pods a b`.
//!
//! Kinds that Krafla knows have their names here. All others are looked up in the discovery of the cluster.

use krafla_api::{Kind, Scope, Served};
use krafla_client::Request;
use krafla_schema::spelling;
use serde::Deserialize;
use serde_json::Value;

use crate::connection::Connection;
use crate::failure::Failure;

/// Names besides the plural, the singular and the short names of a kind. `job` alone means both kinds of jobs.
const ALIASES: &[(&str, &[Kind])] = &[
    ("job", &[Kind::VcJob, Kind::Job]),
    ("jobs", &[Kind::VcJob, Kind::Job]),
    ("vcjobs", &[Kind::VcJob]),
    ("cronjob", &[Kind::VcCronJob, Kind::CronJob]),
    ("cronjobs", &[Kind::VcCronJob, Kind::CronJob]),
    ("cj", &[Kind::VcCronJob, Kind::CronJob]),
    ("vccronjob", &[Kind::VcCronJob]),
    ("vccronjobs", &[Kind::VcCronJob]),
    ("flow", &[Kind::JobFlow]),
    ("flows", &[Kind::JobFlow]),
    ("template", &[Kind::JobTemplate]),
    ("templates", &[Kind::JobTemplate]),
];

/// A word of a command line: a kind, perhaps with the name of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
}

/// What words name: `KIND[,KIND]`, `KIND NAME...`, or `KIND/NAME...`.
pub(crate) fn parse(words: &[String]) -> Result<Vec<Word>, Failure> {
    let Some((first, rest)) = words.split_first() else { return Ok(Vec::new()) };
    if words.iter().any(|word| word.contains('/')) {
        return words.iter().map(|word| parse_pair(word)).collect();
    }
    let kinds: Vec<&str> = first.split(',').collect();
    if kinds.iter().any(|kind| kind.is_empty()) {
        return Err(Failure::usage(format!("{first:?} is not a list of kinds such as jobs,pods")));
    }
    let named = |kind: &str, name: Option<&String>| Word { kind: kind.to_owned(), name: name.cloned() };
    if rest.is_empty() {
        return Ok(kinds.into_iter().map(|kind| named(kind, None)).collect());
    }
    for name in rest {
        check_name(name)?;
    }
    Ok(kinds.into_iter().flat_map(|kind| rest.iter().map(move |name| named(kind, Some(name)))).collect())
}

fn parse_pair(word: &str) -> Result<Word, Failure> {
    match word.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
            check_name(name)?;
            Ok(Word { kind: kind.to_owned(), name: Some(name.to_owned()) })
        }
        Some(_) => Err(Failure::usage(format!("{word:?} is not of the form KIND/NAME, such as job/train"))),
        None => Err(Failure::usage(format!(
            "{word:?}: name all objects as KIND/NAME, or write KIND NAME NAME: krafla get job a b"
        ))),
    }
}

/// Names end up in paths: they may not leave their place.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_wrong = name.is_empty() || name == "." || name == ".." || name.contains(['/', '%']);
    if is_wrong { Err(Failure::usage(format!("{name:?} is not the name of an object"))) } else { Ok(()) }
}

/// The kinds that a word means, as far as Krafla knows them.
pub(crate) fn known(word: &str) -> Option<Vec<Kind>> {
    let word = word.to_lowercase();
    if let Some((_, kinds)) = ALIASES.iter().find(|(alias, _)| *alias == word) {
        return Some(kinds.to_vec());
    }
    let is_meant = |kind: &Kind| {
        let info = kind.info();
        let is_of_group = |(name, group): (&str, &str)| {
            let versioned = format!("{}.{}", info.version, info.group);
            [info.plural, info.singular].contains(&name)
                && !info.group.is_empty()
                && (group == info.group || group == versioned)
        };
        [info.plural, info.singular].contains(&word.as_str())
            || info.short_names.contains(&word.as_str())
            || word.split_once('.').is_some_and(is_of_group)
    };
    Kind::ALL.into_iter().find(is_meant).map(|kind| vec![kind])
}

/// All names of kinds that Krafla knows, for completion and for remedies.
pub(crate) fn all_names() -> Vec<&'static str> {
    let own = Kind::ALL.into_iter().map(|kind| kind.info().plural);
    let mut names: Vec<&str> = own.chain(["vcjobs", "flows", "vccronjobs"]).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// How a kind is called in a list of several kinds: a word that names it on a command line.
pub(crate) fn word_of(served: &Served) -> String {
    match served.known() {
        Some(Kind::VcJob) => "vcjob".to_owned(),
        Some(Kind::VcCronJob) => "vccronjob".to_owned(),
        _ => served.singular.clone(),
    }
}

/// `job.batch/train`, as `kubectl get -o name` prints it.
pub(crate) fn qualified(served: &Served, name: &str) -> String {
    let group = if served.group.is_empty() { String::new() } else { format!(".{}", served.group) };
    format!("{}{group}/{name}", served.singular)
}

/// The kinds that a word means. One that Krafla does not know is looked up in the cluster.
pub(crate) async fn resolve(connection: &Connection, word: &str) -> Result<Vec<Served>, Failure> {
    if let Some(kinds) = known(word) {
        return Ok(kinds.into_iter().map(Served::from).collect());
    }
    let served = discover(connection).await?;
    if let Some(found) = find(&served, word) {
        return Ok(vec![found.served.clone()]);
    }
    let others = served.iter().map(|kind| kind.served.plural.as_str());
    let meant = spelling::closest(word, all_names().into_iter().chain(others));
    let fix = match meant {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("use one of: {}", all_names().join(", ")),
    };
    Err(Failure::NotFound(format!("the cluster has no kind {word:?}; {fix}")))
}

/// A kind as discovery describes it.
#[derive(Clone, Debug)]
pub(crate) struct Discovered {
    served: Served,
    short_names: Vec<String>,
}

fn find<'a>(kinds: &'a [Discovered], word: &str) -> Option<&'a Discovered> {
    let word = word.to_lowercase();
    let (name, group) =
        word.split_once('.').map_or((word.as_str(), None), |(name, group)| (name, Some(group)));
    let is_meant = |kind: &&Discovered| {
        let Discovered { served, short_names } = *kind;
        let versioned = format!("{}.{}", served.version, served.group);
        let is_of_group = group.is_none_or(|group| group == served.group || group == versioned);
        let is_named = served.plural == name || served.singular == name || served.kind.to_lowercase() == name;
        is_of_group && (is_named || short_names.iter().any(|short| short == name))
    };
    kinds.iter().find(is_meant)
}

/// All kinds that the cluster serves, in its preferred versions.
async fn discover(connection: &Connection) -> Result<Vec<Discovered>, Failure> {
    const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                              application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    let mut kinds = Vec::new();
    for root in ["/api", "/apis"] {
        let body = connection.read(&Request::get(root.to_owned()).accepting(AGGREGATED)).await?;
        kinds.extend(read_discovery(&body)?);
    }
    Ok(kinds)
}

/// Reads one document of discovery. Of several versions of a kind the first counts: the server prefers it.
fn read_discovery(body: &[u8]) -> Result<Vec<Discovered>, Failure> {
    #[derive(Deserialize)]
    struct Document {
        #[serde(default)]
        items: Vec<Group>,
    }
    #[derive(Deserialize)]
    struct Group {
        #[serde(default)]
        metadata: Value,
        #[serde(default)]
        versions: Vec<Version>,
    }
    #[derive(Deserialize)]
    struct Version {
        version: String,
        #[serde(default)]
        resources: Vec<Resource>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Resource {
        resource: String,
        response_kind: Value,
        scope: String,
        singular_resource: String,
        short_names: Vec<String>,
        verbs: Vec<String>,
    }
    let document: Document = serde_json::from_slice(body)
        .map_err(|error| Failure::Unreachable(format!("cannot read the list of kinds: {error}")))?;
    let mut kinds: Vec<Discovered> = Vec::new();
    for Group { metadata, versions } in document.items {
        let group = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
        for Version { version, resources } in versions {
            for resource in resources.into_iter().filter(|it| it.verbs.iter().any(|verb| verb == "list")) {
                let is_known =
                    |kind: &Discovered| kind.served.group == group && kind.served.plural == resource.resource;
                if kinds.iter().any(is_known) {
                    continue;
                }
                let kind = resource.response_kind.get("kind").and_then(Value::as_str).unwrap_or_default();
                let served = Served {
                    group: group.to_owned(),
                    version: version.clone(),
                    kind: kind.to_owned(),
                    plural: resource.resource,
                    singular: resource.singular_resource,
                    scope: if resource.scope == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
                };
                kinds.push(Discovered { served, short_names: resource.short_names });
            }
        }
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        match parse(&words) {
            Ok(found) => {
                let word = |word: &Word| format!("{} {}", word.kind, word.name.as_deref().unwrap_or("*"));
                found.iter().map(word).collect::<Vec<_>>().join(", ")
            }
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn objects_are_named_in_the_ways_of_kubectl() {
        assert_eq!(words(&[]), "");
        assert_eq!(words(&["jobs"]), "jobs *");
        assert_eq!(words(&["jobs,pods"]), "jobs *, pods *");
        assert_eq!(words(&["job", "a", "b"]), "job a, job b");
        assert_eq!(words(&["job/a", "pod/b"]), "job a, pod b");
        assert_eq!(
            words(&["job/a", "b"]),
            "\"b\": name all objects as KIND/NAME, or write KIND NAME NAME: krafla get job a b"
        );
        for wrong in ["job/", "/a", "job/a/b", "a/b/"] {
            assert!(words(&[wrong]).contains("is not of the form KIND/NAME"), "{wrong}");
        }
        for wrong in ["..", "a%2Fb", ""] {
            assert!(words(&["job", wrong]).contains("is not the name of an object"), "{wrong}");
        }
        assert!(words(&["jobs,,pods"]).contains("is not a list of kinds"));
    }

    #[test]
    fn a_kind_has_its_names_of_kubectl_and_jobs_means_both() {
        let known = |word: &str| {
            known(word).map(|kinds| kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(known("jobs").as_deref(), Some("jobs.batch.volcano.sh jobs.batch"));
        assert_eq!(known("jobs.batch").as_deref(), Some("jobs.batch"));
        assert_eq!(known("job.v1.batch").as_deref(), Some("jobs.batch"));
        for word in ["vcjob", "vcjobs", "vj", "VJ", "jobs.batch.volcano.sh", "job.v1alpha1.batch.volcano.sh"]
        {
            assert_eq!(known(word).as_deref(), Some("jobs.batch.volcano.sh"), "{word}");
        }
        assert_eq!(known("q").as_deref(), Some("queues.scheduling.volcano.sh"));
        assert_eq!(known("po").as_deref(), Some("pods"));
        assert_eq!(known("flows").as_deref(), Some("jobflows.flow.volcano.sh"));
        assert_eq!(known("deployments"), None, "it is asked for in the cluster");
        // Every kind is found by the word that a list shows.
        for kind in Kind::ALL {
            let word = word_of(&Served::from(kind));
            assert!(super::known(&word).unwrap().contains(&kind), "{word}");
        }
    }

    #[test]
    fn other_kinds_are_found_by_every_name_that_discovery_has() {
        let document = r#"{"items":[{"metadata":{"name":"apps"},"versions":[
            {"version":"v1","resources":[{"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced",
             "singularResource":"deployment","shortNames":["deploy"],"verbs":["list","get"]}]},
            {"version":"v1beta1","resources":[{"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced",
             "singularResource":"deployment","verbs":["list"]}]}]}]}"#;
        let kinds = read_discovery(document.as_bytes()).unwrap();
        for word in ["deployments", "Deployment", "deploy", "deployments.apps", "deployment.v1.apps"] {
            assert_eq!(find(&kinds, word).unwrap().served.version, "v1", "{word}");
        }
        assert!(find(&kinds, "deployments.batch").is_none());
        assert!(read_discovery(b"<html>").is_err());
    }
}
