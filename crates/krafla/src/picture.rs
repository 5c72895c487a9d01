//! How a run looks on a terminal: one line for each job or flow, one bar for each task, one line for each step. Pure.

use std::time::Duration;

use krafla_plan::Object;

use crate::bars::{self, Columns, TaskView};
use crate::printable;
use crate::progress::{self, End};
use crate::room::{self, State};
use crate::steps::{self, StepView};

/// Stands before what something waits for.
const REASON: &str = "  waiting:";
/// Where a title goes on that needs more than one line.
const TITLE_INDENT: usize = 4;
/// On less there is no room for more indentation.
const NARROW: usize = 40;
/// A space where no line ends.
const NO_BREAK: &str = "\u{a0}";

/// A job or flow as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Its name and phase.
    pub(crate) title: String,
    pub(crate) state: State,
    /// Those of a job.
    pub(crate) tasks: Vec<TaskView>,
    /// Those of a flow.
    pub(crate) steps: Vec<StepView>,
    /// What it waits for, in a sentence.
    pub(crate) waits_for: Option<String>,
    /// How long it took, once it has ended.
    pub(crate) ended_after: Option<Duration>,
}

impl View {
    /// A job or flow as it was last seen; `None` before it was seen at all.
    pub(crate) fn of(name: &str, object: Option<&Object>, waits_for: Option<&str>) -> View {
        let mut view = View { waits_for: waits_for.map(str::to_owned), ..View::default() };
        let Some(object) = object else {
            view.title = format!("{name}: Pending");
            return view;
        };
        view.title = progress::title(object, waits_for);
        if let Some(job) = object.as_vcjob() {
            view.tasks = bars::tasks(job);
        } else if let Some(job) = object.as_job() {
            view.tasks = vec![bars::pods(job)];
        } else if let Some(flow) = object.as_jobflow() {
            view.steps = steps::steps(name, flow);
            view.title = steps::title(name, &progress::phase(object), &view.steps);
        }
        view.state = state(&view, progress::end(object));
        view
    }
}

impl View {
    /// One that somebody deleted before it had ended. How it was before is past.
    pub(crate) fn of_deleted(name: &str) -> View {
        View { title: format!("{name}: deleted"), state: State::Failed, ..View::default() }
    }
}

fn state(view: &View, end: Option<End>) -> State {
    let runs = view.tasks.iter().any(|task| task.running > 0)
        || view.steps.iter().any(|step| step.state() == State::Running);
    match end {
        Some(End::Badly) => State::Failed,
        Some(End::Well) => State::Succeeded,
        None if runs && view.waits_for.is_none() => State::Running,
        None => State::Pending,
    }
}

/// The lines of one picture, none of them wider than the terminal, and not more of them than fit: what has left the
/// terminal at its top can not be drawn over.
pub(crate) fn render(views: &[View], elapsed: Duration, [width, height]: [usize; 2]) -> Vec<String> {
    let tasks: Vec<&TaskView> = views.iter().flat_map(|view| &view.tasks).collect();
    let columns = Columns::of(&tasks, width);
    let blocks: Vec<Block> = views.iter().map(|view| Block::of(view, elapsed, &columns, width)).collect();
    // The last line is the cursor's.
    let lines = fitted(&blocks, height.saturating_sub(1));
    lines.into_iter().map(|line| printable::cut(&line, width)).collect()
}

/// All that there is to say of a job or flow.
struct Block {
    state: State,
    title: Vec<String>,
    /// Tasks, or steps.
    parts: Vec<String>,
    part_states: Vec<State>,
    is_flow: bool,
    reason: Vec<String>,
}

