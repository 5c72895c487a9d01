//! Which controllers run: `--controllers`. Pure.

use anyhow::{Result, bail};
use krafla_plan::Controller;

/// Controllers that every Kubernetes cluster runs by itself: two for one job would fight.
const OF_KUBERNETES: [&str; 4] = [
    "kubernetes-job-controller",
    "job-pod-release-controller",
    "kubernetes-cronjob-controller",
    "ttl-after-finished-controller",
];
/// Volcano's controllers that are not here. To leave them out is what happens anyway.
const NOT_HERE: [&str; 3] = ["hyperNode-controller", "sharding-controller", "colocation-config-controller"];

/// The controllers that a list selects: the first entry that names one decides, and otherwise `*` does. A list that only
/// leaves out means all others. What other flags imply runs unless it is left out by name.
pub(super) fn select(
    controllers: Vec<Box<dyn Controller>>,
    list: &[String],
    implied: &[&str],
) -> Result<Vec<Box<dyn Controller>>> {
    let entries: Vec<&str> =
        list.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()).collect();
    check(&controllers, &entries)?;
    let has_all = entries.contains(&"*") || entries.iter().all(|entry| entry.starts_with('-'));
    let is_selected = |name: &str| {
        let named = entries.iter().find(|entry| entry.trim_start_matches(['+', '-']) == name);
        let unnamed = implied.contains(&name) || (has_all && !OF_KUBERNETES.contains(&name));
        named.map_or(unnamed, |entry| !entry.starts_with('-'))
    };
    let selected: Vec<_> =
        controllers.into_iter().filter(|controller| is_selected(controller.name())).collect();
    if selected.is_empty() {
        bail!("--controllers excludes all controllers");
    }
    Ok(selected)
}

fn check(controllers: &[Box<dyn Controller>], entries: &[&str]) -> Result<()> {
    for entry in entries.iter().filter(|entry| **entry != "*") {
        let name = entry.trim_start_matches(['+', '-']);
        let is_here = controllers.iter().any(|controller| controller.name() == name);
        let is_left_out_anyway = NOT_HERE.contains(&name) && entry.starts_with('-');
        if !is_here && !is_left_out_anyway {
            let names: Vec<&str> = controllers.iter().map(|controller| controller.name()).collect();
            bail!("--controllers: unknown controller {name:?}; known are {}", names.join(", "));
        }
        if entries.iter().filter(|other| other.trim_start_matches(['+', '-']) == name).count() > 1 {
            bail!("--controllers: {name:?} is given more than once");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(list: &str, expected: Expect) {
        let list: Vec<String> = list.split(',').map(str::to_owned).collect();
        let shown = match select(krafla_plan::controllers(), &list, &[]) {
            Ok(selected) => selected.iter().map(|controller| controller.name()).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn kubernetes_own_controllers_run_only_if_they_are_named() {
        check(
            "*",
            expect![
                "job-controller jobflow-controller jobtemplate-controller queue-controller cronjob-controller pg-controller gc-controller"
            ],
        );
        check(
            "*,kubernetes-cronjob-controller",
            expect![
                "job-controller jobflow-controller jobtemplate-controller queue-controller cronjob-controller pg-controller gc-controller kubernetes-cronjob-controller"
            ],
        );
        check("+job-controller", expect!["job-controller"]);
    }

    #[test]
    fn what_another_flag_implies_runs_unless_it_is_left_out_by_name() {
        let names = |list: &str| {
            let list: Vec<String> = list.split(',').map(str::to_owned).collect();
            let implied = ["kubernetes-job-controller", "job-pod-release-controller"];
            let selected = select(krafla_plan::controllers(), &list, &implied).unwrap();
            selected.iter().map(|controller| controller.name()).collect::<Vec<_>>().join(" ")
        };
        let both = "kubernetes-job-controller job-pod-release-controller";
        assert!(names("*").contains(both));
        assert_eq!(names("job-controller"), format!("job-controller {both}"));
        assert_eq!(
            names("job-controller,-job-pod-release-controller"),
            "job-controller kubernetes-job-controller"
        );
    }

    #[test]
    fn volcano_48_leaving_out_means_all_others() {
        check(
            "*, -job-controller,-sharding-controller",
            expect![
                "jobflow-controller jobtemplate-controller queue-controller cronjob-controller pg-controller gc-controller"
            ],
        );
        check(
            "-job-controller",
            expect![
                "jobflow-controller jobtemplate-controller queue-controller cronjob-controller pg-controller gc-controller"
            ],
        );
    }

    #[test]
    fn volcano_48_what_can_not_be_meant_is_refused() {
        check(
            "*,job-controler",
            expect![[
                r#"--controllers: unknown controller "job-controler"; known are job-controller, jobflow-controller, jobtemplate-controller, queue-controller, cronjob-controller, pg-controller, gc-controller, kubernetes-job-controller, job-pod-release-controller, ttl-after-finished-controller, kubernetes-cronjob-controller"#
            ]],
        );
        check(
            "sharding-controller",
            expect![[
                r#"--controllers: unknown controller "sharding-controller"; known are job-controller, jobflow-controller, jobtemplate-controller, queue-controller, cronjob-controller, pg-controller, gc-controller, kubernetes-job-controller, job-pod-release-controller, ttl-after-finished-controller, kubernetes-cronjob-controller"#
            ]],
        );
        check(
            "job-controller,-job-controller",
            expect![[r#"--controllers: "job-controller" is given more than once"#]],
        );
    }
}
