//! Status of JobTemplates: the jobs created from them.
//!
//! Mirrors Volcano's `pkg/controllers/jobtemplate`, whose list never shrinks.

use krafla_api::{Key, Kind, labels};
use krafla_cluster::Step;
use serde_json::json;

use crate::{Controller, Object, Objects, Plan, Snapshot};

/// The controller of JobTemplates.
pub struct JobTemplateController;

impl Controller for JobTemplateController {
    fn name(&self) -> &'static str {
        "jobtemplate-controller"
    }

    fn root(&self) -> Kind {
        Kind::JobTemplate
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::VcJob]
    }

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        if changed.kind == Kind::JobTemplate {
            return vec![changed.meta.key.clone()];
        }
        let Some(template) = origin(changed) else { return Vec::new() };
        // Most changes of a job say nothing new about where it came from.
        let is_there = objects.get(Kind::VcJob, &changed.meta.key).is_some();
        let body = objects.get(Kind::JobTemplate, &template).and_then(|object| object.as_jobtemplate());
        let listed = body.map_or(&[][..], |body| &body.status.job_depends_on_list);
        let is_listed = listed.iter().any(|name| **name == *changed.meta.key.name);
        if is_there == is_listed { Vec::new() } else { vec![template] }
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        let Some(root) = snapshot.root() else { return Plan::nothing() };
        let Some(template) = root.as_jobtemplate() else { return Plan::nothing() };
        let jobs = snapshot.objects.in_namespace(Kind::VcJob, &snapshot.key.namespace);
        let made = jobs.filter(|job| origin(job).as_ref() == Some(snapshot.key));
        let names: Vec<&str> = made.map(|job| job.meta.key.name.as_ref()).collect();
        if template.status.job_depends_on_list == names || root.meta.is_deleting() {
            return Plan::nothing();
        }
        let status = Step::Patch {
            kind: Kind::JobTemplate,
            key: snapshot.key.clone(),
            uid: root.meta.uid.clone(),
            revision: None,
            of_status: true,
            patch: json!({ "status": { "jobDependsOnList": names } }),
        };
        Plan { status: Some(status), status_may_wait: true, ..Plan::nothing() }
    }
}

/// The template that a job was made of: its label says `<namespace>.<name>`, or its annotation where that is too long for
/// a label. A namespace has no dot in its name, a template may.
fn origin(job: &Object) -> Option<Key> {
    let key = labels::CREATED_BY_JOB_TEMPLATE;
    let value = job.meta.labels.get(key).or_else(|| job.meta.annotations.get(key))?;
    let (namespace, name) = value.split_once('.')?;
    (namespace == &*job.meta.key.namespace).then(|| Key::new(namespace, name))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::{Expect, expect};
    use serde_json::Value;

    use super::*;

    fn world(listed: &[&str], jobs: &[(&str, &str)]) -> Objects {
        let mut objects = Objects::default();
        let mut insert = |kind, object: Value| {
            objects.insert(Arc::new(Object::decode(kind, object.to_string().as_bytes())));
        };
        let status = json!({ "jobDependsOnList": listed });
        insert(
            Kind::JobTemplate,
            json!({ "metadata": { "namespace": "ns", "name": "x.y", "uid": "t" }, "status": status }),
        );
        for (name, origin) in jobs {
            let labels = json!({ "volcano.sh/createdByJobTemplate": origin });
            insert(Kind::VcJob, json!({ "metadata": { "namespace": "ns", "name": name, "labels": labels } }));
        }
        objects
    }

    fn check(listed: &[&str], jobs: &[(&str, &str)], expected: Expect) {
        let objects = world(listed, jobs);
        let key = Key::new("ns", "x.y");
        let now = krafla_api::Time::from_seconds(0);
        let plan = JobTemplateController.plan(&Snapshot::new(Kind::JobTemplate, &key, now, &objects));
        expected.assert_eq(&plan.to_string());
    }

    #[test]
    fn the_jobs_of_a_template_are_listed_in_order() {
        check(
            &[],
            &[("b", "ns.x.y"), ("a", "ns.x.y"), ("c", "ns.other")],
            expect![[r#"
            patch jobtemplate status x.y {"status":{"jobDependsOnList":["a","b"]}}
        "#]],
        );
        check(&["a"], &[("a", "ns.x.y")], expect![[""]]);
    }

    #[test]
    fn volcano_16_a_job_that_is_gone_leaves_the_list() {
        check(
            &["a", "b"],
            &[("b", "ns.x.y")],
            expect![[r#"
            patch jobtemplate status x.y {"status":{"jobDependsOnList":["b"]}}
        "#]],
        );
        check(
            &["a"],
            &[],
            expect![[r#"
            patch jobtemplate status x.y {"status":{"jobDependsOnList":[]}}
        "#]],
        );
    }

    #[test]
    fn a_template_is_looked_at_only_when_its_list_is_out_of_date() {
        let objects = world(&["a"], &[("a", "ns.x.y"), ("b", "ns.x.y"), ("c", "elsewhere.x.y")]);
        let keys = |name: &str| {
            let job = objects.get(Kind::VcJob, &Key::new("ns", name)).unwrap();
            JobTemplateController.keys(job, &objects)
        };
        assert_eq!(keys("a"), []);
        assert_eq!(keys("b"), [Key::new("ns", "x.y")]);
        assert_eq!(keys("c"), []);
        let template = objects.get(Kind::JobTemplate, &Key::new("ns", "x.y")).unwrap();
        assert_eq!(JobTemplateController.keys(template, &objects), [Key::new("ns", "x.y")]);
    }
}