impl Block {
    fn of(view: &View, elapsed: Duration, columns: &Columns, width: usize) -> Block {
        let title = printable::plain(&view.title);
        let (name, phase) = title.split_once(' ').unwrap_or((&title, ""));
        let time = time(view.ended_after.unwrap_or(elapsed)).replace(' ', NO_BREAK);
        let title = wrapped(name, TITLE_INDENT, &format!("{phase} ({time})"), width);
        let tasks = view.tasks.iter().map(|task| (columns.line(task), task.state()));
        let steps = steps::lines(&view.steps).into_iter().zip(view.steps.iter().map(StepView::state));
        let (parts, part_states) = tasks.chain(steps).unzip();
        let reason = view.waits_for.iter().map(|reason| printable::plain(reason));
        let indent = REASON.len().saturating_add(1);
        let reason = reason.flat_map(|reason| wrapped(REASON, indent, &reason, width));
        Block {
            state: view.state,
            title,
            parts,
            part_states,
            is_flow: !view.steps.is_empty(),
            reason: reason.collect(),
        }
    }

    /// How many lines it has beside one for its title, its tasks and its steps: those that say why something is as it is.
    fn n_words(&self) -> usize {
        self.title.len().saturating_sub(1).saturating_add(self.reason.len())
    }

    fn lines(&self, n_parts: usize, n_words: usize) -> Vec<String> {
        let mut lines = first_of(&self.title, n_words.saturating_add(1));
        let n_reason = n_words.saturating_add(1).saturating_sub(lines.len());
        let shown = room::shown(&self.part_states, n_parts);
        lines.extend(shown.iter().filter_map(|position| self.parts.get(*position)).cloned());
        if shown.len() < self.parts.len() && n_parts > 0 {
            let what = if self.is_flow { "steps" } else { "tasks" };
            lines.push(format!("  {}", room::totals(what, &self.part_states, &shown)));
        }
        lines.extend(first_of(&self.reason, n_reason));
        lines
    }
}

/// The first lines of a sentence, with a sign where its end is missing.
fn first_of(sentence: &[String], n_lines: usize) -> Vec<String> {
    let mut lines: Vec<String> = sentence.iter().take(n_lines).cloned().collect();
    if let Some(last) = lines.last_mut().filter(|_| n_lines < sentence.len()) {
        *last += " …";
    }
    lines
}

/// Who gets how many lines: first every title has one, but for some that are left for reasons; then what says why
/// something failed or waits, then tasks and steps, and those of what ended well last.
fn fitted(blocks: &[Block], n_lines_max: usize) -> Vec<String> {
    let states: Vec<State> = blocks.iter().map(|block| block.state).collect();
    let n_words: usize = blocks.iter().map(Block::n_words).sum();
    let positions = room::shown(&states, n_lines_max.saturating_sub(n_words.min(n_lines_max / 3)));
    let shown: Vec<&Block> = positions.iter().filter_map(|position| blocks.get(*position)).collect();
    let n_totals = usize::from(shown.len() < blocks.len()).min(n_lines_max);
    let mut n_left = n_lines_max.saturating_sub(shown.len()).saturating_sub(n_totals);
    let mut share_out = |need: &dyn Fn(&Block) -> usize| {
        let needs: Vec<_> = shown.iter().map(|block| (need(block), block.state)).collect();
        let shares = room::shares(&needs, n_left);
        n_left = n_left.saturating_sub(shares.iter().sum());
        shares
    };
    let parts_if = |block: &Block, is_asked: bool| if is_asked { block.parts.len() } else { 0 };
    let of_words = share_out(&Block::n_words);
    let of_unfinished = share_out(&|block| parts_if(block, block.state != State::Succeeded));
    let of_finished = share_out(&|block| parts_if(block, block.state == State::Succeeded));
    let of_parts = of_unfinished.into_iter().zip(of_finished).map(|(n, m)| n.max(m));
    let mut lines: Vec<String> = shown
        .into_iter()
        .zip(of_parts.zip(of_words))
        .flat_map(|(block, (n_parts, n_words))| block.lines(n_parts, n_words))
        .collect();
    if n_totals > 0 {
        let what = if blocks.iter().any(|block| block.is_flow) { "jobs and flows" } else { "jobs" };
        lines.push(room::totals(what, &states, &positions));
    }
    lines
}

