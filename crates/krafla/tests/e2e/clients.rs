//! Other people's client libraries against `krafla up`. Each client is a small program under `tests/clients` that prints
//! what it saw; `scripts/install-tools` makes them, and without them there is nothing to run.

use std::process::Command;

use expect_test::{Expect, expect};

use crate::support::{Up, repository_file, text};

/// Runs a client, if it is installed, and compares what it printed.
fn check(tool: &str, arguments: &[&str], expected: Expect) {
    let program = repository_file("target/tools").join(tool);
    if !program.exists() {
        return println!("{} is missing; scripts/install-tools makes it", program.display());
    }
    let up = Up::start();
    let output = Command::new(program)
        .args(arguments)
        .arg(up.file("kubeconfig"))
        .current_dir(repository_file("."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    expected.assert_eq(&text(&output.stdout));
}

#[test]
fn informers_of_client_go_see_every_change() {
    check(
        "bin/client-go",
        &[],
        expect![[r#"
            added a map[k:v]
            updated a map[k:w]
            cached 1
            deleted a map[k:w]
        "#]],
    );
}

#[test]
fn the_reflector_of_kube_rs_sees_every_change() {
    check(
        "bin/client-rust",
        &[],
        expect![[r#"
            created {"k": "v"}
            patched {"k": "w"}
            applied {"k": "w", "l": "x"}
            cached 1
            deleted {"k": "w", "l": "x"}
            missing: 404
            jobs ["j"]
            wrong job: 422
        "#]],
    );
}

#[test]
fn the_python_client_works() {
    check(
        "python/bin/python",
        &["tests/clients/python/check.py"],
        expect![[r#"
            created a {'k': 'v'}
            listed ['a']
            patched {'k': 'w'}
            stale: 409
            missing: 404
            watched ['ADDED', 'MODIFIED', 'DELETED']
            jobs ['j']
            wrong job: 422
        "#]],
    );
}
