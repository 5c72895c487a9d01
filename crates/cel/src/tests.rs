//! Expressions and what they come to, as tables; and laws that hold for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

const PLENTY: u64 = 1_000_000;

/// What the values of these tests look like: typed fields, and `any`, of which nothing is known.
fn type_of_self() -> Type {
    let field = |name: &str, of: Type| (name.to_owned(), FieldType { json_name: name.to_owned(), of });
    let ports = Type::list(Type::Int, Size(10));
    let set = Type::List(Arc::new(ListType { of: Type::String(Size(5)), size: Size(5), order: Order::Set }));
    let fields = BTreeMap::from([
        field("n", Type::Int),
        field("name", Type::String(Size(20))),
        field("ratio", Type::Double),
        field("ports", ports),
        field("tags", set),
        field("labels", Type::map(Type::TEXT, Type::TEXT, Size(5))),
        field("at", Type::Timestamp),
        field("wait", Type::Duration),
        field("any", Type::Dyn),
        ("__namespace__".to_owned(), FieldType { json_name: "namespace".to_owned(), of: Type::TEXT }),
    ]);
    Type::Object(Arc::new(ObjectType { name: "self".to_owned(), fields }))
}

fn sample() -> Json {
    json!({
        "n": 3, "name": "web-1", "ratio": 0.5, "ports": [80, 443], "tags": ["a", "b"], "labels": {"app": "web"},
        "at": "2026-11-16T02:03:04Z", "wait": "90s", "any": {"x": [1, "two"]}, "namespace": "default",
    })
}

/// What an expression comes to, or why it does not.
fn outcome(source: &str, json: &Json, units: u64) -> String {
    let of = type_of_self();
    let program = match Program::compile(source, &[("self".to_owned(), of.clone())]) {
        Ok(program) => program,
        Err(error) => return error.to_string().lines().next().unwrap_or_default().to_owned(),
    };
    let variables = [("self", Value::from_json(json, &of))];
    match program.evaluate(&variables, &mut Budget::new(units)) {
        Ok(value) => shown(&value),
        Err(error) => format!("error: {error}"),
    }
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::String(text) => format!("{:?}", &**text),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => format!("{number:?}"),
        Value::Bool(value) => value.to_string(),
        Value::List(list) => {
            format!("[{}]", list.iter().map(|item| shown(&item)).collect::<Vec<_>>().join(", "))
        }
        Value::Map(map) => {
            let entries = map.entries();
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{key}: {}", shown(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Optional(None) => "none".to_owned(),
        Value::Optional(Some(value)) => format!("some({})", shown(value)),
        other => format!("{other:?}"),
    }
}

/// Each row is an expression and what it comes to.
fn check(rows: &[(&str, &str)]) {
    let json = sample();
    for (source, expected) in rows {
        assert_eq!(outcome(source, &json, PLENTY), *expected, "{source}");
    }
}

