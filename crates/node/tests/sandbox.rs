//! Volumes at their mountPath, and pods that know each other's names: what containers see differently from
//! the machine.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

mod common;

use std::path::Path;

use common::{Machine, once, sh};
use krafla_api::Kind;
use krafla_cluster::LogOptions;
use krafla_node::Mode;
use serde_json::{Value, json};

fn machine() -> Machine {
    Machine::new(Mode::EndWithNode)
}

fn config_map(machine: &Machine) {
    let metadata = json!({"name": "settings", "namespace": "default"});
    machine.server.create(Kind::ConfigMap, json!({"metadata": metadata, "data": {"colour": "blue"}}));
}

/// A pod whose only container has mounts.
fn mounting(script: &str, volumes: Value, mounts: Value) -> Value {
    let mut container = sh("main", script);
    container["volumeMounts"] = mounts;
    json!({"restartPolicy": "Never", "containers": [container], "volumes": volumes})
}

#[tokio::test]
async fn volumes_are_at_their_mount_path_and_only_there() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    config_map(&machine);
    let node = machine.start_node();
    let script = "cat /etc/krafla-test/colour; echo; echo x > /krafla-data/deep/x && cat /krafla-data/deep/x; \
                  touch /etc/krafla-test/no 2>/dev/null || echo read-only; ls /etc/passwd; touch here; \
                  ls /krafla-relative/deep";
    machine.server.create_pod(
        "p",
        mounting(
            script,
            json!([{"name": "config", "configMap": {"name": "settings"}}, {"name": "data", "emptyDir": {}}]),
            json!([
                {"name": "config", "mountPath": "/etc/krafla-test"},
                {"name": "data", "mountPath": "/krafla-data/deep"},
                // As with a kubelet, it is meant from the root directory.
                {"name": "data", "mountPath": "krafla-relative/deep"},
            ]),
        ),
    );
    machine.server.until("p", |pod| pod["status"]["phase"] != "Pending").await;
    machine.server.until_phase("p", "Succeeded").await;
    let expected = "blue\nx\nread-only\n/etc/passwd\nx\n";
    assert_eq!(node.logs("p", LogOptions::default()).await, expected);
    assert!(machine.workdir().join("here").exists());
    for path in ["/etc/krafla-test", "/krafla-data", "/krafla-check", "/krafla-relative"] {
        assert!(!Path::new(path).exists(), "{path} is on the machine itself");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_volume_may_cover_the_directory_that_all_volumes_are_in() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    config_map(&machine);
    let node = machine.start_node();
    // All that this node has is in here, and so is the working directory.
    let cover = machine.directory.path().to_str().unwrap();
    let volumes =
        json!([{"name": "config", "configMap": {"name": "settings"}}, {"name": "data", "emptyDir": {}}]);
    let mounts = json!([
        {"name": "data", "mountPath": cover},
        {"name": "config", "mountPath": "/etc/krafla-test"},
        {"name": "data", "mountPath": "/krafla-data"},
    ]);
    let script = format!("cat /etc/krafla-test/colour; echo; touch here; ls {cover}; ls /krafla-data");
    machine.server.create_pod("p", mounting(&script, volumes.clone(), mounts.clone()));
    machine.server.until("p", |pod| pod["status"]["phase"] != "Pending").await;
    machine.server.until_phase("p", "Succeeded").await;
    assert_eq!(node.logs("p", LogOptions::default()).await, "blue\nwork\nwork\n");
    assert!(machine.workdir().join("here").exists(), "it runs where it was meant to");

    // What goes wrong after that is told as what it is.
    let mut pod = mounting("", volumes, mounts);
    pod["containers"][0]["command"] = json!(["no-such-command"]);
    machine.server.create_pod("q", pod);
    let pod = machine.server.until_phase("q", "Failed").await;
    assert_eq!(pod["status"]["containerStatuses"][0]["state"]["terminated"]["reason"], "StartError");
    node.stop().await;
}

