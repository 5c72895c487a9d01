//! `hcclrank`: every pod's rank as an annotation, for Ascend's collective communication.

use krafla_api::volcano::TaskSpec;
use serde_json::{Value, json};

use super::arguments::{Flag, Flags};
use super::{JobView, Plugin, edit};

const RANK_INDEX: &str = "hccl/rankIndex";

pub(super) struct HcclRank {
    master: String,
    worker: String,
}

impl Default for HcclRank {
    fn default() -> HcclRank {
        HcclRank { master: "master".to_owned(), worker: "worker".to_owned() }
    }
}

impl Plugin for HcclRank {
    fn name(&self) -> &'static str {
        "hcclrank"
    }

    fn flags(&mut self) -> Flags<'_> {
        vec![("master", Flag::Text(&mut self.master)), ("worker", Flag::Text(&mut self.worker))]
    }

    /// The user's own annotation goes first, then a `RANK` that is set in a container, then the pod's place in the job.
    fn decorate(&self, job: &JobView<'_>, task: &TaskSpec, index: i32, pod: &mut Value) {
        let annotations = pod.pointer("/metadata/annotations");
        let annotation = annotations.and_then(|all| all.get(RANK_INDEX)).and_then(Value::as_str);
        if annotation.is_some_and(|rank| !rank.is_empty()) {
            return;
        }
        let rank = rank_variable(pod)
            .or_else(|| job.rank(&self.master, &self.worker, task, index).map(|rank| rank.to_string()));
        let (Some(rank), Some(metadata)) = (rank, pod.get_mut("metadata").and_then(Value::as_object_mut))
        else {
            return;
        };
        let annotations = metadata.entry("annotations").or_insert(Value::Null);
        if annotations.is_null() {
            *annotations = json!({});
        }
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(RANK_INDEX.to_owned(), rank.into());
        }
    }

    /// It makes nothing that would have to be removed.
    fn is_controlled_resource(&self) -> bool {
        false
    }
}

/// The first `RANK` of the regular containers, if its value is plain to see.
fn rank_variable(pod: &mut Value) -> Option<String> {
    let variables = edit::containers(pod).filter_map(|container| container.get("env")?.as_array()).flatten();
    let mut ranks = variables.filter(|variable| variable.get("name").and_then(Value::as_str) == Some("RANK"));
    let rank = ranks.next()?.get("value")?.as_str()?;
    (!rank.is_empty()).then(|| rank.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::tests::fixture::check;
    use expect_test::expect;

    #[test]
    fn masters_come_before_workers_and_others_have_no_rank() {
        check(
            "plugin hcclrank
             task master replicas=2
             task worker replicas=2
             task other",
            expect![[r#"
                pod a-master-0
                  annotation hccl/rankIndex = "0"
                pod a-master-1
                  annotation hccl/rankIndex = "1"
                pod a-worker-0
                  annotation hccl/rankIndex = "2"
                pod a-worker-1
                  annotation hccl/rankIndex = "3"
                pod a-other-0
            "#]],
        );
    }

    #[test]
    fn without_masters_the_workers_ranks_begin_with_0() {
        for masters in ["task master replicas=0", ""] {
            check(
                &format!("plugin hcclrank\n task worker replicas=2\n {masters}"),
                expect![[r#"
                    pod a-worker-0
                      annotation hccl/rankIndex = "0"
                    pod a-worker-1
                      annotation hccl/rankIndex = "1"
                "#]],
            );
        }
    }

    #[test]
    fn the_user_s_rank_goes_first() {
        check(
            "plugin hcclrank --worker=work
             task work annotation=hccl/rankIndex:9 env=RANK:5
             task empty annotation=hccl/rankIndex: env=RANK:6",
            expect![[r#"
                pod a-work-0
                  annotation hccl/rankIndex = "9"
                  main env RANK=5
                pod a-empty-0
                  annotation hccl/rankIndex = "6"
                  main env RANK=6
            "#]],
        );
    }

    #[test]
    fn of_several_ranks_the_first_counts_if_its_value_is_plain_to_see() {
        let of = |containers: Value| rank_variable(&mut json!({ "spec": { "containers": containers } }));
        let rank = |env: Value| of(json!([{}, { "env": env }]));
        let (five, six) = (json!({ "name": "RANK", "value": "5" }), json!({ "name": "RANK", "value": "6" }));
        let hidden = json!({ "name": "RANK", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } });
        assert_eq!(rank(json!([five, six])).as_deref(), Some("5"));
        assert_eq!(of(json!([{ "env": [six] }, { "env": [five] }])).as_deref(), Some("6"));
        assert_eq!(rank(json!([hidden, six])), None);
        assert_eq!(rank(json!([])), None);
    }

    #[test]
    fn volcano_b30_pytorch_s_rank_is_seen() {
        check(
            "plugin hcclrank --master=x --worker=y
             plugin pytorch
             task master
             task worker",
            expect![[r#"
                pod a-master-0
                  annotation hccl/rankIndex = "0"
                  main env MASTER_ADDR=a-master-0.a
                  main env MASTER_PORT=23456
                  main env WORLD_SIZE=2
                  main env RANK=0
                  main port "pytorchjob-port" 23456
                pod a-worker-0
                  annotation hccl/rankIndex = "1"
                  main env MASTER_ADDR=a-master-0.a
                  main env MASTER_PORT=23456
                  main env WORLD_SIZE=2
                  main env RANK=1
                  main port "pytorchjob-port" 23456
            "#]],
        );
    }
}
