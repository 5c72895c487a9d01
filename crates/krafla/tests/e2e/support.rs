//! A krafla cluster for one test, and the real kubectl pointed at it.

use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The krafla binary under test, knowing of no cluster.
pub(crate) fn krafla() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_krafla"));
    command.env_remove("KUBECONFIG");
    command
}

/// A file of the repository.
pub(crate) fn repository_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// A Volcano Job of one task, all of whose pods must run a shell command; `more` is further lines of its spec.
pub(crate) fn job(name: &str, replicas: u32, script: &str, more: &str) -> String {
    format!(
        r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  minAvailable: {replicas}
{more}
  tasks:
    - name: work
      replicas: {replicas}
      template:
        spec:
          restartPolicy: Never
          containers: [{{name: main, image: any, command: [sh, -c, '{script}']}}]
"#
    )
}

/// kubectl: `KRAFLA_KUBECTL`, or what `scripts/install-tools` built.
pub(crate) fn kubectl_path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let named = std::env::var_os("KRAFLA_KUBECTL").map(PathBuf::from);
        let path = named.unwrap_or_else(|| repository_file("target/tools/bin/kubectl"));
        assert!(path.exists(), "{} is missing: run scripts/install-tools first", path.display());
        path
    })
}

/// The real kubectl, pointed at a cluster.
pub(crate) struct Kubectl {
    /// Holds the kubeconfig, and whatever kubectl leaves behind.
    dir: PathBuf,
}

impl Kubectl {
    /// For the cluster whose `kubeconfig` is in this directory.
    pub(crate) fn in_dir(dir: &Path) -> Kubectl {
        Kubectl { dir: dir.to_owned() }
    }

    /// Where the cluster's kubeconfig is.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// Runs kubectl against the cluster.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Output {
        self.kubectl_with_input(args, "")
    }

    /// Runs kubectl and returns what it printed; the command must succeed.
    pub(crate) fn kubectl_ok(&self, args: &[&str]) -> String {
        stdout_of(args, self.kubectl(args))
    }

    /// Applies a manifest; it must be accepted.
    pub(crate) fn apply(&self, manifest: &str) -> String {
        let args = ["apply", "-f", "-"];
        stdout_of(&args, self.kubectl_with_input(&args, manifest))
    }

    /// Runs kubectl with something on its standard input.
    pub(crate) fn kubectl_with_input(&self, args: &[&str], input: &str) -> Output {
        let mut child = self
            .kubectl_command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// kubectl, pointed at this cluster.
    pub(crate) fn kubectl_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(kubectl_path());
        command.args(args).env("KUBECONFIG", self.kubeconfig()).env("HOME", &self.dir);
        command
    }

    /// One field of one object, by JSONPath; empty if it is not set.
    pub(crate) fn field(&self, object: &str, path: &str) -> String {
        self.kubectl_ok(&["get", object, "-o", &format!("jsonpath={path}")])
    }

    /// Waits until an Event with this reason is about an object, and returns what it says.
    pub(crate) fn wait_for_event(&self, kind: &str, name: &str, reason: &str) -> String {
        let about = format!("involvedObject.kind={kind},involvedObject.name={name},reason={reason}");
        let path = "jsonpath={.items[*].message}";
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let said = self.kubectl_ok(&["get", "events", "--field-selector", &about, "-o", path]);
            if !said.is_empty() {
                return said;
            }
            assert!(Instant::now() < deadline, "no Event {reason} about {kind} {name}");
        }
    }

    /// Waits until a field has a value, also of an object that somebody has yet to make: kubectl alone gives up then.
    pub(crate) fn wait_for(&self, object: &str, path: &str, value: &str) {
        let args = ["wait", object, &format!("--for=jsonpath={path}={value}"), "--timeout=60s"];
        let waited = self.kubectl(&args);
        if text(&waited.stderr).contains("(NotFound)") {
            self.kubectl_ok(&["wait", object, "--for=create", "--timeout=60s"]);
            self.kubectl_ok(&args);
        } else {
            stdout_of(&args, waited);
        }
    }
}

/// A running `krafla up` with a data directory of its own.
pub(crate) struct Up {
    dir: TempDir,
    child: Child,
    kubectl: Kubectl,
}

impl Up {
    /// Starts a cluster and waits until it is ready.
    pub(crate) fn start() -> Up {
        Up::start_with(&[])
    }

