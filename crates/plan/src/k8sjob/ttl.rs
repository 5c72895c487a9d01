//! Removes Jobs that have been finished for long enough: `ttlSecondsAfterFinished`.
//!
//! Mirrors Kubernetes' `pkg/controller/ttlafterfinished`. Whoever manages a Job, this applies to it.

use krafla_api::{Key, Kind};

use crate::{Controller, Object, Objects, Plan, Snapshot, ttl};

/// The controller that removes finished Jobs.
pub struct TtlController;

impl Controller for TtlController {
    fn name(&self) -> &'static str {
        "ttl-after-finished-controller"
    }

    fn root(&self) -> Kind {
        Kind::Job
    }

    fn watches(&self) -> &'static [Kind] {
        &[]
    }

    fn keys(&self, changed: &Object, _objects: &Objects) -> Vec<Key> {
        vec![changed.meta.key.clone()]
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        let Some((root, job)) = snapshot.root().and_then(|root| Some((root, root.as_job()?))) else {
            return Plan::nothing();
        };
        match job.status.finished() {
            Some(end) => {
                ttl::plan(root, end.last_transition_time, job.spec.ttl_seconds_after_finished, snapshot.now)
            }
            None => Plan::nothing(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::{Expect, expect};
    use krafla_api::Time;
    use serde_json::{Value, json};

    use super::*;

    fn check(ttl: &Value, condition: &str, expected: &Expect) {
        let end =
            json!({ "type": condition, "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z" });
        let job = json!({
            "metadata": { "namespace": "n", "name": "a", "uid": "u", "resourceVersion": "5" },
            "spec": { "ttlSecondsAfterFinished": ttl, "managedBy": "acme.io/jobs" },
            "status": { "conditions": [end] },
        });
        let mut objects = Objects::default();
        objects.insert(Arc::new(Object::decode(Kind::Job, job.to_string().as_bytes())));
        let (key, now) = (Key::new("n", "a"), Time::from_seconds(1_800_000_010));
        expected.assert_eq(&TtlController.plan(&Snapshot::new(Kind::Job, &key, now, &objects)).to_string());
    }

    #[test]
    fn a_finished_job_goes_when_its_time_is_over() {
        check(
            &json!(10),
            "Complete",
            &expect![[r#"
            delete job a in the foreground
        "#]],
        );
        check(
            &json!(0),
            "Failed",
            &expect![[r#"
            delete job a in the foreground
        "#]],
        );
        check(
            &json!(15),
            "Complete",
            &expect![[r#"
            wake at 2027-01-15T08:00:15Z
        "#]],
        );
    }

    #[test]
    fn without_a_time_or_an_end_nothing_goes() {
        check(&json!(null), "Complete", &expect![""]);
        check(&json!(0), "SuccessCriteriaMet", &expect![""]);
    }
}
