//! Conditions of a webhook: expressions that say, beyond rules and selectors, which requests it is asked about.

use krafla_admission::policy::{Environment, type_of};
use krafla_admission::webhook::Condition;
use krafla_cel::{Budget, Builds, CompileError, Program, Value as CelValue};
use krafla_schema::object;
use serde_json::Value;

/// The names that conditions can use, and where in a question they are found.
const VARIABLES: [(&str, &str); 4] =
    [("object", "/object"), ("oldObject", "/oldObject"), ("request", ""), ("namespaceObject", "/nothing")];
/// What all conditions of one webhook may cost for one request.
const COST_MAX: u64 = 2_500_000;

/// The conditions of one webhook, by the names by which messages call them.
pub(super) struct Conditions(Vec<(String, Result<Program, CompileError>)>);

impl Conditions {
    pub(super) fn of(conditions: &[Condition]) -> Conditions {
        let read = |Condition { name, expression }: &Condition| {
            (name.clone(), Environment::of_webhooks().compile(expression, Builds::Nothing))
        };
        Conditions(conditions.iter().map(read).collect())
    }

    /// Whether all of them hold for the request of a question. One that does not settles it, whatever the others come to.
    pub(super) fn hold(&self, request: &Value) -> Result<bool, String> {
        let mut budget = Budget::new(COST_MAX);
        let mut failure = None;
        for (name, program) in &self.0 {
            let program = program.as_ref().map_err(|error| format!("condition {name:?}: {error}"))?;
            let scope = VARIABLES.map(|(name, pointer)| {
                (name, CelValue::from_json(object::at(request, pointer), type_of(name)))
            });
            match program.evaluate(&scope, &mut budget) {
                Ok(CelValue::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(error) => failure = Some(format!("condition {name:?}: {error}")),
            }
        }
        failure.map_or(Ok(true), Err)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(expressions: &[&str], expected: Result<bool, &str>) {
        let condition =
            |expression: &&str| Condition { name: "c".into(), expression: (*expression).to_owned() };
        let conditions: Vec<Condition> = expressions.iter().map(condition).collect();
        let request = json!({"operation": "CREATE", "object": {"data": {"k": "v"}}, "oldObject": null});
        let held = Conditions::of(&conditions).hold(&request);
        assert_eq!(held, expected.map_err(str::to_owned), "{expressions:?}");
    }

    #[test]
    fn all_conditions_must_hold_and_one_that_does_not_settles_it() {
        check(&[], Ok(true));
        check(&["object.data.k == 'v'", "request.operation == 'CREATE'", "oldObject == null"], Ok(true));
        check(&["object.data.k == 'v'", "has(object.spec)"], Ok(false));
        check(&["object.data.missing == 'v'"], Err("condition \"c\": no such key: missing"));
        check(&["object.data.missing == 'v'", "false"], Ok(false));
    }
}