#[tokio::test]
async fn what_is_written_to_the_working_directory_stays_also_if_that_is_a_link() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    let real = machine.directory.path().join("real");
    std::fs::rename(machine.workdir(), &real).unwrap();
    std::os::unix::fs::symlink(&real, machine.workdir()).unwrap();
    let node = machine.start_node();
    let inside = machine.workdir().join("data");
    let mounts = json!([{"name": "data", "mountPath": inside.to_str().unwrap()}]);
    let volumes = json!([{"name": "data", "emptyDir": {}}]);
    machine.server.create_pod("p", mounting("echo x > data/x; echo done > result", volumes, mounts));
    machine.server.until_phase("p", "Succeeded").await;
    assert_eq!(machine.read("result"), "done\n");
    assert!(real.join("data").is_dir() && !real.join("data/x").exists());
    node.stop().await;
}

#[tokio::test]
async fn a_volume_may_be_mounted_in_one_that_can_not_be_changed() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    config_map(&machine);
    let metadata = json!({"name": "keys", "namespace": "default"});
    machine.server.create(Kind::Secret, json!({"metadata": metadata, "data": {"key": "czNjcjN0"}}));
    let node = machine.start_node();
    let volumes = json!([
        {"name": "config", "configMap": {"name": "settings"}},
        {"name": "keys", "secret": {"secretName": "keys"}},
    ]);
    let mounts = json!([
        {"name": "config", "mountPath": "/etc/krafla-test"},
        {"name": "keys", "mountPath": "/etc/krafla-test/tls"},
        {"name": "keys", "mountPath": "/etc/krafla-test/one", "subPath": "key"},
    ]);
    // Both are where they should be after the ConfigMap has changed, too.
    let script = "cd /etc/krafla-test; cat tls/key one; echo; \
                  touch no 2>/dev/null || echo read-only; touch tls/no 2>/dev/null || echo read-only; \
                  until [ $(cat colour) = red ]; do sleep 0.02; done; cat tls/key one";
    machine.server.create_pod("p", mounting(script, volumes, mounts));
    machine.server.until("p", |pod| pod["status"]["phase"] != "Pending").await;
    machine.server.patch(Kind::ConfigMap, "settings", &json!({"data": {"colour": "red"}}));
    machine.server.until_phase("p", "Succeeded").await;
    let expected = "s3cr3ts3cr3t\nread-only\nread-only\ns3cr3ts3cr3t";
    assert_eq!(node.logs("p", LogOptions::default()).await, expected);
    node.stop().await;
}

#[tokio::test]
async fn a_container_runs_though_it_can_not_say_why_it_ended() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    let node = machine.start_node();
    let mounts = json!([{"name": "v", "mountPath": "/krafla-v"}]);
    let mut pod = mounting("echo runs", json!([{"name": "v", "emptyDir": {}}]), mounts);
    // That is a directory.
    pod["containers"][0]["terminationMessagePath"] = json!("/tmp");
    machine.server.create_pod("p", pod);
    machine.server.until("p", |pod| pod["status"]["phase"] != "Pending").await;
    machine.server.until_phase("p", "Succeeded").await;
    assert_eq!(node.logs("p", LogOptions::default()).await, "runs\n");
    node.stop().await;
}

#[tokio::test]
async fn a_container_sees_a_configmap_change() {
    let machine = machine();
    config_map(&machine);
    let node = machine.start_node();
    let script = "echo up; while [ $(cat $KRAFLA_VOLUME_CONFIG/colour) = blue ]; do sleep 0.02; done";
    let mounts = json!([{"name": "config", "mountPath": "/etc/krafla-test"}]);
    machine.server.create_pod(
        "p",
        mounting(script, json!([{"name": "config", "configMap": {"name": "settings"}}]), mounts),
    );
    machine.server.until_phase("p", "Running").await;
    machine.server.patch(Kind::ConfigMap, "settings", &json!({"data": {"colour": "red"}}));
    machine.server.until_phase("p", "Succeeded").await;
    node.stop().await;
}

