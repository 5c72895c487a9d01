//! What becomes of the files of claims when the store and the node's directory do not belong together, and whose clusters are trusted.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{NOBODY, Up, krafla, text, wait_until};

/// A claim, and a pod that writes a file to it.
const CLAIMED: &str = r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: any
      volumeMounts: [{name: data, mountPath: /krafla-data}]
      command: [sh, -c, "cat $KRAFLA_VOLUME_DATA/file 2>/dev/null; echo precious > $KRAFLA_VOLUME_DATA/file"]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"#;

/// Makes the pod run, and returns what it found in its claim.
fn run_pod(up: &Up) -> String {
    up.apply(CLAIMED);
    up.wait_for("pod/p", "{.status.phase}", "Succeeded");
    let found = up.kubectl_ok(&["logs", "p"]);
    up.kubectl_ok(&["delete", "pod", "p"]);
    found
}

/// The file of the claim, wherever it is below a directory.
fn precious(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let below = |path: PathBuf| {
        let is_it = path.is_file() && fs::read_to_string(&path).is_ok_and(|text| text == "precious\n");
        if is_it { vec![path] } else { precious(&path) }
    };
    entries.flat_map(below).collect()
}

/// Starts krafla where it must not start; it is killed if it does.
fn start(data_dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args([
        "-s",
        "KILL",
        "60",
        env!("CARGO_BIN_EXE_krafla"),
        "up",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
    ]);
    command.arg(data_dir).args(args).env_remove("KUBECONFIG").output().unwrap()
}

fn refusal(data_dir: &Path, args: &[&str]) -> String {
    let output = start(data_dir, args);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    text(&output.stderr)
}

#[test]
fn a_cluster_in_memory_leaves_the_files_of_the_one_on_disk_alone() {
    let mut up = Up::start();
    assert_eq!(run_pod(&up), "");
    let output = start(&up.data_dir(), &["--in-memory"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("is in use by process"), "{said}");

    up.stop();
    up.start_again(&["--in-memory"]);
    up.apply(CLAIMED);
    up.wait_for("pod/p", "{.status.phase}", "Succeeded");
    assert_eq!(up.kubectl_ok(&["logs", "p"]), "", "it has files of its own");
    up.stop();
    assert_eq!(precious(&up.data_dir()).len(), 1, "those of a cluster in memory are gone with it");

    up.start_again(&[]);
    assert_eq!(run_pod(&up), "precious\n");
}

#[test]
fn files_of_a_claim_survive_an_older_store_and_come_back_with_the_newer_one() {
    let mut up = Up::start();
    up.stop();
    let (store, head) = (up.data_dir().join("store.redb"), up.data_dir().join("store.head"));
    let older = fs::read(&store).unwrap();
    up.start_again(&[]);
    run_pod(&up);
    up.stop();
    let newer = fs::read(&store).unwrap();

    fs::write(&store, older).unwrap();
    let said = refusal(&up.data_dir(), &[]);
    assert!(said.contains("it is an older copy") && said.contains("delete"), "{said}");
    let [place] = &precious(&up.data_dir())[..] else { panic!("the file is gone") };
    assert!(place.starts_with(up.data_dir().join("node/claims")));

    fs::remove_file(&head).unwrap();
    up.start_again(&[]);
    wait_until("the files are not set aside", || {
        precious(&up.data_dir())
            .first()
            .is_some_and(|path| path.starts_with(up.data_dir().join("node/set-aside")))
    });
    let doctor = krafla().args(["doctor", "--data-dir"]).arg(up.data_dir()).output().unwrap();
    let said = text(&doctor.stdout);
    assert!(
        said.contains("files set aside: no PersistentVolumeClaim owns ")
            && said.contains("/claims/default/data-"),
        "{said}"
    );
    up.stop();

    fs::remove_file(&head).unwrap();
    fs::write(&store, newer).unwrap();
    up.start_again(&[]);
    assert_eq!(run_pod(&up), "precious\n");
}

#[test]
fn a_store_that_is_gone_or_empty_or_of_another_cluster_removes_nothing() {
    let mut up = Up::start();
    run_pod(&up);
    up.stop();
    let (data, store) = (up.data_dir(), up.data_dir().join("store.redb"));
    let away = up.file("away.redb");
    fs::rename(&store, &away).unwrap();
    let said = refusal(&data, &[]);
    assert!(
        said.contains("store.redb is missing") && said.contains("move the whole directory away"),
        "{said}"
    );

    fs::write(&store, "").unwrap();
    let said = refusal(&data, &[]);
    assert!(said.contains("store.redb is damaged: it is empty"), "{said}");

    // Both files of the store are those of another cluster, or of none.
    fs::remove_file(&store).unwrap();
    fs::rename(data.join("store.head"), up.file("away.head")).unwrap();
    for _ in 0..2 {
        let said = refusal(&data, &[]);
        assert!(
            said.contains("node holds pods and volumes of cluster") && said.contains("nothing was changed"),
            "{said}"
        );
    }
    assert_eq!(precious(&data).len(), 1);

    fs::rename(&away, &store).unwrap();
    fs::rename(up.file("away.head"), data.join("store.head")).unwrap();
    up.start_again(&[]);
    assert_eq!(run_pod(&up), "precious\n");
}

#[test]
fn files_of_a_deleted_claim_go_by_the_reclaim_policy() {
    let up = Up::start();
    let class = |name: &str, policy: &str| {
        let head = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nprovisioner: krafla.dev/none";
        up.apply(&format!("{head}\nmetadata: {{name: {name}}}\nreclaimPolicy: {policy}\n"));
    };
    class("kept", "Retain");
    class("not-kept", "Delete");
    let node = up.data_dir().join("node");
    for (class, n_left) in [("kept", 1), ("not-kept", 1)] {
        let claimed = CLAIMED.replace("accessModes", &format!("storageClassName: {class}, accessModes"));
        up.apply(&claimed);
        up.wait_for("pod/p", "{.status.phase}", "Succeeded");
        up.kubectl_ok(&["delete", "pod", "p"]);
        up.kubectl_ok(&["delete", "pvc", "data"]);
        let claims = node.join("claims/default");
        wait_until("the claim's directory is left", || fs::read_dir(&claims).unwrap().next().is_none());
        wait_until("the files are neither kept nor gone", || precious(&node).len() == n_left);
    }
    assert!(precious(&node)[0].starts_with(node.join("set-aside")));
}

/// A directory with the kubeconfig of a `krafla up`, which is not running.
fn with_kubeconfig() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join(".krafla");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    let kubeconfig = "current-context: krafla\ncontexts: [{name: krafla, context: {cluster: a}}]\n\
                      clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n";
    fs::write(data.join("kubeconfig"), kubeconfig).unwrap();
    fs::write(dir.path().join("job.yaml"), crate::support::job("a", 1, "true", "")).unwrap();
    dir
}

