//! What is shown where not everything fits: what failed or waits before what is well, and of the rest how many there are.
//! Pure.

/// How something is. The first ones need most to be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// It, or a part of it, ended badly.
    Failed,
    /// It is there, and something keeps it from running.
    Pending,
    /// It runs.
    Running,
    /// Its turn has not come.
    #[default]
    Waiting,
    /// It ended well.
    Succeeded,
}

/// Who comes before whom. Of what can not run and what does there are often many: neither may hide the other.
const GROUPS: [&[State]; 4] =
    [&[State::Failed], &[State::Pending, State::Running], &[State::Waiting], &[State::Succeeded]];

/// In the order of the cells of a bar.
const WORDS: [(State, &str); 5] = [
    (State::Succeeded, "succeeded"),
    (State::Failed, "failed"),
    (State::Running, "running"),
    (State::Pending, "pending"),
    (State::Waiting, "waiting"),
];

/// Which of some things are shown in so many lines, one for each, in their order. Unless that is all of them, a line is
/// left for the totals of the others.
pub(crate) fn shown(states: &[State], n_lines: usize) -> Vec<usize> {
    if states.len() <= n_lines {
        return (0..states.len()).collect();
    }
    let mut n_left = n_lines.saturating_sub(1);
    let mut shown = Vec::new();
    for group in GROUPS {
        let of =
            |state: State| (0..states.len()).filter(move |position| states.get(*position) == Some(&state));
        let needs: Vec<(usize, State)> = group.iter().map(|state| (of(*state).count(), *state)).collect();
        for (state, share) in group.iter().zip(shares(&needs, n_left)) {
            shown.extend(of(*state).take(share));
            n_left = n_left.saturating_sub(share);
        }
    }
    shown.sort_unstable();
    shown
}

/// `… 297 tasks more: 250 succeeded, 7 failed, 40 running`, of those that are not among the shown.
pub(crate) fn totals(what: &str, states: &[State], shown: &[usize]) -> String {
    let others = states.iter().enumerate().filter(|(position, _)| !shown.contains(position));
    let others: Vec<State> = others.map(|(_, state)| *state).collect();
    let counts = WORDS.iter().map(|(state, word)| (others.iter().filter(|it| *it == state).count(), word));
    let counts: Vec<String> = counts.filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let more = if shown.is_empty() { "" } else { " more" };
    format!("… {} {what}{more}: {}", others.len(), counts.join(", "))
}

/// How many of some lines each gets who needs so many: whoever needs little gets that, the others the same. If there is
/// not even one for each, those get one that need most to be seen.
pub(crate) fn shares(needs: &[(usize, State)], n_lines: usize) -> Vec<usize> {
    let mut takers: Vec<(usize, usize, State)> = needs
        .iter()
        .enumerate()
        .filter(|(_, (need, _))| *need > 0)
        .map(|(position, (need, state))| (position, *need, *state))
        .collect();
    takers.sort_by_key(|(_, _, state)| *state);
    takers.truncate(n_lines);
    takers.sort_by_key(|(_, need, _)| *need);
    let mut shares = vec![0; needs.len()];
    let (mut n_left, mut n_takers) = (n_lines, takers.len());
    for (position, need, _) in takers {
        let share = need.min(n_left / n_takers.max(1));
        if let Some(of_taker) = shares.get_mut(position) {
            *of_taker = share;
        }
        n_left = n_left.saturating_sub(share);
        n_takers = n_takers.saturating_sub(1);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_or_waits_is_among_the_shown() {
        use State::{Failed, Pending, Running, Succeeded, Waiting};
        let states = [Succeeded, Waiting, Running, Running, Failed, Succeeded, Pending];
        for (n_lines, expected) in [
            (7, &[0, 1, 2, 3, 4, 5, 6][..]),
            (6, &[1, 2, 3, 4, 6]),
            (4, &[2, 4, 6]),
            (2, &[4]),
            (1, &[]),
            (0, &[]),
        ] {
            assert_eq!(shown(&states, n_lines), expected, "{n_lines}");
        }
        let many = [Pending, Pending, Pending, Pending, Running, Running];
        assert_eq!(shown(&many, 5), [0, 1, 4, 5]);
        let others = "… 4 tasks more: 2 succeeded, 1 running, 1 waiting";
        assert_eq!(totals("tasks", &states, &[2, 4, 6]), others);
        let all = "… 7 tasks: 2 succeeded, 1 failed, 2 running, 1 pending, 1 waiting";
        assert_eq!(totals("tasks", &states, &[]), all);
    }

    #[test]
    fn lines_are_shared_so_that_nobody_has_more_than_others_lack() {
        for (needs, n_lines, expected) in [
            (&[3, 300, 1][..], 20, &[3, 16, 1][..]),
            (&[300, 2, 300], 10, &[4, 2, 4]),
            (&[300, 300], 5, &[2, 3]),
            (&[0, 2, 2], 3, &[0, 1, 2]),
            (&[2, 2], 0, &[0, 0]),
            (&[], 5, &[]),
        ] {
            let needs: Vec<(usize, State)> = needs.iter().map(|need| (*need, State::Running)).collect();
            assert_eq!(shares(&needs, n_lines), expected, "{needs:?} of {n_lines}");
        }
        let needs = [(2, State::Running), (0, State::Failed), (1, State::Succeeded), (1, State::Failed)];
        assert_eq!(shares(&needs, 1), [0, 0, 0, 1]);
        assert_eq!(shares(&needs, 2), [1, 0, 0, 1]);
    }
}
