//! When an Indexed Job has succeeded before all of its indexes have.

use crate::Verdict;
use crate::json::At;

use super::{indexes, job};

const RULES_MAX: usize = 20;
const INDEXES_LENGTH_MAX: usize = 64 * 1024;

/// Checks the rules of an Indexed Job.
pub(super) fn validate(spec: &At<'_>, verdict: &mut Verdict) {
    let rules = spec.get("successPolicy").get("rules");
    let list = rules.list();
    if list.is_empty() {
        let rule = "at least one rules must be specified when the successPolicy is specified";
        verdict.required(rules.path(), rule);
    }
    if list.len() > RULES_MAX {
        verdict.too_many(rules.path(), list.len(), RULES_MAX);
    }
    // Without completions, which is refused elsewhere, there is nothing to compare with.
    let Some(completions) = spec.get("completions").int() else { return };
    for rule in list {
        validate_rule(&rule, completions, verdict);
    }
}

fn validate_rule(rule: &At<'_>, completions: i64, verdict: &mut Verdict) {
    let (count, listed) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
    if !count.is_set() && !listed.is_set() {
        let rule_text = "at least one of succeededCount or succeededIndexes must be specified";
        verdict.required(rule.path(), rule_text);
    }
    let mut n_listed = None;
    if listed.is_set() {
        if listed.text().len() > INDEXES_LENGTH_MAX {
            verdict.too_long(listed.path(), INDEXES_LENGTH_MAX);
        }
        match indexes::parse(listed.text(), completions) {
            Ok(ranges) => n_listed = Some(indexes::count(&ranges)),
            Err(why) => {
                let rule = format!("error parsing succeededIndexes: {why}");
                verdict.invalid(listed.path(), listed.text(), rule);
            }
        }
    }
    job::not_negative(&count, verdict);
    let Some(number) = count.int() else { return };
    if number > completions {
        let rule =
            format!("must be less than or equal to {completions} (the number of specified completions)");
        verdict.invalid(count.path(), number, rule);
    }
    if let Some(n_listed) = n_listed.filter(|n_listed| number > *n_listed) {
        let what = "the number of indexes in the specified succeededIndexes field";
        verdict.invalid(count.path(), number, format!("must be less than or equal to {n_listed} ({what})"));
    }
}
