//! What a pod can have and what is told of it, with real processes and the real kubectl.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::support::Up;

const TOLD: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: hidden}
stringData: {word: hush}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: stays}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: told}}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: any
      resources: {requests: {cpu: 250m, memory: 64Mi}}
      env:
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: CPU, valueFrom: {resourceFieldRef: {resource: requests.cpu, divisor: 1m}}}
        - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: 1Mi}}}
        - {name: COLOUR, valueFrom: {configMapKeyRef: {name: settings, key: colour}}}
        - {name: WORD, valueFrom: {secretKeyRef: {name: hidden, key: word}}}
        - {name: BOTH, value: $(COLOUR)-$(WORD)}
      volumeMounts:
        - {name: about, mountPath: /krafla-about}
        - {name: all, mountPath: /krafla-all}
        - {name: data, mountPath: /krafla-data}
        - {name: beside, mountPath: /krafla-beside}
        - {name: scratch, mountPath: /krafla-scratch}
      args: [$(BOTH)]
      command:
        - sh
        - -ec
        - |
          echo $POD $CPU $MEMORY $0
          cd $KRAFLA_VOLUME_ABOUT; echo $(cat labels) $(cat cpu)
          cd $KRAFLA_VOLUME_ALL; find -L . -type f ! -path '*/..*' | sort; echo $(cat colour) $(cat deep/word) $(cat deep/name)
          echo kept > $KRAFLA_VOLUME_DATA/file
          echo seen > $KRAFLA_VOLUME_BESIDE/file
          touch $KRAFLA_VOLUME_SCRATCH/file
  volumes:
    - name: about
      downwardAPI:
        items:
          - {path: labels, fieldRef: {fieldPath: metadata.labels}}
          - {path: cpu, resourceFieldRef: {containerName: main, resource: requests.cpu, divisor: 1m}}
    - name: all
      projected:
        sources:
          - configMap: {name: settings}
          - secret: {name: hidden, items: [{key: word, path: deep/word}]}
          - downwardAPI: {items: [{path: deep/name, fieldRef: {fieldPath: metadata.name}}]}
    - {name: data, persistentVolumeClaim: {claimName: stays}}
    - {name: beside, hostPath: {path: DIRECTORY/beside, type: DirectoryOrCreate}}
    - {name: scratch, emptyDir: {}}
"#;

/// Reads what another pod has left in its claim.
const HEIR: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: heir}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: any
      volumeMounts: [{name: mine, mountPath: /krafla-mine}]
      command: [sh, -c, "cat $KRAFLA_VOLUME_MINE/file"]
  volumes: [{name: mine, persistentVolumeClaim: {claimName: stays}}]
"#;

#[test]
fn a_pod_is_told_of_itself_and_its_claim_outlives_it() {
    let up = Up::start();
    up.apply(&TOLD.replace("DIRECTORY", &up.file("").display().to_string()));
    up.wait_for("pod/p", "{.status.phase}", "Succeeded");
    let said = up.kubectl_ok(&["logs", "p"]);
    assert_eq!(
        said,
        "p 250 64 blue-hush\napp=\"told\" 250\n./colour\n./deep/name\n./deep/word\nblue hush p\n"
    );
    assert_eq!(std::fs::read_to_string(up.file("beside/file")).unwrap(), "seen\n");
    up.kubectl_ok(&["delete", "pod", "p"]);
    up.apply(HEIR);
    up.wait_for("pod/heir", "{.status.phase}", "Succeeded");
    assert_eq!(up.kubectl_ok(&["logs", "heir"]), "kept\n");
}

#[test]
fn a_pod_waits_for_its_claim_and_runs_once_that_is_made() {
    let up = Up::start();
    up.apply(HEIR);
    let scheduled = "{.status.conditions[?(@.type==\"PodScheduled\")].status}";
    up.wait_for("pod/heir", scheduled, "False");
    let why = up.field("pod/heir", "{.status.conditions[?(@.type==\"PodScheduled\")].message}");
    assert!(why.contains("persistentvolumeclaim \"stays\" not found"), "{why}");
    assert_eq!(up.field("pod/heir", "{.status.phase}"), "Pending");
    let claim = TOLD.split("---").find(|document| document.contains("PersistentVolumeClaim")).unwrap();
    up.apply(claim);
    // There is no file in the claim yet, and nobody else's either.
    up.wait_for("pod/heir", "{.status.phase}", "Failed");
    let said = up.kubectl_ok(&["logs", "heir"]);
    assert!(said.contains("No such file"), "{said}");
}

/// A pod of one container, with further fields of its spec.
fn pod(name: &str, command: &str, more: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, \
         spec: {{{more}, containers: [{{name: main, image: any, command: {command}}}]}}}}\n---\n"
    )
}

