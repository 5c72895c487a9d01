//! What `krafla run` reads, and where its containers start.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use crate::support::{job, krafla, text};

const GREETING: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {WORD: hello}\n";

/// A job that says what a ConfigMap holds.
fn greeter() -> String {
    let from = "name: main, envFrom: [{configMapRef: {name: greeting}}], ";
    job("greeter", 1, "echo $WORD", "").replace("name: main, ", from)
}

fn directory_with(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

/// Runs what is there, and returns the lines that its pods wrote.
fn said(dir: &Path, args: &[&str]) -> Vec<String> {
    let output = krafla().current_dir(dir).args(["run", "--logs"]).args(args).output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    let logs = stdout.lines().filter_map(|line| line.strip_prefix("[")?.split_once("] "));
    logs.map(|(_, line)| line.to_owned()).collect()
}

#[test]
fn a_directory_stands_for_the_manifests_in_it() {
    let files = [
        ("1-greeting.yml", GREETING),
        ("2-greeter.yaml", &greeter()),
        ("notes.txt", "this: is: no: manifest"),
    ];
    let dir = directory_with(&files);
    assert_eq!(said(dir.path(), &["."]), ["hello"]);
    assert_eq!(
        said(dir.path(), &["-f", "1-greeting.yml", "-f", "2-greeter.yaml"]),
        ["hello"],
        "as kubectl does"
    );
}

#[test]
fn directories_below_are_read_if_that_is_asked_and_else_said_to_be_left_out() {
    let dir = directory_with(&[("2-greeter.yaml", &greeter())]);
    std::fs::create_dir(dir.path().join("below")).unwrap();
    std::fs::write(dir.path().join("below/1-greeting.yml"), GREETING).unwrap();
    assert_eq!(said(dir.path(), &["-R", "."]), ["hello"]);
    std::fs::write(dir.path().join("2-greeter.yaml"), job("a", 1, "true", "")).unwrap();
    let output = krafla().current_dir(dir.path()).args(["run", "."]).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(
        stderr,
        "krafla: .: subdirectories with manifests, such as ./below, are skipped; -R reads them\n"
    );
}

#[test]
fn standard_input_may_hold_many_documents() {
    let mut run = krafla()
        .args(["run", "--logs", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let documents = format!("{GREETING}---\n{}", greeter());
    run.stdin.take().unwrap().write_all(documents.as_bytes()).unwrap();
    let output = run.wait_with_output().unwrap();
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    assert!(lines.contains("[greeter-work-0] hello\n"), "{lines}");
}

#[test]
fn every_form_that_kubectl_reads_is_read() {
    let marked = format!("%YAML 1.2\n---\n{GREETING}...\n");
    let job = |name: &str| {
        let container = r#"{"name":"main","image":"any","command":["sh","-c","echo $WORD"],
            "envFrom":[{"configMapRef":{"name":"greeting"}}]}"#;
        format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"template":{{"spec":{{"restartPolicy":"Never","containers":[{container}]}}}}}}}}"#
        )
    };
    let list = |name| format!(r#"{{"apiVersion":"batch/v1","kind":"JobList","items":[{}]}}"#, job(name));
    let dir = directory_with(&[("1.yaml", &marked), ("2.json", &format!("{}{}\n", list("a"), list("b")))]);
    assert_eq!(said(dir.path(), &["."]), ["hello", "hello"]);
}