    /// Starts a cluster with further arguments.
    pub(crate) fn start_with(args: &[&str]) -> Up {
        let dir = tempfile::tempdir().unwrap();
        let child = spawn(dir.path(), args);
        let kubectl = Kubectl::in_dir(dir.path());
        Up { dir, child, kubectl }
    }

    /// Kills krafla without warning, as a power cut would, and starts it again on the same data directory.
    pub(crate) fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(self.dir.path(), &[]);
    }

    /// Ends krafla in order.
    pub(crate) fn stop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        self.child.wait().unwrap();
    }

    /// Starts krafla again on the same data directory, after it has ended.
    pub(crate) fn start_again(&mut self, args: &[&str]) {
        self.child = spawn(self.dir.path(), args);
    }

    /// Where the cluster's data is.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Where tests may put files.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The process.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

/// Whatever can be asked of a cluster can be asked of this one.
impl Deref for Up {
    type Target = Kubectl;

    fn deref(&self) -> &Kubectl {
        &self.kubectl
    }
}

impl Drop for Up {
    /// Ends the cluster in order, so that nothing of it survives the test.
    fn drop(&mut self) {
        // One that was waited for is nobody's, or another's.
        if let Ok(None) = self.child.try_wait() {
            let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        }
        let _ = self.child.wait();
    }
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// Waits until `kubectl logs` shows this: a container that is said to run may have yet to write.
pub(crate) fn wait_for_log(up: &Up, args: &[&str], log: &str) {
    wait_until(&format!("the log of {args:?} is not {log:?}"), || {
        up.kubectl_ok(&[&["logs"], args].concat()) == log
    });
}

/// Waits until what has ended is not written any more, not while another job lives from its beginning to its end, and
/// returns the name and revision of each object.
pub(crate) fn until_at_rest(up: &Up) -> String {
    let path = "jsonpath={range .items[*]}{.metadata.name} {.metadata.resourceVersion}{\"\\n\"}{end}";
    let revisions = || {
        let all = up.kubectl_ok(&["get", "vcjob,job,podgroup,pod", "-o", path]);
        let others = all.lines().filter(|line| !line.starts_with("another-"));
        others.map(|line| format!("{line}\n")).collect::<String>()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut before = revisions();
    for round in 0.. {
        up.apply(&job(&format!("another-{round}"), 1, "true", ""));
        up.wait_for(&format!("vcjob/another-{round}"), "{.status.state.phase}", "Completed");
        let now = revisions();
        if now == before {
            break;
        }
        assert!(Instant::now() < deadline, "it is still written:\n{before}\n{now}");
        before = now;
    }
    before
}

/// Starts `krafla up` and returns once it says that it is ready.
fn spawn(dir: &Path, args: &[&str]) -> Child {
    let mut child = krafla()
        .args(["up", "--listen", "127.0.0.1:0"])
        .arg("--data-dir")
        .arg(dir.join("data"))
        .arg("--kubeconfig")
        .arg(dir.join("kubeconfig"))
        .arg("--workdir")
        .arg(dir)
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_ready = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("ready"));
    assert!(is_ready, "krafla up ended before it was ready: {:?}", child.wait());
    // Keep reading, so that krafla never waits for somebody to take its lines.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    child
}

fn stdout_of(args: &[&str], output: Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "kubectl {args:?}: {}\n{}", text(&output.stderr), text(&output.stdout));
    text(&output.stdout)
}

/// A user who is not root.
pub(crate) const NOBODY: u32 = 65534;

/// Runs krafla in a directory as somebody who is not root, after a line of shell as root. Only root can.
pub(crate) fn krafla_as_nobody(dir: &Path, first: &str, args: &str) -> Output {
    chown(dir, Some(NOBODY), Some(NOBODY)).unwrap();
    // Where it was built, not everybody may look. The shell copies: a program that another test inherits while this one writes
    // it can not be started.
    let (built, program) = (env!("CARGO_BIN_EXE_krafla"), dir.join("krafla"));
    let become_nobody = format!("exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups");
    let program = program.display();
    let script = format!("cp {built} {program}\n{first}\n{become_nobody} {program} {args}");
    let mut command = Command::new("sh");
    command.args(["-ec", &script]).env_remove("KUBECONFIG").env("HOME", dir).env("TMPDIR", dir);
    command.current_dir(dir).output().unwrap()
}

/// The processes on whose command line a file stands.
pub(crate) fn processes_of(file: &Path) -> String {
    text(&Command::new("pgrep").arg("-f").arg(file).output().unwrap().stdout)
}

/// The text that a process wrote to its standard output.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