#[test]
fn get_shows_how_pods_ended_and_why_they_do_not_run() {
    let up = Up::start();
    let pods = [
        pod("good", "['true']", "restartPolicy: Never"),
        pod("bad", "['false']", "restartPolicy: Never"),
        pod("again", "['false']", "restartPolicy: Always"),
        pod("lost", "[no-such-command]", "restartPolicy: Never"),
        pod("slow", "[sleep, '1000']", "restartPolicy: Never, activeDeadlineSeconds: 3"),
    ];
    up.apply(&pods.concat());
    for name in ["bad", "lost", "slow"] {
        up.wait_for(&format!("pod/{name}"), "{.status.phase}", "Failed");
    }
    up.wait_for("pod/good", "{.status.phase}", "Succeeded");
    let expected =
        [("again", "CrashLoopBackOff"), ("bad", "Error"), ("good", "Completed"), ("lost", "StartError")];
    // The container that is started again and again also runs for moments.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let table = up.kubectl_ok(&["get", "pods", "--no-headers"]);
        let columns = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
        let shown: BTreeMap<&str, &str> = columns.map(|row| (row[0], row[2])).collect();
        if expected.iter().all(|(name, status)| shown[name] == *status) {
            break;
        }
        assert!(Instant::now() < deadline, "{table}");
    }
    let of_slow = |field: &str| up.field("pod/slow", &format!("{{.status.{field}}}"));
    assert_eq!(of_slow("reason"), "DeadlineExceeded");
    assert_eq!(of_slow("containerStatuses[0].state.terminated.exitCode"), "143");
    let why = up.field("pod/lost", "{.status.containerStatuses[0].state.terminated.message}");
    assert!(why.contains("no-such-command"), "{why}");
}

/// A container that runs beside the others, ends once before it is up, and is up when its probe says so; and one with hooks.
const IN_ORDER: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  initContainers:
    - name: beside
      image: any
      restartPolicy: Always
      startupProbe: {exec: {command: [test, -e, beside-up]}, periodSeconds: 1, failureThreshold: 1000}
      command:
        - sh
        - -c
        - |
          test -e tried || { touch tried; exit 1; }
          trap 'echo beside ended >> order; exit 0' TERM
          echo beside up >> order; touch beside-up
          while :; do sleep 0.05; done
  containers:
    - name: main
      image: any
      lifecycle:
        postStart: {exec: {command: [sh, -c, "until test -e main-up; do sleep 0.05; done; echo started >> order"]}}
        preStop: {exec: {command: [sh, -c, "echo to be ended >> order"]}}
      command:
        - sh
        - -c
        - trap 'echo main ended >> order; exit 0' TERM; touch main-up; while :; do sleep 0.05; done
"#;

#[test]
fn hooks_and_a_container_beside_the_others_keep_their_order() {
    let up = Up::start();
    up.apply(IN_ORDER);
    up.kubectl_ok(&["wait", "pod/p", "--for=condition=Ready", "--timeout=60s"]);
    assert_eq!(up.field("pod/p", "{.status.initContainerStatuses[0].restartCount}"), "1");
    assert_eq!(up.field("pod/p", "{.status.initContainerStatuses[0].started}"), "true");
    up.kubectl_ok(&["delete", "pod", "p"]);
    let order = std::fs::read_to_string(up.file("order")).unwrap();
    assert_eq!(order, "beside up\nstarted\nto be ended\nmain ended\nbeside ended\n");
}

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
      command: [sh, -c, "ls $KRAFLA_VOLUME_DATA; touch $KRAFLA_VOLUME_DATA/file"]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"#;

#[test]
fn what_is_in_a_claim_stays_for_as_long_as_the_claim() {
    let up = Up::start();
    let run = || {
        up.apply(CLAIMED);
        up.wait_for("pod/p", "{.status.phase}", "Succeeded");
        let seen = up.kubectl_ok(&["logs", "p"]);
        up.kubectl_ok(&["delete", "pod", "p"]);
        seen
    };
    assert_eq!(run(), "");
    assert_eq!(up.field("pvc/data", "{.status.phase} {.status.capacity.storage}"), "Bound 1Gi");
    assert_eq!(run(), "file\n", "it outlives the pod");
    up.kubectl_ok(&["delete", "pvc", "data"]);
    assert_eq!(run(), "", "another claim of that name is another one");

    up.kubectl_ok(&["delete", "pvc", "data"]);
    let directory = up.data_dir().join("node/claims/default");
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::read_dir(&directory).unwrap().next().is_some() {
        assert!(Instant::now() < deadline, "files of claims are left in {}", directory.display());
    }
}