#[tokio::test]
async fn containers_of_a_pod_share_its_volumes() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    let node = machine.start_node();
    let mount = json!([{"name": "shared", "mountPath": "/krafla-shared", "subPathExpr": "p$(REST)"}]);
    let mut pod = mounting("cat /krafla-shared/x", json!([{"name": "shared", "emptyDir": {}}]), mount);
    pod["containers"][0]["env"] = json!([{"name": "REST", "value": "art"}]);
    let mut init = sh("init", "echo from init > /krafla-shared/x");
    init["volumeMounts"] = json!([{"name": "shared", "mountPath": "/krafla-shared", "subPath": "part"}]);
    pod["initContainers"] = json!([init]);
    machine.server.create_pod("p", pod);
    machine.server.until_phase("p", "Succeeded").await;
    assert_eq!(node.logs("p", LogOptions::default()).await, "from init\n");
    node.stop().await;
}

#[tokio::test]
async fn a_missing_command_of_a_container_with_volumes_is_named() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    let node = machine.start_node();
    let mut pod = mounting(
        "",
        json!([{"name": "v", "emptyDir": {}}]),
        json!([{"name": "v", "mountPath": "/krafla-v"}]),
    );
    pod["containers"][0]["command"] = json!(["no-such-command"]);
    machine.server.create_pod("p", pod);
    let pod = machine.server.until_phase("p", "Failed").await;
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["reason"], &ended["exitCode"]), (&json!("StartError"), &json!(128)), "{ended}");
    assert!(
        ended["message"].as_str().unwrap().starts_with(r#"command "no-such-command" was not found"#),
        "{ended}"
    );
    let left = std::fs::read_dir(machine.root().join("messages")).unwrap().count();
    assert_eq!(left, 0, "what it could have said is not kept");
    node.stop().await;
}

#[tokio::test]
async fn pods_of_a_subdomain_find_each_other_by_name() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    let node = machine.start_node();
    let peer = |script: &str| {
        let mut pod = once(script);
        pod["subdomain"] = json!("job");
        pod
    };
    machine.server.create_pod("job-worker-0", peer("exec sleep 1000"));
    let worker = machine.server.until_phase("job-worker-0", "Running").await;
    machine.server.create_pod(
        "job-master-0",
        peer("hostname; getent hosts job-worker-0.job job-worker-0 | cut -d' ' -f1"),
    );
    machine.server.until_phase("job-master-0", "Succeeded").await;
    let address = worker["status"]["podIP"].as_str().unwrap();
    assert_eq!(
        node.logs("job-master-0", LogOptions::default()).await,
        format!("job-master-0\n{address}\n{address}\n")
    );

    // One that comes later is known to those that run already.
    machine.server.create_pod("job-worker-1", peer("exec sleep 1000"));
    machine.server.until_phase("job-worker-1", "Running").await;
    let hosts = std::fs::read_to_string(machine.root().join("hosts/default")).unwrap();
    assert!(hosts.contains("job-worker-1.job.default.svc.cluster.local"), "{hosts}");
    node.stop().await;
}

/// Prints the address that a program finds under a name, as programs do.
fn resolve(name: &str) -> String {
    format!("getent ahostsv4 {name} | cut -d' ' -f1 | sort -u")
}

#[tokio::test]
async fn a_pod_has_its_host_name_and_finds_itself_and_its_aliases() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    let node = machine.start_node();
    let mut named = once(&format!("hostname; {}; {}", resolve("leader"), resolve("alias.example")));
    named["hostname"] = json!("leader");
    named["hostAliases"] = json!([{"ip": "127.99.0.1", "hostnames": ["alias.example"]}]);
    machine.server.create_pod("named", named);
    let named = machine.server.until_phase("named", "Succeeded").await;
    let address = named["status"]["podIP"].as_str().unwrap();
    assert_eq!(node.logs("named", LogOptions::default()).await, format!("leader\n{address}\n127.99.0.1\n"));

    let mounts = json!([{"name": "v", "mountPath": "/krafla-v"}]);
    let with_view = mounting(&resolve("$(hostname)"), json!([{"name": "v", "emptyDir": {}}]), mounts);
    machine.server.create_pod("with-view", with_view);
    let with_view = machine.server.until_phase("with-view", "Succeeded").await;
    let address = with_view["status"]["podIP"].as_str().unwrap();
    assert_eq!(node.logs("with-view", LogOptions::default()).await, format!("{address}\n"));
    node.stop().await;
}

