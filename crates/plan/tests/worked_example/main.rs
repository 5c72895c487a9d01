//! The worked example of CONTRIBUTING.md is real code: it compiles, it works, and the page shows it as it is.

mod job_count;

use std::sync::Arc;

use expect_test::expect;
use krafla_api::{Key, Kind};
use krafla_plan::{Controller, Object, Objects, Snapshot};

#[test]
fn a_namespace_learns_how_many_jobs_it_has() {
    let mut objects = Objects::default();
    for (kind, json) in [
        (Kind::Namespace, r#"{"metadata":{"name":"team","uid":"1"}}"#),
        (Kind::VcJob, r#"{"metadata":{"namespace":"team","name":"a","uid":"2"}}"#),
        (Kind::VcJob, r#"{"metadata":{"namespace":"team","name":"b","uid":"3"}}"#),
        (Kind::VcJob, r#"{"metadata":{"namespace":"other","name":"c","uid":"4"}}"#),
    ] {
        objects.insert(Arc::new(Object::decode(kind, json.as_bytes())));
    }
    let key = Key::new("", "team");
    let now = krafla_api::Time::from_seconds(0);
    let plan = job_count::JobCount.plan(&Snapshot::new(Kind::Namespace, &key, now, &objects));
    expect![[r#"
        patch namespace team {"metadata":{"annotations":{"krafla.dev/job-count":"2"}}}
    "#]]
    .assert_eq(&plan.to_string());
}

#[test]
fn contributing_shows_this_code() {
    let page = include_str!("../../../../CONTRIBUTING.md");
    assert!(
        page.contains(include_str!("job_count.rs")),
        "copy tests/worked_example/job_count.rs into CONTRIBUTING.md"
    );
}