#[test]
fn what_holds_no_manifest_is_named() {
    let dir = directory_with(&[("notes.txt", ""), ("empty.yaml", ""), ("words.yaml", "just some words\n")]);
    std::fs::create_dir(dir.path().join("notes")).unwrap();
    std::fs::write(dir.path().join("noise.yaml"), [0, 159, 146, 150]).unwrap();
    for (file, expected) in [
        ("empty.yaml", "no objects found in empty.yaml: a manifest needs at least apiVersion, kind"),
        ("notes", "notes: it contains no manifests: no file in it ends in .yaml, .yml or .json"),
        (
            "words.yaml",
            "words.yaml: it is not a manifest: expected a map with apiVersion, kind, metadata and spec",
        ),
        ("noise.yaml", "noise.yaml: cannot read it: it is not text: a manifest is YAML or JSON"),
        ("nowhere.yaml", "nowhere.yaml: cannot read it: No such file"),
    ] {
        let message = refused(dir.path(), file);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn what_can_not_be_used_is_said_before_anything_is_made() {
    let elsewhere = job("a", 1, "true", "").replace("{name: a}", "{name: a, namespace: shop}");
    let dir = directory_with(&[("job.yaml", &job("a", 1, "true", "")), ("elsewhere.yaml", &elsewhere)]);
    let message = refused(dir.path(), "elsewhere.yaml");
    let expected = "elsewhere.yaml: metadata.namespace: namespaces \"shop\" not found: add the Namespace to the files, or use another one";
    assert!(message.contains(expected), "{message}");
    let message = refused(dir.path(), "-");
    assert!(message.contains("no objects found in standard input"), "{message}");
    for args in [["run", "--workdir", "nowhere", "job.yaml"], ["up", "--in-memory", "--workdir", "nowhere"]] {
        let output = krafla().current_dir(dir.path()).args(args).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("--workdir: nowhere is not a directory"), "{message}");
    }
    let output = krafla()
        .current_dir(dir.path())
        .args(["run", "--kubeconfig", "nowhere", "job.yaml"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "krafla: --kubeconfig: nowhere: No such file or directory (os error 2)\n"
    );
}

#[test]
fn a_kubeconfig_variable_that_names_no_cluster_is_not_passed_over_in_silence() {
    let dir = directory_with(&[("job.yaml", &job("a", 1, "true", ""))]);
    let run = |variable: &str| {
        let mut command = krafla();
        command.current_dir(dir.path()).args(["run", "job.yaml"]).env("KUBECONFIG", variable);
        let output = command.output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let expected = "krafla: KUBECONFIG: file nowhere does not exist; using an embedded cluster instead\n";
    assert_eq!(run("nowhere"), (Some(0), expected.to_owned()));
    let dir = directory_with(&[("junk", "just some words")]);
    let (code, message) = run(dir.path().join("junk").to_str().unwrap());
    assert!(code == Some(2) && message.contains("junk: not a kubeconfig"), "{message}");
}

#[test]
fn a_place_that_is_missing_is_named_with_the_remedy() {
    let dir = directory_with(&[("job.yaml", &job("a", 1, "true", ""))]);
    let file = dir.path().join("job.yaml");
    let output = krafla().args(["run"]).arg(&file).env("TMPDIR", "/nowhere").output().unwrap();
    let message = text(&output.stderr);
    let expected = "krafla: TMPDIR: cannot create files in /nowhere (it is not a directory); \
        fix: create it, or use another one that you may write to\n";
    assert_eq!((output.status.code(), message.as_str()), (Some(2), expected));

    let gone = dir.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    for args in [format!("run {}", file.display()), "up --in-memory".to_owned()] {
        let mut command = std::process::Command::new("sh");
        let script = format!("rmdir {} && exec {} {args}", gone.display(), krafla().get_program().display());
        let output =
            command.current_dir(&gone).args(["-c", &script]).env_remove("KUBECONFIG").output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("the current directory does not exist"), "{message}");
        assert!(message.contains("change to an existing directory with `cd`"), "{message}");
        std::fs::create_dir(&gone).unwrap();
    }
}

/// What is said of a file that is not accepted, before anything has been made.
fn refused(dir: &Path, file: &str) -> String {
    let output = krafla().current_dir(dir).args(["run", file]).stdin(Stdio::null()).output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((output.status.code(), stdout.as_str()), (Some(2), ""), "{file}: {stderr}");
    stderr
}

/// Objects of kinds that no controller here knows, and last of all what they need; the job before them needs all of it.
pub(crate) fn of_many_kinds() -> String {
    let others = "
---
{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: shop}, size: 3}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: shop}, rules: []}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: shop},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: []}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: shop}, spec: {hard: {pods: '5'}}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: shop}, spec: {limits: [{type: Container, default: {cpu: 10m}}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: shop}, spec: {selector: {matchLabels: {a: b}},
 template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: v}, spec: {
 matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]},
 validations: [{expression: 'true'}]}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {
 group: example.com, scope: Namespaced, names: {plural: widgets, kind: Widget}, versions: [{name: v1, served: true, storage: true,
 schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
";
    job("a", 1, "true", "").replace("{name: a}", "{name: a, namespace: shop}") + others
}

pub(crate) const MADE_IN_ORDER: [&str; 10] = [
    "customresourcedefinition/widgets.example.com created",
    "namespace/shop created",
    "widget/w created",
    "role/r created",
    "rolebinding/b created",
    "resourcequota/q created",
    "limitrange/l created",
    "validatingadmissionpolicy/v created",
    "deployment/d created",
    "job/a created",
];

#[test]
fn any_kind_is_made_and_what_others_need_comes_first() {
    let dir = directory_with(&[("all.yaml", &of_many_kinds())]);
    let output = krafla().current_dir(dir.path()).args(["run", "all.yaml"]).output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    let made: Vec<&str> = stdout.lines().filter(|line| line.ends_with(" created")).collect();
    assert_eq!(made, MADE_IN_ORDER);
    assert!(
        stdout
            .contains("deployment/d: it is stored, but no controller here creates the pods of a Deployment"),
        "{stdout}"
    );
}

#[test]
fn a_kind_that_nobody_serves_is_refused_before_anything_is_made() {
    let unknown = "---\n{apiVersion: example.com/v1, kind: Sprocket, metadata: {name: g}}\n";
    let dir = directory_with(&[
        ("unknown.yaml", &(of_many_kinds() + unknown)),
        ("misspelt.yaml", &of_many_kinds().replace("size: 3", "sise: 3")),
        ("alone.yaml", GREETING),
    ]);
    let message = refused(dir.path(), "unknown.yaml");
    let expected = "unknown.yaml, document 11: the cluster does not serve example.com/v1 Sprocket; add the CustomResourceDefinition";
    assert!(message.contains(expected), "{message}");
    let message = refused(dir.path(), "misspelt.yaml");
    assert!(
        message.contains("misspelt.yaml, document 2: unknown field sise, did you mean size?"),
        "{message}"
    );
    let message = refused(dir.path(), "alone.yaml");
    assert!(message.contains("the files contain nothing to wait for"), "{message}");
}

#[test]
fn two_objects_of_one_name_are_refused_before_either_is_made() {
    let dir = directory_with(&[
        ("twice.yaml", &format!("{}---{}", job("a", 1, "true", ""), job("a", 2, "true", ""))),
        ("1.yaml", GREETING),
        ("2.yaml", &format!("{GREETING}---{}", greeter())),
    ]);
    let message = refused(dir.path(), "twice.yaml");
    let expected = "twice.yaml, document 2: metadata.name: Job a is already in twice.yaml, document 1: rename one of them";
    assert!(message.contains(expected), "{message}");
    let message = refused(dir.path(), ".");
    assert!(message.contains("ConfigMap greeting is already in ./1.yaml"), "{message}");
}

#[test]
fn a_large_file_is_read_and_what_is_too_large_is_named() {
    let comment = format!("# {}\n", "x".repeat(10 << 20));
    let large = format!("{comment}{}", job("a", 1, "echo fine", ""));
    let map = GREETING.replace("hello", &"x".repeat(10 << 20));
    let list = "- [1, 2, 3, 4, 5, 6, 7, 8, 9]\n".repeat(100_000);
    let dir = directory_with(&[
        ("large.yaml", &large),
        ("map.yaml", &format!("{map}---{}", job("a", 1, "true", ""))),
        ("list.yaml", &list),
    ]);
    assert_eq!(said(dir.path(), &["large.yaml"]), ["fine"]);
    let message = refused(dir.path(), "map.yaml");
    assert!(message.contains("map.yaml, document 1: ConfigMap \"greeting\" is invalid"), "{message}");
    assert!(message.contains("may not be more than 1048576 bytes"), "{message}");
    let message = refused(dir.path(), "list.yaml");
    assert!(message.contains("list.yaml: it is too large for one manifest"), "{message}");
}

#[test]
fn containers_start_where_the_run_was_called_or_where_it_says() {
    let dir = directory_with(&[("job.yaml", &job("a", 1, "cat data", "")), ("data", "beside\n")]);
    std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
    std::fs::write(dir.path().join("elsewhere/data"), "elsewhere\n").unwrap();
    assert_eq!(said(dir.path(), &["job.yaml"]), ["beside"]);
    assert_eq!(said(dir.path(), &["--workdir", "elsewhere", "job.yaml"]), ["elsewhere"]);
}