#[tokio::test]
async fn the_name_of_a_headless_service_leads_to_its_ready_pods() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    let node = machine.start_node();
    let metadata = json!({"name": "db", "namespace": "default"});
    let spec = json!({"clusterIP": "None", "selector": {"app": "db"}});
    machine.server.create(Kind::Service, json!({"metadata": metadata, "spec": spec}));
    // One that waits for the name, and sees it come.
    let wait = format!(
        "until [ -n \"$({})\" ]; do sleep 0.02; done; {}",
        resolve("db"),
        resolve("db.default.svc.cluster.local")
    );
    let mut client = once(&wait);
    client["hostname"] = json!("client");
    machine.server.create_pod("client", client);
    machine.server.until_phase("client", "Running").await;
    machine.server.create_pod("server", once("exec sleep 1000"));
    machine.server.patch(Kind::Pod, "server", &json!({"metadata": {"labels": {"app": "db"}}}));
    let server = machine.server.until_phase("server", "Running").await;
    machine.server.until_phase("client", "Succeeded").await;
    let address = server["status"]["podIP"].as_str().unwrap();
    assert_eq!(node.logs("client", LogOptions::default()).await, format!("{address}\n"));
    node.stop().await;
}

#[tokio::test]
async fn probes_see_what_the_container_sees() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    let node = machine.start_node();
    let mounts = json!([{"name": "v", "mountPath": "/krafla-v"}]);
    let mut pod =
        mounting("touch /krafla-v/up; exec sleep 1000", json!([{"name": "v", "emptyDir": {}}]), mounts);
    let probe = json!({"exec": {"command": ["test", "-e", "/krafla-v/up"]}, "periodSeconds": 1});
    pod["containers"][0]["readinessProbe"] = probe;
    machine.server.create_pod("p", pod);
    machine.server.until("p", |pod| pod["status"]["containerStatuses"][0]["ready"] == true).await;
    node.stop().await;
}

#[tokio::test]
async fn a_hook_after_the_start_sees_all_that_the_container_sees() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    let node = machine.start_node();
    let names = (0..10).map(|index| format!("p{index}"));
    for name in names.clone() {
        // Where the machine has no such directory: there it takes longest until all is made.
        let mounts =
            json!([{"name": "v", "mountPath": "/etc/krafla-v"}, {"name": "v", "mountPath": "/dev/krafla-v"}]);
        let mut pod = mounting("exec sleep 1000", json!([{"name": "v", "emptyDir": {}}]), mounts);
        let script = format!("test -d /etc/krafla-v && test -d /dev/krafla-v && test $(hostname) = {name}");
        pod["containers"][0]["lifecycle"] = json!({"postStart": {"exec": {"command": ["sh", "-c", script]}}});
        machine.server.create_pod(&name, pod);
    }
    for name in names {
        let is_decided = |pod: &Value| {
            let main = &pod["status"]["containerStatuses"][0];
            main["started"] == true || pod["status"]["phase"] == "Failed"
        };
        let pod = machine.server.until(&name, is_decided).await;
        let said = machine.server.messages("FailedPostStartHook");
        assert_eq!(pod["status"]["phase"], "Running", "{name}: {said:?}, {}", pod["status"]);
    }
    node.stop().await;
}

#[tokio::test]
async fn without_isolation_containers_run_and_their_pod_says_what_they_lack() {
    let mut machine = machine();
    machine.isolation = false;
    config_map(&machine);
    let node = machine.start_node();
    machine.server.create_pod(
        "p",
        mounting(
            "cat $KRAFLA_VOLUME_CONFIG/colour",
            json!([{"name": "config", "configMap": {"name": "settings"}}]),
            json!([{"name": "config", "mountPath": "/etc/krafla-test"}]),
        ),
    );
    machine.server.until_phase("p", "Succeeded").await;
    assert_eq!(node.logs("p", LogOptions::default()).await, "blue");
    let event = machine.server.until_event("FailedMount").await;
    let expected = "container main: volume \"config\" is not at /etc/krafla-test but at $KRAFLA_VOLUME_CONFIG, \
                    because mounts are not possible: it is switched off";
    assert_eq!(event["message"], expected);
    node.stop().await;
}

