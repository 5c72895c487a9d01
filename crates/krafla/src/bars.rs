//! How a run looks on a terminal: one line for each job or flow, one bar for each task, one line for each step. Pure.

use std::time::Duration;

use krafla_api::volcano::TaskSpec;
use krafla_plan::Object;
use krafla_plan::object::{Job, VcJob};

use crate::progress;
use crate::steps::{self, StepView};

/// How wide a bar is on a terminal that has the room.
const BAR_WIDTH_MAX: usize = 40;

/// A job or flow as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Its name and phase.
    pub(crate) title: String,
    /// Those of a job.
    pub(crate) tasks: Vec<TaskView>,
    /// Those of a flow.
    pub(crate) steps: Vec<StepView>,
    /// What it waits for, in a sentence.
    pub(crate) waits_for: Option<String>,
    /// How long it took, once it has ended.
    pub(crate) ended_after: Option<Duration>,
}

/// A task as it is shown: how many pods it wants, and how they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskView {
    pub(crate) name: String,
    pub(crate) wanted: usize,
    pub(crate) running: usize,
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
}

impl View {
    /// A job or flow as it was last seen; `None` before it was seen at all.
    pub(crate) fn of(name: &str, object: Option<&Object>, waits_for: Option<&str>) -> View {
        let mut view = View { waits_for: waits_for.map(str::to_owned), ..View::default() };
        let Some(object) = object else {
            view.title = format!("{name}: Pending");
            return view;
        };
        view.title = progress::title(object);
        if let Some(job) = object.as_vcjob() {
            view.tasks = tasks(job);
        } else if let Some(job) = object.as_job() {
            view.tasks = vec![pods(job)];
        } else if let Some(flow) = object.as_jobflow() {
            view.steps = steps::steps(name, flow);
            view.title = steps::title(name, flow, &view.steps);
        }
        view
    }
}

/// A Job of Kubernetes is one task. One that does not say how many must succeed wants as many as run at once.
fn pods(job: &Job) -> TaskView {
    let count = |n: i32| usize::try_from(n).unwrap_or(0);
    TaskView {
        name: "pods".to_owned(),
        wanted: count(job.spec.completions.or(job.spec.parallelism).unwrap_or(1)),
        running: count(job.status.active),
        succeeded: count(job.status.succeeded),
        failed: count(job.status.failed),
    }
}

fn tasks(job: &VcJob) -> Vec<TaskView> {
    let view = |task: &TaskSpec| {
        let counts = job.status.task_status_count.get(&task.name).map(|state| &state.phase);
        let count =
            |phase: &str| counts.and_then(|counts| usize::try_from(*counts.get(phase)?).ok()).unwrap_or(0);
        TaskView {
            name: task.name.clone(),
            wanted: usize::try_from(task.replicas).unwrap_or(0),
            running: count("Running"),
            succeeded: count("Succeeded"),
            failed: count("Failed"),
        }
    };
    job.spec.tasks.iter().map(view).collect()
}

/// The lines of one picture, none of them wider than the terminal, and not more of them than fit: what has left the
/// terminal at its top can not be drawn over.
pub(crate) fn render(views: &[View], elapsed: Duration, [width, height]: [usize; 2]) -> Vec<String> {
    let name_width = views.iter().flat_map(|view| &view.tasks).map(|task| task.name.chars().count()).max();
    let mut lines = Vec::new();
    for view in views {
        lines.push(format!("{} ({})", view.title, time(view.ended_after.unwrap_or(elapsed))));
        lines.extend(view.tasks.iter().map(|task| task_line(task, name_width.unwrap_or(0), width)));
        lines.extend(steps::lines(&view.steps));
        lines.extend(view.waits_for.iter().flat_map(|reason| wrapped("  waiting: ", reason, width)));
    }
    // The last line is the cursor's.
    let n_lines_max = height.saturating_sub(1).max(1);
    if lines.len() > n_lines_max {
        let n_left_out = lines.len().saturating_sub(n_lines_max).saturating_add(1);
        lines.truncate(n_lines_max.saturating_sub(1));
        lines.push(format!("… and {n_left_out} more lines"));
    }
    lines.into_iter().map(|line| cut(&line, width)).collect()
}

/// A sentence on as many lines as it needs, below each other: its end, which says what to do, matters most.
fn wrapped(title: &str, sentence: &str, width: usize) -> Vec<String> {
    let mut lines = vec![title.trim_end().to_owned()];
    for word in sentence.split_whitespace() {
        let fits = |line: &String| line.chars().count().saturating_add(word.chars().count()) < width;
        match lines.last_mut().filter(|line| fits(line)) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(format!("{:1$}{word}", "", title.len())),
        }
    }
    lines
}

/// `  worker  ████████▒▒▒▒░░░░  2 of 4 succeeded, 1 running`
fn task_line(task: &TaskView, name_width: usize, width: usize) -> String {
    let mut counts = format!("{} of {} succeeded", task.succeeded, task.wanted);
    for (n, what) in [(task.running, "running"), (task.failed, "failed")] {
        if n > 0 {
            counts += &format!(", {n} {what}");
        }
    }
    // Two spaces before each of the three columns.
    let taken = name_width.saturating_add(counts.chars().count()).saturating_add(6);
    let bar = bar(task, width.saturating_sub(taken).min(BAR_WIDTH_MAX));
    format!("  {:name_width$}  {bar}  {counts}", task.name)
}