#[test]
fn operators_bind_as_everywhere() {
    check(&[
        ("1 + 2 * 3 == 7 && !false", "true"),
        ("-self.n + 10 % 4", "-1"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("0x10 + 1", "17"),
        ("self.n > 2 ? 'big' : 'small'", "\"big\""),
        ("false ? 1 : true ? 2 : 3", "2"),
        ("'a' + \"b\" + r'\\n' + '''c'''", "\"ab\\\\nc\""),
        ("'\\u00e4\\x41\\101'", "\"äAA\""),
        ("1.5e1 + .5", "15.5"),
        ("[1, 2] + [3]", "[1, 2, 3]"),
        ("{'a': 1}.a + {'b': 2}['b']", "3"),
        ("2 in [1, 2] && 'app' in self.labels", "true"),
        ("1 < 1.5 && 2u > 1", "true"),
        ("// why\n1", "1"),
        ("self.__namespace__", "\"default\""),
        ("self.`name`", "\"web-1\""),
        ("type(self.n) == int", "true"),
    ]);
}

#[test]
fn errors_are_told_only_if_they_matter() {
    check(&[
        ("1 / 0 == 1", "error: division by zero"),
        ("1 / 0 == 1 || true", "true"),
        ("false && 1 / 0 == 1", "false"),
        ("1 / 0 == 1 && false", "false"),
        ("9223372036854775807 + 1", "error: integer overflow"),
        ("self.labels['no']", "error: no such key: no"),
        ("self.ports[2]", "error: index out of bounds: 2"),
        ("self.any.y", "error: no such key: y"),
        ("self.any.x + 1", "error: no such overload"),
        ("[0, 2].all(x, 4 / x > 1) || true", "true"),
        ("[0, 5].all(x, 4 / x > 1)", "false"),
        ("[0, 1].exists(x, 4 / x > 1)", "true"),
        ("[0].exists(x, 4 / x > 1)", "error: division by zero"),
    ]);
}

#[test]
fn macros_look_at_every_element() {
    check(&[
        ("has(self.n) && !has(self.labels.x)", "true"),
        ("self.ports.all(p, p > 0 && p < 65536)", "true"),
        ("self.ports.exists_one(p, p == 80)", "true"),
        ("self.ports.map(p, p * 2)", "[160, 886]"),
        ("self.ports.map(p, p > 80, string(p))", "[\"443\"]"),
        ("self.labels.all(k, self.labels[k] == 'web')", "true"),
        ("self.labels.map(k, k)", "[\"app\"]"),
        ("self.ports.filter(p, p < 100)", "[80]"),
        ("self.ports.all(i, p, i < 2 && p > 0)", "true"),
        ("self.ports.transformList(i, p, i + p)", "[80, 444]"),
        ("self.labels.transformMap(k, v, k + v)", "{app: \"appweb\"}"),
        ("self.any.x.exists(x, x == 'two')", "true"),
    ]);
}

#[test]
fn sets_are_equal_in_any_order() {
    check(&[
        ("self.tags == ['b', 'a']", "true"),
        ("self.ports == [443, 80]", "false"),
        ("self.tags + ['b', 'c']", "[\"a\", \"b\", \"c\"]"),
        ("sets.contains([1, 2, 3], [3, 1])", "true"),
        ("sets.equivalent([1, 1, 2], [2, 1])", "true"),
        ("sets.intersects([1], [2])", "false"),
    ]);
}

#[test]
fn texts_have_kubernetes_functions() {
    check(&[
        ("self.name.startsWith('web') && self.name.endsWith('1') && self.name.contains('-')", "true"),
        ("self.name.matches('^[a-z]+-[0-9]+$')", "true"),
        ("self.name.matches('(')", "ERROR: <input>:1:19: invalid matches argument"),
        ("'äbc'.charAt(1) + 'äbc'.substring(1, 2) + 'äbc'.substring(2)", "\"bbc\""),
        ("'tacocat'.indexOf('a', 2)", "5"),
        ("'tacocat'.lastIndexOf('a')", "5"),
        ("'tacocat'.lastIndexOf('c', 3)", "2"),
        ("'a,b,c'.split(',', 2)", "[\"a\", \"b,c\"]"),
        ("['a', 'b'].join('-')", "\"a-b\""),
        ("'hello'.replace('l', 'L', 1).upperAscii()", "\"HELLO\""),
        ("' x '.trim().size()", "1"),
        ("'abc 123 45'.findAll('[0-9]+')", "[\"123\", \"45\"]"),
        ("'%s has %d of %.1f in %s'.format(['a', 2, 0.5, [1, 2]])", "\"a has 2 of 0.5 in [1, 2]\""),
        ("'abc'.substring(2, 1)", "error: invalid substring range. start: 2, end: 1"),
    ]);
}

#[test]
fn other_types_have_kubernetes_functions() {
    check(&[
        ("quantity('1Gi').isGreaterThan(quantity('1000Mi')) && !isQuantity('x')", "true"),
        ("quantity('1500m').isInteger()", "false"),
        ("quantity('2k').add(quantity('1')).asInteger()", "2001"),
        ("semver('1.2.3-alpha.1').isLessThan(semver('1.2.3'))", "true"),
        ("isSemver('1.02.3')", "false"),
        ("url('https://a.b:80/x?y=1').getHostname() + url('https://a.b:80/x').getPort()", "\"a.b80\""),
        ("url('https://h/?a=1&a=%32').getQuery()", "{a: [\"1\", \"2\"]}"),
        ("isURL('a b')", "false"),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isIP('::ffff:1.2.3.4')", "true"),
        ("string(cidr('10.1.2.3/16').masked())", "\"10.1.0.0/16\""),
        ("ip('127.0.0.1').isLoopback() && ip('::1').family() == 6", "true"),
        ("format.dns1123Label().validate('A')", "some([\"must be a valid dns1123Label\"])"),
        ("format.named('uuid').hasValue()", "true"),
        ("[1, 3, 2].max() + [1, 3, 2].min() + [1, 2].sum()", "7"),
        ("[1, 2, 2].isSorted() && [3, 1].indexOf(1) == 1", "true"),
        ("self.at.getHours() + self.at.getMonth()", "12"),
        ("self.at + self.wait > timestamp('2026-11-16T02:04:00Z')", "true"),
        ("string(self.wait) + string(duration('1.5s'))", "\"90s1.5s\""),
        ("self.at.getHours('+02:00')", "4"),
        ("optional.of(1).orValue(2) + optional.none().orValue(3)", "4"),
    ]);
}

#[test]
fn optionals_may_be_absent() {
    check(&[
        ("self.labels[?'app']", "some(\"web\")"),
        ("self.labels[?'no'].orValue('-')", "\"-\""),
        ("optional.of(self.n).optMap(n, n + 1)", "some(4)"),
        ("self.?labels.?app", "some(\"web\")"),
        ("self.any.?y.hasValue()", "false"),
        ("optional.none().hasValue()", "false"),
        ("optional.none().value()", "error: optional.none() dereference"),
    ]);
}

#[test]
fn what_cannot_be_is_told_with_its_place() {
    check(&[
        (
            "self.n == 'a'",
            "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(int, string)'",
        ),
        ("self.nope", "ERROR: <input>:1:5: undefined field 'nope'"),
        ("nope", "ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')"),
        ("self.n.x", "ERROR: <input>:1:7: type 'int' does not support field selection"),
        (
            "self.name.size(1)",
            "ERROR: <input>:1:15: found no matching overload for 'size' applied to 'string.(int)'",
        ),
        (
            "self.n.all(x, true)",
            "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("self.ports.all(p, p)", "ERROR: <input>:1:19: expected type 'bool' but found 'int'"),
        ("self.n && true", "ERROR: <input>:1:5: expected type 'bool' but found 'int'"),
        (
            "true ? 1 : 'a'",
            "ERROR: <input>:1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'",
        ),
        ("self.", "ERROR: <input>:1:6: Syntax error: no viable alternative at input '.'"),
        ("(1", "ERROR: <input>:1:3: Syntax error: mismatched input '<EOF>' expecting ')'"),
        ("1 1", "ERROR: <input>:1:3: Syntax error: mismatched input '1' expecting <EOF>"),
        ("'a", "ERROR: <input>:1:1: Syntax error: token recognition error at: ''', the text has no end"),
        ("has(1)", "ERROR: <input>:1:5: invalid argument to has() macro"),
        ("\n  nope", "ERROR: <input>:2:3: undeclared reference to 'nope' (in container '')"),
    ]);
}

#[test]
fn a_fault_is_shown_under_its_line() {
    let error = Program::compile("self >", &[("self".to_owned(), Type::Int)]).unwrap_err().to_string();
    assert!(error.ends_with("IDENTIFIER}\n | self >\n | ......^"), "{error}");
}

#[test]
fn a_rule_ends_when_its_budget_does() {
    let source =
        "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a + b + c > 0)))";
    assert_eq!(outcome(source, &sample(), PLENTY), "true");
    assert_eq!(outcome(source, &sample(), 500), "error: operation cancelled: actual cost limit exceeded");
}

#[test]
fn a_regular_expression_costs_by_what_it_compiles_to() {
    let text = "a".repeat(200_000);
    let json = json!({"name": text});
    let over = "operation cancelled: actual cost limit exceeded";
    for (pattern, is_dear) in [("^[a-z]*$", false), ("^[a-z]{0,1000}[a-c]*[d-f]{0,1000}$", true)] {
        let shown = outcome(&format!("self.name.matches('{pattern}')"), &json, 1_000_000);
        assert_eq!(shown.contains(over), is_dear, "{pattern}: {shown}");
    }
    let shown = outcome("self.name.findAll('.*[^A-Z]b|[a-z]').size() > 0", &json, 10_000);
    assert!(shown.contains(over), "{shown}");
}

#[test]
fn what_could_take_long_is_known_before() {
    let cost = |source: &str, of: Type| {
        Program::compile(source, &[("self".to_owned(), of)]).unwrap().estimated_cost()
    };
    let texts = |size: u64| Type::list(Type::String(Size(10)), Size(size));
    let nested = "self.all(a, self.all(b, self.all(c, a == b && b == c)))";
    assert!(cost(nested, texts(10)) < 20_000);
    assert!(cost(nested, texts(1_000_000)) > 1_000_000_000_000);
    assert_eq!(cost("self > 3", Type::Int), 2);
    assert!(cost("'got ' + string(self)", Type::Int) > 1_000_000_000);
    assert!(cost("'is ' + (self > 0 ? 'positive' : 'negative')", Type::Int) < 10);
}

#[test]
fn deep_and_long_expressions_are_refused_and_not_followed() {
    let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
    let chained = format!("1{}", "+1".repeat(5000));
    let fields = format!("self{}", ".any".repeat(5000));
    let negated = format!("{}true", "!".repeat(5000));
    for source in [deep, chained, fields, negated] {
        let answer = outcome(&source, &sample(), PLENTY);
        assert!(answer.contains("expression recursion limit exceeded"), "{answer}");
    }
    let many = format!("true{}", " && true".repeat(5000));
    assert_eq!(outcome(&many, &sample(), PLENTY), "true");
    let long = "1".repeat(200_000);
    assert_eq!(
        outcome(&long, &sample(), PLENTY),
        "expression code point size exceeds limit: size: 200000, limit 100000"
    );
}

/// Pieces of expressions, put together at random: most make no sense, some do.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "self",
        ".n",
        ".name",
        ".any",
        ".ports",
        "1",
        "'a'",
        "0.5",
        "+",
        "-",
        "*",
        "/",
        "%",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "?",
        ":",
        ",",
        "==",
        "<",
        "&&",
        "||",
        "!",
        " in ",
        ".all(x, ",
        "x",
        ".size()",
        "has(",
        "true",
        "null",
        "[?",
        ".?",
        ".matches('(')",
        ".map(x, x)",
        "duration('1s')",
        "9223372036854775807",
        "b'a'",
        "`",
        "'",
        "\\",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_that_is_written_breaks_it(source in prop_oneof![any::<String>(), pieces()]) {
        outcome(&source, &sample(), 10_000);
    }

    #[test]
    fn whole_numbers_add_up_or_overflow(left: i64, right: i64) {
        let expected = match left.checked_add(right) {
            Some(sum) => sum.to_string(),
            None => "error: integer overflow".to_owned(),
        };
        prop_assert_eq!(outcome(&format!("({left}) + ({right})"), &sample(), PLENTY), expected);
    }

    #[test]
    fn every_text_can_be_written_and_read(text in "[^\\x00-\\x1f]*") {
        let quoted = format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
        prop_assert_eq!(outcome(&quoted, &sample(), PLENTY), format!("{text:?}"));
    }
}

#[test]
fn expressions_build_objects_where_that_is_allowed() {
    let built = |source: &str| {
        let program = crate::Program::compile_building(source, &[], crate::Builds::Patches);
        let program = program.map_err(|error| error.to_string())?;
        let of = program.result_type().to_string();
        let value = program.evaluate(&[], &mut Budget::new(1000)).map_err(|error| error.to_string())?;
        Ok::<_, String>((of, value.to_json().unwrap()))
    };
    let expected = json!({"spec": {"replicas": 3, "a-b": [1, 2]}, "metadata": {"labels": {"k": "v"}}});
    let source = "Object{spec: Object.spec{replicas: 1 + 2, `a-b`: [?optional.none(), 1, ?optional.of(2)]}, \
                  metadata: Object.metadata{labels: {'k': 'v', ?'l': optional.none()}, ?name: optional.none()}}";
    assert_eq!(built(source), Ok(("Object".to_owned(), expected)));
    let source = "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('b/~c'), value: [Object.x{y: 1}]}]";
    let expected = json!([{"op": "add", "path": "/a/b~1~0c", "value": [{"y": 1}]}]);
    assert_eq!(built(source), Ok(("list(JSONPatch)".to_owned(), expected)));
    let fault = |source: &str| built(source).unwrap_err().lines().next().unwrap().to_owned();
    assert_eq!(
        fault("JSONPatch{op: 1}"),
        "ERROR: <input>:1:13: expected type of field 'op' is 'string' but provided type is 'int'"
    );
    assert_eq!(fault("Other{a: 1}"), "ERROR: <input>:1:6: undeclared reference to 'Other' (in container '')");
    let plain = Program::compile("Object{a: 1}", &[]).unwrap_err().to_string();
    assert!(plain.starts_with("ERROR: <input>:1:7: undeclared reference to 'Object'"), "{plain}");
}
