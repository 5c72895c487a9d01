//! Looks over an object: what a set of rules finds wrong with it.
//!
//! Rules name every place that they look at, and that takes longer than the looking. Most objects are right, so the first
//! look goes without names; only for an object with findings a second one says where they are.

use serde_json::Value;

use crate::json::At;
use crate::{Finding, Path, Verdict};

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
    let mut verdict = Verdict::default();
    rules(Path::unnamed(), &mut verdict);
    if verdict.refusals.is_empty() {
        return Vec::new();
    }
    let mut verdict = Verdict::default();
    rules(Path::default(), &mut verdict);
    verdict.refusals
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
}
