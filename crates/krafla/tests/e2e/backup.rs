//! `krafla backup` and `krafla restore`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use crate::support::{Up, job, krafla, text};

const OBJECTS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {text: "one\ttwo\nthree"}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {key: hidden}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: writer}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: any
          volumeMounts: [{name: data, mountPath: /krafla-data}]
          command: [sh, -c, "cd $KRAFLA_VOLUME_DATA; echo precious > file; chmod 640 file; mkdir -p a/b; ln -s ../file a/link"]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"#;

/// All objects that a start does not write: one in kube-system names a certificate that each start makes anew.
fn objects(up: &Up) -> String {
    let kinds = "vcjob,podgroup,queue,job,pod,configmap,secret,pvc,serviceaccount,crd,clusterrole";
    up.kubectl_ok(&["get", kinds, "-o", "json"])
}

fn backup(up: &Up, file: &Path) -> Output {
    let mut command = krafla();
    command.arg("backup").arg(file).arg("--data-dir").arg(up.data_dir());
    command.arg("--kubeconfig").arg(up.kubeconfig()).output().unwrap()
}

fn restore(up: &Up, file: &Path) -> Output {
    krafla().arg("restore").arg(file).arg("--data-dir").arg(up.data_dir()).output().unwrap()
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn a_cluster_that_was_destroyed_is_restored_with_all_objects_keys_and_files_of_claims() {
    let mut up = Up::start();
    up.apply(OBJECTS);
    up.apply(&job("train", 2, "echo done", ""));
    up.wait_for("vcjob/train", "{.status.state.phase}", "Completed");
    up.kubectl_ok(&["wait", "job/writer", "--for=condition=Complete", "--timeout=60s"]);
    let uid = up.field("pvc/data", "{.metadata.uid}");
    let claim = up.data_dir().join(format!("node/claims/default/data-{uid}"));
    let before = crate::support::until_at_rest(&up);
    assert!(before.contains("train"));
    let (objects_before, kubeconfig) = (objects(&up), fs::read_to_string(up.kubeconfig()).unwrap());

    // While it runs, and while it does not.
    let (hot, cold) = (up.file("hot.backup"), up.file("cold.backup"));
    succeeded(&backup(&up, &hot));
    assert_eq!(fs::metadata(&hot).unwrap().permissions().mode() & 0o777, 0o600);
    let forbidden = up.kubectl(&["get", "--raw", "/krafla/v1/backup", "--as", "reader"]);
    assert!(text(&forbidden.stderr).contains("forbidden"), "{}", text(&forbidden.stderr));
    up.stop();
    succeeded(&backup(&up, &cold));
    let again = backup(&up, &cold);
    assert_eq!(again.status.code(), Some(2), "a backup is not written over");

    for file in [hot, cold] {
        let refused = restore(&up, &file);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains("exists and is not empty"), "{}", text(&refused.stderr));
        fs::remove_dir_all(up.data_dir()).unwrap();
        succeeded(&restore(&up, &file));
        assert_eq!(fs::read_to_string(claim.join("file")).unwrap(), "precious\n");
        assert_eq!(fs::metadata(claim.join("file")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_link(claim.join("a/link")).unwrap(), Path::new("../file"));
        assert!(claim.join("a/b").is_dir());
        up.start_again(&[]);
        assert_eq!(objects(&up), objects_before);
        assert_eq!(
            fs::read_to_string(up.kubeconfig()).unwrap(),
            kubeconfig,
            "same port, token and authority"
        );
        up.apply(&job("next", 1, "true", ""));
        up.wait_for("vcjob/next", "{.status.state.phase}", "Completed");
        up.stop();
    }

    let damaged = up.file("damaged.backup");
    let mut bytes = fs::read(up.file("cold.backup")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    fs::remove_dir_all(up.data_dir()).unwrap();
    let refused = restore(&up, &damaged);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("its hash is not right"), "{}", text(&refused.stderr));
    assert!(!up.data_dir().exists());
}
