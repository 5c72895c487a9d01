//! From a failing case to the smallest that still fails: what a person then has to understand.

use crate::case::{Case, Order};
use crate::termination::KILLED;

/// Leaves out of a failing case everything without which it still fails: faults one by one, the shuffling, and how pods are terminated.
///
/// `fails` says whether a case fails; any finding counts, since what is left out may change which one comes first.
pub fn shrink(case: Case, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut smallest = case;
    loop {
        let Some(smaller) = smaller(&smallest).into_iter().find(|candidate| fails(candidate)) else {
            return smallest;
        };
        smallest = smaller;
    }
}

/// The cases that are one thing simpler: calm first, which helps a reader most, then without one of the faults.
fn smaller(case: &Case) -> Vec<Case> {
    let calm = (case.order != Order::Calm).then(|| Case { order: Order::Calm, ..case.clone() });
    let without_one = (0..case.injections.len()).map(|left_out| {
        let kept = case.injections.iter().enumerate().filter(|(index, _)| *index != left_out);
        case.with(kept.map(|(_, injection)| *injection))
    });
    let killed = (*case.termination != KILLED).then(|| Case { termination: &KILLED, ..case.clone() });
    calm.into_iter().chain(without_one).chain(killed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shrunk(word: &str, fails: impl FnMut(&Case) -> bool) -> String {
        shrink(word.parse().unwrap(), fails).to_string()
    }

    #[test]
    fn only_what_is_needed_to_fail_is_left() {
        let needs_both = |case: &Case| {
            let has = |write| case.injections.iter().any(|injection| injection.write == write);
            has(3) && has(7)
        };
        let long = "restart+yields~9:1:busy:3:crash-after:5:conflict:7:refused:9:outage";
        assert_eq!(shrunk(long, needs_both), "restart:3:crash-after:7:refused");
    }

    #[test]
    fn pods_end_well_where_that_is_needed() {
        assert_eq!(shrunk("restart+yields~9:1:busy", |case| case.termination.ends_well()), "restart+yields");
    }

    #[test]
    fn the_order_stays_shuffled_where_that_is_needed() {
        assert_eq!(shrunk("restart~9:1:busy", |case| case.order == Order::Shuffled(9)), "restart~9");
    }
}
