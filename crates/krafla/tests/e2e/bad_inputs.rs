//! What users get wrong: each mistake has a message that names it, and an exit code that tells its kind.

use std::path::Path;

use crate::support::{krafla, text};

/// Wrong use.
const USAGE: i32 = 2;
/// The cluster cannot be reached.
const UNREACHABLE: i32 = 3;

/// Command lines, exit codes, and a part of the message. `DEAD` is a kubeconfig of a cluster that does not answer.
const MISTAKES: &[(&str, i32, &str)] = &[
    ("", USAGE, "Usage: krafla"),
    ("frobnicate", USAGE, "unrecognized subcommand 'frobnicate'"),
    ("gett", USAGE, "a similar subcommand exists: 'get'"),
    ("get --bogus", USAGE, "unexpected argument '--bogus'"),
    ("get --wacht", USAGE, "a similar argument exists: '--watch'"),
    ("get -o xml", USAGE, "invalid value 'xml' for '--output <FORMAT>'"),
    ("get -o", USAGE, "a value is required for '--output <FORMAT>'"),
    ("get job/a -A", USAGE, "--all-namespaces lists objects, and you name one"),
    ("get job a -A", USAGE, "fix: use --namespace"),
    ("get job/a -l x=y", USAGE, "--selector and --field-selector choose from all objects"),
    ("get job/a --field-selector x=y", USAGE, "--selector and --field-selector choose from all objects"),
    ("get job/a b", USAGE, "\"b\": name all objects as KIND/NAME"),
    ("get job/", USAGE, "\"job/\" is not of the form KIND/NAME"),
    ("get /a", USAGE, "\"/a\" is not of the form KIND/NAME"),
    ("get job/a/b", USAGE, "\"job/a/b\" is not of the form KIND/NAME"),
    ("get job ..", USAGE, "\"..\" is not the name of an object"),
    ("get job a%2Fb", USAGE, "\"a%2Fb\" is not the name of an object"),
    ("get job/..", USAGE, "\"..\" is not the name of an object"),
    ("get jobs,,pods", USAGE, "is not a list of kinds such as jobs,pods"),
    ("get ,", USAGE, "is not a list of kinds such as jobs,pods"),
    ("get --sort-by .a[", USAGE, "--sort-by: \".a[\" is not a path such as .metadata.name, nor a column"),
    ("get --sort-by {.a", USAGE, "is not a path such as .metadata.name, nor a column"),
    ("get", USAGE, "no cluster found; fix: start one with `krafla up`"),
    ("get --context x", USAGE, "no cluster found"),
    ("get --kubeconfig nothing", USAGE, "--kubeconfig: nothing: No such file or directory"),
    ("get --kubeconfig .", USAGE, "--kubeconfig: .: Is a directory"),
    ("get --kubeconfig garbage", USAGE, "--kubeconfig: garbage: not a kubeconfig"),
    ("get --kubeconfig empty", USAGE, "empty: current-context is not set"),
    ("get --kubeconfig DEAD --context x", USAGE, "context \"x\" does not exist; contexts: dead"),
    ("get --kubeconfig DEAD -n a/b", USAGE, "--namespace: \"a/b\" is not the name of a namespace"),
    ("get --kubeconfig DEAD --namespace=", USAGE, "--namespace: \"\" is not the name of a namespace"),
    ("get jobs,pods --watch --kubeconfig DEAD", USAGE, "--watch follows one kind"),
    ("logs", USAGE, "the following required arguments were not provided"),
    ("logs job --kubeconfig DEAD", USAGE, "name an object: job/NAME; `krafla get job` lists the names"),
    ("logs job/a --previous --attempt 1", USAGE, "--previous and --attempt both choose an attempt"),
    ("logs job/a -f --previous", USAGE, "--follow prints all attempts"),
    ("logs job/a -f --attempt 1", USAGE, "fix: leave out --previous and --attempt"),
    ("logs job/a --tail x", USAGE, "invalid value 'x' for '--tail <N>'"),
    ("logs job/a --tail=-1", USAGE, "invalid value '-1' for '--tail <N>'"),
    ("logs job/a --since abc", USAGE, "not a duration like 15s or 1m30s"),
    ("logs job/a --since 0s", USAGE, "must be positive"),
    ("logs job/a --attempt=-1", USAGE, "invalid value '-1' for '--attempt <N>'"),
    ("logs job/a", USAGE, "no cluster found"),
    ("wait", USAGE, "the following required arguments were not provided"),
    ("wait job --kubeconfig DEAD", USAGE, "name an object: job/NAME"),
    ("wait job/a --for=ready", USAGE, "want finished, create, delete, phase=NAME"),
    ("wait job/a --for=phase=", USAGE, "want finished, create, delete, phase=NAME"),
    ("wait job/a --for=delete=now", USAGE, "want finished, create, delete, phase=NAME"),
    ("wait job/a --for=condition=", USAGE, "want finished, create, delete, phase=NAME"),
    ("wait job/a --for=jsonpath={a}", USAGE, "is not a path such as {.status.phase}"),
    ("wait job/a --timeout x", USAGE, "not a duration like 15s or 1m30s"),
    ("wait job/a --timeout 0s", USAGE, "must be positive"),
    ("wait job/a -o yaml", USAGE, "invalid value 'yaml'"),
    ("delete", USAGE, "the following required arguments were not provided"),
    ("delete job --kubeconfig DEAD", USAGE, "name an object: job/NAME"),
    ("delete jobs a --all", USAGE, "--all and --selector need one kind and no names"),
    ("delete job/a --all", USAGE, "--all and --selector need one kind and no names"),
    ("delete job/a -l x=y", USAGE, "krafla delete jobs --all"),
    ("delete job/a --grace-period=-1", USAGE, "invalid value '-1' for '--grace-period <SECONDS>'"),
    ("delete job/a --grace-period x", USAGE, "invalid value 'x'"),
    ("delete job/a --timeout soon", USAGE, "not a duration like 15s or 1m30s"),
    ("suspend", USAGE, "the following required arguments were not provided"),
    ("suspend job --kubeconfig DEAD", USAGE, "name an object: job/NAME"),
    ("resume", USAGE, "the following required arguments were not provided"),
    ("restart", USAGE, "the following required arguments were not provided"),
    ("restart job/a/b --kubeconfig DEAD", USAGE, "is not of the form KIND/NAME"),
    ("queue", USAGE, "Usage: krafla queue"),
    ("queue frob", USAGE, "unrecognized subcommand 'frob'"),
    ("queue create", USAGE, "the following required arguments were not provided"),
    ("queue create a --weight x", USAGE, "invalid value 'x' for '--weight <N>'"),
    ("queue create a --weight=-1", USAGE, "invalid value '-1' for '--weight <N>'"),
    ("queue create a --capability cpu", USAGE, "want NAME=N"),
    ("queue create a --capability cpu=many", USAGE, "invalid value 'cpu=many'"),
    ("queue create a --deserved cpu=-1", USAGE, "must not be negative"),
    ("queue create a --guarantee =1", USAGE, "want NAME=N"),
    ("queue create a --reclaimable maybe", USAGE, "want true or false"),
    ("queue open", USAGE, "the following required arguments were not provided"),
    ("queue close", USAGE, "the following required arguments were not provided"),
    ("queue tree x", USAGE, "unexpected argument 'x'"),
    ("version x", USAGE, "unexpected argument 'x'"),
    ("version -o yaml", USAGE, "invalid value 'yaml'"),
    ("version", USAGE, "no cluster found"),
    ("top -o xml", USAGE, "invalid value 'xml'"),
    ("top x", USAGE, "unexpected argument 'x'"),
    ("graph", USAGE, "the following required arguments were not provided"),
    ("graph jobflow --kubeconfig DEAD", USAGE, "name an object: jobflow/NAME"),
    ("graph jobflow/a b", USAGE, "unexpected argument 'b'"),
    ("graph jobflow/a -o png", USAGE, "[possible values: text, svg, mermaid, json]"),
    ("completion", USAGE, "the following required arguments were not provided"),
    ("completion tcsh", USAGE, "[possible values: bash, zsh, fish]"),
    ("man", USAGE, "the following required arguments were not provided"),
    ("install-links", USAGE, "the following required arguments were not provided"),
    ("crds x", USAGE, "unexpected argument 'x'"),
    ("up --listen here", USAGE, "invalid value 'here' for '--listen <ADDR:PORT>'"),
    ("up --event-ttl 0s", USAGE, "must be positive"),
    ("up --simulate lots", USAGE, "invalid value 'lots' for '--simulate <SIZE>'"),
    ("up --capacity gpu", USAGE, "want NAME=N"),
    ("down --timeout x", USAGE, "not a duration like 15s or 1m30s"),
    ("status -o yaml", USAGE, "invalid value 'yaml'"),
    ("run", USAGE, "the following required arguments were not provided"),
    ("run nothing.yaml", USAGE, "nothing.yaml"),
    ("run --timeout x a.yaml", USAGE, "not a duration like 15s or 1m30s"),
    ("run --own-cluster --context x a.yaml", USAGE, "cannot be used with"),
    ("run --kubeconfig nothing empty", USAGE, "--kubeconfig: nothing: No such file or directory"),
    ("run --context x empty", USAGE, "no cluster found"),
    ("run garbage", USAGE, "garbage"),
    ("doctor -o xml", USAGE, "invalid value 'xml'"),
    ("doctor --kubeconfig nothing", USAGE, "--kubeconfig: nothing: No such file or directory"),
    ("backup", USAGE, "the following required arguments were not provided"),
    ("restore", USAGE, "the following required arguments were not provided"),
    ("get --kubeconfig DEAD", UNREACHABLE, "cannot use the cluster of context \"dead\" of"),
    ("get pods --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("get gadgets --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("get pod/a --kubeconfig DEAD", UNREACHABLE, "(http://127.0.0.1:1/)"),
    ("logs job/a --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("wait job/a --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("wait job/a --for=create --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("delete job/a --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("delete jobs --all --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("suspend job/a --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("resume job/a --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("restart job/a --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("queue create a --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("queue open a --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("queue tree --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("top --once --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("graph jobflow/a --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("version --kubeconfig DEAD", UNREACHABLE, "no connection"),
    ("status", UNREACHABLE, "no cluster is running in .krafla; fix: start one with `krafla up --detach`"),
];

/// Files that the command lines name.
fn prepare(dir: &Path) {
    let dead = "current-context: dead\ncontexts: [{name: dead, context: {cluster: a}}]\n\
                clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n";
    for (name, content) in [("DEAD", dead), ("garbage", "a: [\n"), ("empty", "")] {
        std::fs::write(dir.join(name), content).unwrap();
    }
}

#[test]
fn every_mistake_has_its_message_and_its_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let mut wrong = Vec::new();
    for (line, code, message) in MISTAKES {
        let mut command = krafla();
        command.args(line.split_whitespace()).current_dir(dir.path()).env("HOME", dir.path());
        for name in ["KUBERNETES_SERVICE_HOST", "HTTP_PROXY", "http_proxy"] {
            command.env_remove(name);
        }
        let output = command.output().unwrap();
        // The status of a cluster is what the command was asked for.
        let said = text(if *line == "status" { &output.stdout } else { &output.stderr });
        // The version of this program is known without a cluster.
        let is_quiet =
            output.stdout.is_empty() || ["status", "version"].iter().any(|it| line.starts_with(it));
        if output.status.code() != Some(*code) || !said.contains(message) || !is_quiet {
            wrong.push(format!(
                "krafla {line}\n  want {code}: {message}\n  got {:?}: {said}",
                output.status.code()
            ));
        }
        let vague = ["can not", "nobody", "somebody", "whoever"].iter().find(|word| said.contains(**word));
        wrong.extend(vague.map(|word| format!("krafla {line}: says {word:?}: {said}")));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), MISTAKES.len(), wrong.join("\n"));
    assert!(MISTAKES.len() >= 100);
}