/// A sentence on as many lines as it needs, below each other: its end, which says what to do, matters most.
fn wrapped(first: &str, indent: usize, sentence: &str, width: usize) -> Vec<String> {
    let indent = if width < NARROW { indent.min(TITLE_INDENT) } else { indent };
    let mut lines = vec![first.to_owned()];
    let words = sentence.split(' ').filter(|word| !word.is_empty()).map(|word| word.replace(NO_BREAK, " "));
    for word in words.flat_map(|word| printable::pieces(&word, width.saturating_sub(indent))) {
        let fits = |line: &String| printable::width(line).saturating_add(printable::width(&word)) < width;
        match lines.last_mut().filter(|line| fits(line)) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(format!("{:indent$}{word}", "")),
        }
    }
    lines
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

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn task(name: &str, wanted: usize, [running, succeeded, failed]: [usize; 3]) -> TaskView {
        TaskView { name: name.to_owned(), wanted, pending: 0, running, succeeded, failed }
    }

    fn check(view: View, seconds: f64, width: usize, expected: Expect) {
        let lines = render(&[view], Duration::from_secs_f64(seconds), [width, 24]);
        assert!(lines.iter().all(|line| printable::width(line) <= width), "{lines:#?}");
        expected.assert_eq(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    }

    #[test]
    fn a_job_that_was_deleted_does_not_seem_to_run() {
        let view = View { ended_after: Some(Duration::from_secs(3)), ..View::of_deleted("a") };
        assert_eq!(view.state, State::Failed);
        assert_eq!(render(&[view], Duration::from_secs(9), [80, 24]), ["a: deleted (3.0 s)"]);
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
                  leader  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  0 of 1 succeeded, 1 running
                  worker  ███████xxxx▒▒▒▒▒▒▒▒▒▒▒▒░░░░░░░░  2 of 8 succeeded, 1 failed, 3 running
            "#]],
        );
        check(
            job,
            187.0,
            40,
            expect![[r#"
                train: Running (3:07)
                  leader  0 of 1, 1 running
                  worker  2 of 8, 1 failed, 3 running
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
                  work  ░░░░░░░░░░░░░░░░░░░░░░░  0 of 3 succeeded
                  waiting: there is not enough cpu
            "#]],
        );
        let with_a_long_word = View {
            title: "greedy: Pending".to_owned(),
            waits_for: Some("persistentvolumeclaim \"data-of-the-whole-department\" not found".to_owned()),
            ..View::default()
        };
        check(
            with_a_long_word,
            1.0,
            30,
            expect![[r#"
                greedy: Pending (1.0 s)
                  waiting:
                    persistentvolumeclaim
                    "data-of-the-whole-departm
                    ent" not found
            "#]],
        );
        let told_at_length = View {
            title: "greedy: Pending".to_owned(),
            waits_for: Some(
                "it needs 4 cpu, and not enough is left of the cluster's 2; fix: ask for less".to_owned(),
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
                       cluster's 2; fix: ask for
                       less
        "#]],
        );
    }

    #[test]
    fn why_a_job_failed_is_told_to_its_end() {
        let failed = View {
            title: "a: Failed, all 3 retries are used up; the last: pod a-work-0 failed".to_owned(),
            tasks: vec![task("work", 1, [0, 0, 1])],
            ..View::default()
        };
        check(
            failed.clone(),
            4.25,
            40,
            expect![[r#"
            a: Failed, all 3 retries are used up;
                the last: pod a-work-0 failed
                (4.2 s)
              work  xxxxxxxxxxxxx  0 of 1, 1 failed
        "#]],
        );
        check_at(
            &[failed],
            [40, 4],
            expect![[r#"
            a: Failed, all 3 retries are used up;
                the last: pod a-work-0 failed
                (0.0 s)
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
    fn a_title_is_one_line_whatever_is_in_its_message() {
        let failed = View { title: "a: Failed, exit\n\u{1b}[2Jcode 1".to_owned(), ..View::default() };
        check(
            failed,
            1.0,
            60,
            expect![[r#"
            a: Failed, exit code 1 (1.0 s)
        "#]],
        );
    }

    fn check_at(views: &[View], [width, height]: [usize; 2], expected: Expect) {
        let lines = render(views, Duration::ZERO, [width, height]);
        assert!(lines.len() < height, "{lines:#?}");
        expected.assert_eq(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    }

    #[test]
    fn of_many_tasks_those_that_failed_or_wait_are_shown_and_the_others_counted() {
        let state = |n: usize| match n {
            150 | 250 => [0, 0, 1],
            0..200 => [0, 2, 0],
            200..240 => [2, 0, 0],
            _ => [0, 0, 0],
        };
        let mut tasks: Vec<TaskView> = (0..300).map(|n| task(&format!("task-{n}"), 2, state(n))).collect();
        tasks[270].pending = 2;
        let waits_for = Some("pod sweep-task-270-0: no room; fix: wait".to_owned());
        let job = View { title: "sweep: Running".to_owned(), tasks, waits_for, ..View::default() };
        check_at(
            &[job],
            [70, 9],
            expect![[r#"
                sweep: Running (0.0 s)
                  task-150  xxxxxxxxxxxxxx░░░░░░░░░░░░░░░  0 of 2 succeeded, 1 failed
                  task-200  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  0 of 2 succeeded, 2 running
                  task-201  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  0 of 2 succeeded, 2 running
                  task-250  xxxxxxxxxxxxxx░░░░░░░░░░░░░░░  0 of 2 succeeded, 1 failed
                  task-270  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0 of 2 succeeded
                  … 295 tasks more: 199 succeeded, 38 running, 58 waiting
                  waiting: pod sweep-task-270-0: no room; fix: wait
            "#]],
        );
    }

    #[test]
    fn of_many_jobs_those_that_failed_or_wait_are_shown_and_the_others_counted() {
        let job = |n: usize| {
            let state = match n {
                7 => State::Failed,
                8 => State::Pending,
                0..5 => State::Succeeded,
                _ => State::Running,
            };
            let waits_for = (n == 8).then(|| "there is no room".to_owned());
            let tasks = vec![task("a", 1, [0, 0, 0]), task("b", 1, [1, 0, 0])];
            View { title: format!("job-{n}"), tasks, state, waits_for, ..View::default() }
        };
        let jobs: Vec<View> = (0..12).map(job).collect();
        // There is room for all titles, all reasons and a few tasks.
        check_at(
            &jobs,
            [60, 18],
            expect![[r#"
            job-0 (0.0 s)
            job-1 (0.0 s)
            job-2 (0.0 s)
            job-3 (0.0 s)
            job-4 (0.0 s)
            job-5 (0.0 s)
              … 2 tasks: 1 running, 1 waiting
            job-6 (0.0 s)
              … 2 tasks: 1 running, 1 waiting
            job-7 (0.0 s)
              … 2 tasks: 1 running, 1 waiting
            job-8 (0.0 s)
              … 2 tasks: 1 running, 1 waiting
              waiting: there is no room
            job-9 (0.0 s)
            job-10 (0.0 s)
            job-11 (0.0 s)
        "#]],
        );
        check_at(
            &jobs,
            [60, 6],
            expect![[r#"
                job-5 (0.0 s)
                job-7 (0.0 s)
                job-8 (0.0 s)
                  waiting: there is no room
                … 9 jobs more: 5 succeeded, 4 running
            "#]],
        );
        check_at(
            &jobs,
            [60, 2],
            expect![[r#"
            … 12 jobs: 5 succeeded, 1 failed, 5 running, 1 pending
        "#]],
        );
        check_at(
            &jobs[7..8],
            [60, 3],
            expect![[r#"
            job-7 (0.0 s)
              … 2 tasks: 1 running, 1 waiting
        "#]],
        );
        check_at(
            &jobs[7..8],
            [60, 2],
            expect![[r#"
            job-7 (0.0 s)
        "#]],
        );
        assert_eq!(render(&jobs, Duration::ZERO, [60, 1]), Vec::<String>::new());
        let flow = View { steps: vec![StepView::default()], ..jobs[0].clone() };
        check_at(
            &[jobs[5].clone(), flow],
            [60, 2],
            expect![[r#"
            … 2 jobs and flows: 1 succeeded, 1 running
        "#]],
        );
    }
}
