//! `env`: every container knows the index of its pod within the task.

use krafla_api::volcano::TaskSpec;
use serde_json::Value;

use super::{JobView, Plugin, edit};

/// Takes no arguments.
#[derive(Default)]
pub(super) struct Env;

impl Plugin for Env {
    fn name(&self) -> &'static str {
        "env"
    }

    fn decorate(&self, _job: &JobView<'_>, _task: &TaskSpec, index: i32, pod: &mut Value) {
        let index = index.to_string();
        for container in edit::all_containers(pod) {
            // Two names for one thing: the first is what the variable was called before Volcano had its name.
            for name in ["VK_TASK_INDEX", "VC_TASK_INDEX"] {
                edit::add_env(container, name, &index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plugin::tests::fixture::check;
    use expect_test::expect;

    #[test]
    fn every_container_gets_its_index_after_the_user_s_variables() {
        check(
            "plugin env
             task work replicas=2 containers=main,side init=prep env=VC_TASK_INDEX:mine",
            expect![[r#"
                pod a-work-0
                  init prep env VK_TASK_INDEX=0
                  init prep env VC_TASK_INDEX=0
                  main env VC_TASK_INDEX=mine
                  main env VK_TASK_INDEX=0
                  main env VC_TASK_INDEX=0
                  side env VC_TASK_INDEX=mine
                  side env VK_TASK_INDEX=0
                  side env VC_TASK_INDEX=0
                pod a-work-1
                  init prep env VK_TASK_INDEX=1
                  init prep env VC_TASK_INDEX=1
                  main env VC_TASK_INDEX=mine
                  main env VK_TASK_INDEX=1
                  main env VC_TASK_INDEX=1
                  side env VC_TASK_INDEX=mine
                  side env VK_TASK_INDEX=1
                  side env VC_TASK_INDEX=1
            "#]],
        );
    }

    #[test]
    fn arguments_are_reported_and_ignored() {
        check(
            "plugin env --x
             task work",
            expect![[r#"
                Reported: plugin env: argument 1 names the unknown flag --x; it and all after it are ignored
                pod a-work-0
                  main env VK_TASK_INDEX=0
                  main env VC_TASK_INDEX=0
            "#]],
        );
    }
}