#[tokio::test]
async fn a_container_that_sees_something_else_can_say_why_it_ended_where_its_manifest_says() {
    let machine = machine();
    if !machine.allows_isolation() {
        return;
    }
    let node = machine.start_node();
    for (name, path) in [("default", "/dev/termination-log"), ("named", "/krafla-why")] {
        let script = format!("test -c /dev/null; echo out of luck > {path}; exit 1");
        let mut pod = mounting(
            &script,
            json!([{"name": "v", "emptyDir": {}}]),
            json!([{"name": "v", "mountPath": "/krafla-v"}]),
        );
        if name == "named" {
            pod["containers"][0]["terminationMessagePath"] = json!(path);
        }
        machine.server.create_pod(name, pod);
        let pod = machine.server.until_phase(name, "Failed").await;
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        assert_eq!((&ended["reason"], &ended["message"]), (&json!("Error"), &json!("out of luck\n")));
        assert!(!Path::new(path).exists(), "{path} is on the machine itself");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_container_can_say_why_it_ended() {
    let machine = machine();
    let node = machine.start_node();
    machine.server.create_pod("told", once("echo out of luck > $KRAFLA_TERMINATION_MESSAGE; exit 1"));
    let mut container = sh("main", "echo no such model >&2; exit 1");
    container["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
    machine.server.create_pod("logged", json!({"restartPolicy": "Never", "containers": [container]}));
    for (pod, message) in [("told", "out of luck\n"), ("logged", "no such model\n")] {
        let pod = machine.server.until_phase(pod, "Failed").await;
        assert_eq!(pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"], message);
    }
    node.stop().await;
}

#[tokio::test]
async fn a_container_is_the_user_that_it_asks_to_be() {
    let machine = machine();
    if !machine.allows_isolation() || !rustix::process::geteuid().is_root() {
        return;
    }
    config_map(&machine);
    let node = machine.start_node();
    let script = "id -u; id -g; id -G; stat -c '%g %a' /etc/krafla-test/colour; cat /etc/krafla-test/colour; \
                  echo; echo mine > /krafla-data/x && stat -c '%u %g' /krafla-data/x; \
                  echo why > /dev/termination-log";
    let mut pod = mounting(
        script,
        json!([
            {"name": "config", "configMap": {"name": "settings", "defaultMode": 0o400}}, {"name": "data", "emptyDir": {}},
        ]),
        json!([{"name": "config", "mountPath": "/etc/krafla-test"}, {"name": "data", "mountPath": "/krafla-data"}]),
    );
    pod["securityContext"] = json!({"runAsUser": 1001, "fsGroup": 1003, "supplementalGroups": [1004]});
    pod["containers"][0]["securityContext"] = json!({"runAsUser": 1002, "runAsGroup": 1005});
    machine.server.create_pod("p", pod);
    let reported = machine.server.until_phase("p", "Succeeded").await;
    let expected = "1002\n1005\n1005 1003 1004\n1003 440\nblue\n1002 1003\n";
    assert_eq!(node.logs("p", LogOptions::default()).await, expected);
    let message = &reported["status"]["containerStatuses"][0]["state"]["terminated"]["message"];
    assert_eq!(message, "why\n");
    node.stop().await;
}

#[tokio::test]
async fn a_volume_in_memory_is_in_memory_and_goes_with_its_pod() {
    let machine = machine();
    if !machine.allows_isolation() || !Path::new("/dev/shm").is_dir() {
        return;
    }
    let node = machine.start_node();
    let script = "stat -f -c %T /krafla-memory; stat -c %a /krafla-memory; echo x > /krafla-memory/x";
    let volumes = json!([{"name": "memory", "emptyDir": {"medium": "Memory"}}]);
    let pod = mounting(script, volumes, json!([{"name": "memory", "mountPath": "/krafla-memory"}]));
    machine.server.create_pod("p", pod);
    let ended = machine.server.until_phase("p", "Succeeded").await;
    assert_eq!(node.logs("p", LogOptions::default()).await, "tmpfs\n777\n");
    let place = format!("/dev/shm/krafla-{}", ended["metadata"]["uid"].as_str().unwrap());
    assert!(Path::new(&place).join("memory/x").exists());
    node.stop().await;
    assert!(!Path::new(&place).exists(), "{place} is left");
}
