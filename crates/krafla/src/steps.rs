//! A flow as it is shown on a terminal: a line for each step, further to the right the more come before it. Pure.

use std::collections::BTreeMap;

use krafla_api::volcano::JobPhase;
use krafla_plan::jobflow::{Flow, JobFlow};

use crate::room::State;

/// How many levels are told apart by where their lines begin.
const DEPTH_MAX: usize = 8;

/// A step as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepView {
    pub(crate) name: String,
    /// How many steps come one after the other before it.
    pub(crate) depth: usize,
    /// The phase of its job; before there is one, what keeps it from being made, if anything does.
    pub(crate) phase: Option<JobPhase>,
    /// The steps before it that have not completed.
    pub(crate) waits_for: Vec<String>,
}

impl StepView {
    pub(crate) fn state(&self) -> State {
        match &self.phase {
            Some(JobPhase::Completed) => State::Succeeded,
            Some(JobPhase::Failed | JobPhase::Terminated | JobPhase::Aborted) => State::Failed,
            Some(JobPhase::Running | JobPhase::Restarting | JobPhase::Completing) => State::Running,
            Some(_) => State::Pending,
            None => State::Waiting,
        }
    }

    /// The same signs as in the bars of tasks.
    fn cell(&self) -> char {
        match self.state() {
            State::Succeeded => '█',
            State::Failed => 'x',
            State::Running => '▒',
            State::Pending | State::Waiting => '░',
        }
    }
}

/// The steps of a flow, in the order of its spec.
pub(crate) fn steps(name: &str, flow: &JobFlow) -> Vec<StepView> {
    let depths = depths(&flow.spec.flows);
    let phase = |step: &str| phase(name, flow, step).cloned();
    let view = |step: &Flow| StepView {
        name: step.name.clone(),
        depth: depths.get(step.name.as_str()).copied().unwrap_or(0),
        phase: phase(&step.name),
        waits_for: step
            .targets()
            .filter(|target| phase(target) != Some(JobPhase::Completed))
            .map(str::to_owned)
            .collect(),
    };
    flow.spec.flows.iter().map(view).collect()
}

/// The phase of a step's job. Before there is a job, the flow's status has a word there for what keeps it from being made.
pub(crate) fn phase<'a>(name: &str, flow: &'a JobFlow, step: &str) -> Option<&'a JobPhase> {
    let job = format!("{name}-{step}");
    let recorded = flow.status.job_status_list.iter().find(|it| it.name == job).map(|it| &it.state);
    recorded.or_else(|| flow.status.conditions.get(&job).map(|condition| &condition.phase))
}

/// How many steps come before each, on the longest way to it.
fn depths(steps: &[Flow]) -> BTreeMap<&str, usize> {
    let mut depths: BTreeMap<&str, usize> = steps.iter().map(|step| (step.name.as_str(), 0)).collect();
    // One round is enough for steps in order, and a circle, which is refused, would need rounds for ever.
    for _ in 0..DEPTH_MAX {
        for step in steps {
            let before = step.targets().filter_map(|target| depths.get(target)).max();
            let depth = before.map_or(0, |depth| depth.saturating_add(1)).min(DEPTH_MAX);
            depths.insert(&step.name, depth);
        }
    }
    depths
}

/// `etl: Running, 2 of 5 jobs completed`
pub(crate) fn title(name: &str, phase: &str, steps: &[StepView]) -> String {
    let n_completed = steps.iter().filter(|step| step.phase == Some(JobPhase::Completed)).count();
    format!("{name}: {phase}, {n_completed} of {} jobs completed", steps.len())
}

/// `  █ load          Completed`, `    ░ train       waits for load`
pub(crate) fn lines(steps: &[StepView]) -> Vec<String> {
    let indent = |step: &StepView| step.depth.saturating_mul(2);
    let width = steps.iter().map(|step| indent(step).saturating_add(step.name.chars().count())).max();
    let line = |step: &StepView| {
        let (indent, width) = (indent(step), width.unwrap_or(0));
        let state = match (&step.phase, step.waits_for.as_slice()) {
            (Some(phase), _) => phase.to_string(),
            (None, []) => "starts".to_owned(),
            (None, names) => format!("waits for {}", names.join(", ")),
        };
        let name_width = width.saturating_sub(indent);
        format!("  {:indent$}{} {:name_width$}  {state}", "", step.cell(), step.name)
    };
    steps.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(spec: serde_json::Value, jobs: &[(&str, &str)], expected: Expect) {
        let list: Vec<_> = jobs.iter().map(|(name, state)| json!({"name": name, "state": state})).collect();
        let status = json!({"jobStatusList": list, "state": {"phase": "Running"}});
        let flow: JobFlow = serde_json::from_value(json!({"spec": spec, "status": status})).unwrap();
        let steps = steps("etl", &flow);
        let picture = std::iter::once(title("etl", "Running", &steps)).chain(lines(&steps));
        expected.assert_eq(&picture.map(|line| format!("{line}\n")).collect::<String>());
    }

    #[test]
    fn each_step_stands_below_and_behind_those_that_it_waits_for() {
        let after = |name: &str, targets: &[&str]| json!({"name": name, "dependsOn": {"targets": targets}});
        let flows = [
            json!({"name": "load"}),
            after("train-small", &["load"]),
            after("train-large", &["load"]),
            after("compare", &["train-small", "train-large"]),
            json!({"name": "notify"}),
        ];
        let jobs = [("etl-load", "Completed"), ("etl-train-small", "Running"), ("etl-train-large", "Failed")];
        check(
            json!({ "flows": flows }),
            &jobs,
            expect![[r#"
            etl: Running, 1 of 5 jobs completed
              █ load           Completed
                ▒ train-small  Running
                x train-large  Failed
                  ░ compare    waits for train-small, train-large
              ░ notify         starts
        "#]],
        );
    }

    #[test]
    fn a_step_that_can_not_be_made_says_why() {
        let flow = json!({
            "spec": { "flows": [{ "name": "load" }, { "name": "train", "dependsOn": { "targets": ["load"] } }] },
            "status": { "conditions": { "etl-load": { "phase": "TemplateMissing" } } },
        });
        let flow: JobFlow = serde_json::from_value(flow).unwrap();
        let expected = ["  ░ load     TemplateMissing", "    ░ train  waits for load"];
        assert_eq!(lines(&steps("etl", &flow)), expected);
    }

    #[test]
    fn a_circle_does_no_harm() {
        let flows = [
            json!({"name": "a", "dependsOn": {"targets": ["b"]}}),
            json!({"name": "b", "dependsOn": {"targets": ["a", "gone"]}}),
        ];
        check(
            json!({ "flows": flows }),
            &[],
            expect![[r#"
            etl: Running, 0 of 2 jobs completed
                              ░ a  waits for b
                              ░ b  waits for a, gone
        "#]],
        );
    }
}
