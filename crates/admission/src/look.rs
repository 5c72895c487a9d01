//! Looks over an object: what a set of rules finds wrong with it.
//!
//! Rules name every place that they look at, and that takes longer than the looking. Most objects are right, so the first
//! look goes without names; only for an object with findings a second one says where they are.
//!
//! **Invariant:** what the rules find does not depend on the names. Builds for tests check it at every look.

use serde_json::Value;

use crate::json::At;
use crate::{Finding, Path, Reason, Verdict};

/// What the rules find wrong with an object.
pub(crate) fn findings(object: &Value, rules: impl Fn(&At<'_>, &mut Verdict)) -> Vec<Finding> {
    look(|top, verdict| rules(&At::new(object, top), verdict))
}

/// What the rules find wrong with a changed object, given the one before it.
pub(crate) fn findings_of_change(
    new: &Value,
    old: &Value,
    rules: impl Fn(&At<'_>, &At<'_>, &mut Verdict),
) -> Vec<Finding> {
    look(|top, verdict| rules(&At::new(new, top.clone()), &At::new(old, top), verdict))
}

fn look(rules: impl Fn(Path, &mut Verdict)) -> Vec<Finding> {
    let look_from = |top: Path| {
        let mut verdict = Verdict::default();
        rules(top, &mut verdict);
        verdict.refusals
    };
    let unnamed = look_from(Path::unnamed());
    debug_assert_eq!(reasons(&unnamed), reasons(&look_from(Path::default())), "a rule depends on a name");
    if unnamed.is_empty() { unnamed } else { look_from(Path::default()) }
}

/// What was found, whatever the places are called.
fn reasons(findings: &[Finding]) -> Vec<Reason> {
    findings.iter().map(|finding| finding.reason).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A rule whose finding needs the name of its place.
    fn refuse_b(at: &At<'_>, verdict: &mut Verdict) {
        for item in at.items("a") {
            let field = item.get("b");
            if field.is_set() {
                verdict.forbidden(field.path(), "not here");
            }
        }
    }

    #[test]
    fn places_are_named_where_there_is_something_to_say() {
        assert_eq!(findings(&json!({"a": [{}, {"c": 1}]}), refuse_b), []);
        let found = findings(&json!({"a": [{}, {"b": 1}]}), refuse_b);
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["a[1].b: Forbidden: not here"]
        );
    }
    /// A rule that no object meets unless places have names.
    fn refuse_named(at: &At<'_>, verdict: &mut Verdict) {
        if at.get("a").path().as_str() == "a" {
            verdict.forbidden(at.path(), "named");
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic = "a rule depends on a name"]
    fn a_rule_that_depends_on_a_name_is_noticed() {
        findings(&json!({}), refuse_named);
    }
}
