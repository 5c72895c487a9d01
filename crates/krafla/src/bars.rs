//! A task as it is shown on a terminal: its name, a bar, and how many pods are how. Pure.

use krafla_api::volcano::TaskSpec;
use krafla_plan::object::{Job, VcJob};

use crate::printable;
use crate::room::State;

/// How wide a bar is on a terminal that has the room, and how wide it must be to be of use.
const BAR_WIDTH_MAX: usize = 40;
const BAR_WIDTH_MIN: usize = 5;
/// So much of a name is shown at least.
const NAME_WIDTH_MIN: usize = 8;

/// A task as it is shown: how many pods it wants, and how they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskView {
    pub(crate) name: String,
    pub(crate) wanted: usize,
    pub(crate) pending: usize,
    pub(crate) running: usize,
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
}

impl TaskView {
    pub(crate) fn state(&self) -> State {
        match self {
            it if it.failed > 0 => State::Failed,
            it if it.pending > 0 => State::Pending,
            it if it.running > 0 => State::Running,
            it if it.succeeded < it.wanted => State::Waiting,
            _ => State::Succeeded,
        }
    }

    /// `2 of 4 succeeded, 1 failed, 1 running`, in the order of the bar's cells.
    fn counts(&self, is_short: bool) -> String {
        let succeeded = if is_short { "" } else { " succeeded" };
        let mut counts = format!("{} of {}{succeeded}", self.succeeded, self.wanted);
        for (n, what) in [(self.failed, "failed"), (self.running, "running")] {
            if n > 0 {
                counts += &format!(", {n} {what}");
            }
        }
        counts
    }
}

/// A Job of Kubernetes is one task. One that does not say how many must succeed wants as many as run at once.
pub(crate) fn pods(job: &Job) -> TaskView {
    let count = |n: i32| usize::try_from(n).unwrap_or(0);
    TaskView {
        name: "pods".to_owned(),
        wanted: count(job.spec.completions.or(job.spec.parallelism).unwrap_or(1)),
        pending: 0,
        running: count(job.status.active),
        succeeded: count(job.status.succeeded),
        failed: count(job.status.failed),
    }
}

/// The tasks of a Job of Volcano.
pub(crate) fn tasks(job: &VcJob) -> Vec<TaskView> {
    let view = |task: &TaskSpec| {
        let counts = job.status.task_status_count.get(&task.name).map(|state| &state.phase);
        let count =
            |phase: &str| counts.and_then(|counts| usize::try_from(*counts.get(phase)?).ok()).unwrap_or(0);
        TaskView {
            name: task.name.clone(),
            wanted: usize::try_from(task.replicas).unwrap_or(0),
            pending: count("Pending"),
            running: count("Running"),
            succeeded: count("Succeeded"),
            failed: count("Failed"),
        }
    };
    job.spec.tasks.iter().map(view).collect()
}

/// Where names, bars and counts stand: below each other, for all tasks of a picture.
pub(crate) struct Columns {
    name_width: usize,
    bar_width: usize,
    is_short: bool,
}

impl Columns {
    /// What does not fit becomes shorter: first the counts, then the names, and last of all there is no bar.
    pub(crate) fn of(tasks: &[&TaskView], width: usize) -> Columns {
        let names = tasks.iter().map(|task| printable::width(&task.name)).max().unwrap_or(0);
        let longest = |counts: &dyn Fn(&TaskView) -> String| {
            tasks.iter().map(|task| counts(task).len()).max().unwrap_or(0)
        };
        // Room for all to run, so that bars do not change their length when they do.
        let busy = |task: &TaskView| TaskView { running: task.wanted, failed: 0, ..task.clone() };
        let counts = |is_short: bool| {
            longest(&|task| task.counts(is_short)).max(longest(&|task| busy(task).counts(is_short)))
        };
        let short_names = names.min((width / 3).max(NAME_WIDTH_MIN));
        let choices = [(names, false), (names, true), (short_names, true)].into_iter();
        let mut fitting = choices.filter_map(|(name_width, is_short)| {
            // Two spaces before each of the three columns.
            let taken = name_width.saturating_add(counts(is_short)).saturating_add(6);
            let bar_width = width.checked_sub(taken).filter(|room| *room >= BAR_WIDTH_MIN)?;
            Some(Columns { name_width, bar_width: bar_width.min(BAR_WIDTH_MAX), is_short })
        });
        fitting.next().unwrap_or_else(|| {
            let left = width.saturating_sub(longest(&|task| task.counts(true))).saturating_sub(4);
            Columns { name_width: names.min(left.max(NAME_WIDTH_MIN)), bar_width: 0, is_short: true }
        })
    }

    /// `  worker  ████████▒▒▒▒░░░░  2 of 4 succeeded, 1 running`
    pub(crate) fn line(&self, task: &TaskView) -> String {
        let (name_width, counts) = (self.name_width, task.counts(self.is_short));
        let name = printable::cut_in_the_middle(&task.name, name_width);
        match self.bar_width {
            0 => format!("  {name:name_width$}  {counts}"),
            bar_width => format!("  {name:name_width$}  {}  {counts}", bar(task, bar_width)),
        }
    }
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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn task(name: &str, wanted: usize, [running, succeeded, failed]: [usize; 3]) -> TaskView {
        TaskView { name: name.to_owned(), wanted, pending: 0, running, succeeded, failed }
    }

    #[test]
    fn columns_stand_below_each_other_also_where_there_is_little_room() {
        let tasks = [task("leader-with-a-long-name-1", 1, [1, 0, 0]), task("w", 100, [10, 50, 3])];
        for (width, expected) in [
            (
                80,
                expect![[r#"
                      leader-with-a-long-name-1  ▒▒▒▒▒▒▒▒  0 of 1 succeeded, 1 running
                      w                          ████▒░░░  50 of 100 succeeded, 3 failed, 10 running
                "#]],
            ),
            (
                60,
                expect![[r#"
                      leader-with-a-long-name-1  0 of 1, 1 running
                      w                          50 of 100, 3 failed, 10 running
                "#]],
            ),
            (
                40,
                expect![[r#"
                      lead…e-1  0 of 1, 1 running
                      w         50 of 100, 3 failed, 10 running
                "#]],
            ),
        ] {
            let tasks: Vec<&TaskView> = tasks.iter().collect();
            let columns = Columns::of(&tasks, width);
            let lines = tasks.iter().map(|task| format!("{}\n", columns.line(task).trim_start()));
            expected.assert_eq(&lines.collect::<String>());
        }
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