fn run_in(dir: &Path, args: &[&str]) -> Output {
    krafla().arg("run").args(args).arg("job.yaml").current_dir(dir).output().unwrap()
}

#[test]
fn the_cluster_of_another_user_is_used_only_by_its_name() {
    let dir = with_kubeconfig();
    let data = dir.path().join(".krafla");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = |what: &str| {
        let output = run_in(dir.path(), &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(what) && said.contains("use --own-cluster, or --kubeconfig"), "{said}");
        let said = refusal(&data, &[]);
        assert!(said.contains(what) && said.contains("use another --data-dir"), "{said}");
    };
    refused("can be written by other users (mode 777)");
    assert_eq!(run_in(dir.path(), &["--own-cluster"]).status.code(), Some(0));
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    // Only root can give files away.
    for path in [data.clone(), data.join("kubeconfig")] {
        if chown(&path, Some(NOBODY), Some(NOBODY)).is_ok() {
            refused(&format!("belongs to user {NOBODY}"));
            let doctor = krafla().args(["doctor", "--data-dir"]).arg(&data).output().unwrap();
            assert!(text(&doctor.stdout).contains("missing  data directory"), "{}", text(&doctor.stdout));
            chown(&path, Some(0), Some(0)).unwrap();
        }
    }
}

#[test]
fn files_with_keys_are_for_their_owner_alone() {
    let up = Up::start();
    let found =
        Command::new("find").arg(up.data_dir()).args(["-maxdepth", "1", "-perm", "/077"]).output().unwrap();
    assert_eq!(text(&found.stdout), "");
}

/// Each container needs three open files of its supervisor, which may have no more than a few dozen here.
#[test]
fn pods_that_the_machine_has_no_room_for_start_later_and_have_not_failed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("job.yaml"), crate::support::job("a", 40, "sleep 0.5", "")).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 70; exec \"$0\" run --own-cluster job.yaml", env!("CARGO_BIN_EXE_krafla")]);
    let output = shell.current_dir(dir.path()).env_remove("KUBECONFIG").output().unwrap();
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("Too many open files"), "{said}");
}

/// A data directory of an earlier version does not say how long its certificates are good.
#[test]
fn certificates_are_renewed_and_kubeconfigs_stay_good() {
    let mut up = Up::start();
    up.stop();
    let read = |name: &str| fs::read_to_string(up.data_dir().join(name)).unwrap();
    let (kubeconfig, server) = (fs::read_to_string(up.kubeconfig()).unwrap(), read("server.crt"));
    fs::remove_file(up.data_dir().join("certificates.json")).unwrap();
    up.start_again(&[]);
    let read = |name: &str| fs::read_to_string(up.data_dir().join(name)).unwrap();
    assert_ne!(read("server.crt"), server);
    assert_eq!(fs::read_to_string(up.kubeconfig()).unwrap(), kubeconfig);
    assert_eq!(up.kubectl_ok(&["get", "namespace", "default", "-o", "name"]), "namespace/default\n");
}