/// Full for what succeeded, crossed for what failed, shaded for what runs, light for what is still to come.
fn bar(task: &TaskView, width: usize) -> String {
    let total =
        task.wanted.max(task.succeeded.saturating_add(task.failed).saturating_add(task.running)).max(1);
    let mut bar = String::new();
    let (mut n_pods, mut n_cells) = (0_usize, 0_usize);
    for (n, cell) in [(task.succeeded, '█'), (task.failed, 'x'), (task.running, '▒'), (total, '░')] {
        n_pods = n_pods.saturating_add(n).min(total);
        // Rounded down, so that a bar is full only when everything is done.
        let until = n_pods.saturating_mul(width) / total;
        bar.extend(std::iter::repeat_n(cell, until.saturating_sub(n_cells)));
        n_cells = until;
    }
    bar
}

/// `4.2 s`, `3:07`, `1:03:07`.
fn time(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{:.1} s", elapsed.as_secs_f64()),
        (0, _) => format!("{minutes}:{rest:02}"),
        _ => format!("{hours}:{minutes:02}:{rest:02}"),
    }
}

/// A line that wraps would be counted as one and leave its rest behind when it is drawn over.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn task(name: &str, wanted: usize, [running, succeeded, failed]: [usize; 3]) -> TaskView {
        TaskView { name: name.to_owned(), wanted, running, succeeded, failed }
    }

    fn check(view: View, seconds: f64, width: usize, expected: Expect) {
        let lines = render(&[view], Duration::from_secs_f64(seconds), [width, 24]);
        assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
        expected.assert_eq(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    }

    #[test]
    fn a_job_is_a_line_and_a_bar_for_each_task() {
        let tasks = vec![task("leader", 1, [1, 0, 0]), task("worker", 8, [3, 2, 1])];
        let job = View { title: "train: Running".to_owned(), tasks, ..View::default() };
        check(
            job.clone(),
            4.25,
            80,
            expect![[r#"
                train: Running (4.2 s)
                  leader  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  0 of 1 succeeded, 1 running
                  worker  ███████xxxx▒▒▒▒▒▒▒▒▒▒▒▒░░░░░░░░  2 of 8 succeeded, 3 running, 1 failed
            "#]],
        );
        check(
            job,
            187.0,
            40,
            expect![[r#"
                train: Running (3:07)
                  leader  ▒  0 of 1 succeeded, 1 running
                  worker    2 of 8 succeeded, 3 running…
            "#]],
        );
    }

    #[test]
    fn what_a_job_waits_for_stands_below_it() {
        let job = View {
            title: "greedy: Pending".to_owned(),
            tasks: vec![task("work", 3, [0, 0, 0])],
            waits_for: Some("there is not enough cpu".to_owned()),
            ..View::default()
        };
        check(
            job,
            3787.0,
            60,
            expect![[r#"
                greedy: Pending (1:03:07)
                  work  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0 of 3 succeeded
                  waiting: there is not enough cpu
            "#]],
        );
        let told_at_length = View {
            title: "greedy: Pending".to_owned(),
            waits_for: Some(
                "it needs 4 cpu, and not enough is left of the cluster's 2; to do: ask for less".to_owned(),
            ),
            ..View::default()
        };
        check(
            told_at_length,
            1.0,
            40,
            expect![[r#"
            greedy: Pending (1.0 s)
              waiting: it needs 4 cpu, and not
                       enough is left of the
                       cluster's 2; to do: ask for
                       less
        "#]],
        );
    }

    #[test]
    fn the_time_of_what_has_ended_stands_still() {
        let ended = View {
            title: "hello: Completed".to_owned(),
            ended_after: Some(Duration::from_secs(2)),
            ..View::default()
        };
        check(
            ended,
            60.0,
            60,
            expect![[r#"
            hello: Completed (2.0 s)
        "#]],
        );
    }

    #[test]
    fn a_picture_is_not_higher_than_its_terminal() {
        let views: Vec<View> =
            (0..9).map(|n| View { title: format!("job-{n}"), ..View::default() }).collect();
        let lines = render(&views, Duration::ZERO, [80, 5]);
        assert_eq!(lines, ["job-0 (0.0 s)", "job-1 (0.0 s)", "job-2 (0.0 s)", "… and 6 more lines"]);
        assert_eq!(render(&views, Duration::ZERO, [80, 10]).len(), 9);
    }

    #[test]
    fn a_bar_is_full_only_when_everything_is_done() {
        for (task, expected) in [
            (task("a", 1000, [1, 999, 0]), "█████████▒"),
            (task("a", 3, [0, 3, 0]), "██████████"),
            (task("a", 0, [0, 0, 0]), "░░░░░░░░░░"),
            // After a scale-down there are more than are wanted.
            (task("a", 1, [1, 1, 0]), "█████▒▒▒▒▒"),
        ] {
            assert_eq!(bar(&task, 10), expected, "{task:?}");
        }
    }
}
