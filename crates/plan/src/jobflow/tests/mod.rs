//! Decision tables: a flow and its world in a few lines, and the plan that follows.

mod fixture;
mod laws;
mod life;
mod ready;
mod upstream;
mod volcano;

use expect_test::Expect;

/// The plan for the world that `text` describes (see [`fixture`]).
fn check(text: &str, expected: Expect) {
    expected.assert_eq(&fixture::plan(text).to_string());
}
