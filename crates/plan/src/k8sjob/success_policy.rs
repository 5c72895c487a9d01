//! Whether an Indexed Job has succeeded although not all of its indexes have.

use krafla_api::batch::{SuccessPolicy, SuccessRule};

use crate::indexes::Indexes;

/// The position of the first rule that is met.
pub(super) fn met_rule(policy: &SuccessPolicy, completed: &Indexes, completions: u32) -> Option<usize> {
    if completed.is_empty() {
        return None;
    }
    policy.rules.iter().position(|rule| is_met(rule, completed, completions))
}

fn is_met(rule: &SuccessRule, completed: &Indexes, completions: u32) -> bool {
    let count = rule.succeeded_count.map(i64::from);
    let Some(listed) = &rule.succeeded_indexes else {
        return count.is_some_and(|count| completed.len() >= count);
    };
    let listed = Indexes::parse(listed, completions);
    let n_completed = listed.n_in(completed);
    !listed.is_empty() && (n_completed == listed.len() || count.is_some_and(|count| n_completed >= count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_is_met_decides() {
        let rule = |indexes: Option<&str>, succeeded_count: Option<i32>| SuccessRule {
            succeeded_indexes: indexes.map(str::to_owned),
            succeeded_count,
        };
        for (rules, completed, expected) in [
            (vec![rule(Some("0-2"), None)], "0,1", None),
            (vec![rule(Some("0-2"), None)], "0-2", Some(0)),
            (vec![rule(Some("0-2"), None)], "0-5", Some(0)),
            (vec![rule(Some("0-2,5"), Some(2))], "2,5", Some(0)),
            (vec![rule(Some("0-2,5"), Some(2))], "2,3,4", None),
            (vec![rule(None, Some(2))], "7", None),
            (vec![rule(None, Some(2))], "7,9", Some(0)),
            (vec![rule(Some("9"), None), rule(None, Some(1))], "3", Some(1)),
            (vec![rule(Some("2-5"), None)], "0-3", None),
            (vec![rule(Some("2-5"), None)], "4-8", None),
            (vec![rule(Some("2-5"), None)], "3,4", None),
            (vec![rule(Some("2-5"), None)], "2,3,5", None),
            (vec![rule(Some("2-3,6-7"), None)], "1-4,6-9", Some(0)),
            (vec![rule(Some("2-3,6-7"), None)], "2-6", None),
            (vec![rule(Some("2-3,6-7"), Some(3))], "3-6", None),
            (vec![rule(Some("2-3,6-7"), Some(3))], "2-6", Some(0)),
            (vec![rule(Some(""), None)], "3", None),
            (vec![rule(Some("0-2"), None), rule(Some("3"), None)], "3", Some(1)),
            (vec![], "3", None),
            (vec![rule(Some("20-30"), None)], "3", None),
            (vec![rule(Some("x"), None)], "3", None),
            (vec![rule(None, Some(0))], "", None),
        ] {
            let policy = SuccessPolicy { rules };
            assert_eq!(
                met_rule(&policy, &Indexes::parse(completed, 10), 10),
                expected,
                "{policy:?} {completed}"
            );
        }
    }
}
