//! What all plugins have in common, and all of them against what Volcano was recorded to do.

pub(in crate::plugin) mod fixture;
mod golden;

use expect_test::expect;
use fixture::{check_findings, world};

#[test]
fn an_unknown_plugin_holds_the_job_and_the_others_are_still_asked() {
    let world = world("plugin nosuch\n plugin svc\n task work");
    expect![[r#"
        HoldsJob: plugin nosuch: there is no such plugin; spec.plugins may name env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow
    "#]].assert_eq(&world.findings());
    assert_eq!(world.desired().len(), 3);
}

#[test]
fn a_finding_becomes_a_warning_with_volcano_s_reason() {
    let note = world("plugin nosuch\n task work").plugins(|plugins| plugins.findings()[0].note());
    expect![[r#"Note { severity: Warning, reason: "PluginError", message: "plugin nosuch: there is no such plugin; spec.plugins may name env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow", tells_of: None, is_about_written: false }"#]].assert_eq(&format!("{note:?}"));
}

#[test]
fn a_wrong_argument_is_reported_and_harmless() {
    check_findings(
        "plugin svc 9090\n plugin ssh --no-root\n task work",
        expect![[r#"
        Reported: plugin svc: argument 1 is no flag (flags start with a dash); it and all after it are ignored
        Reported: plugin ssh: argument 1 names the unknown flag --no-root; it and all after it are ignored
    "#]],
    );
}

#[test]
fn an_init_container_that_a_plugin_adds_is_decorated_like_any_other() {
    expect![[r#"
        pod a-worker-0
          hostname a-worker-0
          subdomain a
          volume {"configMap":{"name":"a-svc"},"name":"a-svc"}
          init wait-for-master image "busybox:1.36.1"
          init wait-for-master command[0] sh
          init wait-for-master command[1] -c
          init wait-for-master command[2] host="a-master-0.a" port=23456 timeout=300 start=$(date +%s)
          init wait-for-master env VC_MASTER_HOSTS from "a-svc" "VC_MASTER_HOSTS"
          init wait-for-master env VC_MASTER_NUM from "a-svc" "VC_MASTER_NUM"
          init wait-for-master env VC_WORKER_HOSTS from "a-svc" "VC_WORKER_HOSTS"
          init wait-for-master env VC_WORKER_NUM from "a-svc" "VC_WORKER_NUM"
          init wait-for-master env VK_TASK_INDEX=0
          init wait-for-master env VC_TASK_INDEX=0
          init wait-for-master mount {"mountPath":"/etc/volcano","name":"a-svc"}
          main env MASTER_ADDR=a-master-0.a
          main env MASTER_PORT=23456
          main env WORLD_SIZE=2
          main env RANK=1
          main env VC_MASTER_HOSTS from "a-svc" "VC_MASTER_HOSTS"
          main env VC_MASTER_NUM from "a-svc" "VC_MASTER_NUM"
          main env VC_WORKER_HOSTS from "a-svc" "VC_WORKER_HOSTS"
          main env VC_WORKER_NUM from "a-svc" "VC_WORKER_NUM"
          main env VK_TASK_INDEX=0
          main env VC_TASK_INDEX=0
          main port "pytorchjob-port" 23456
          main mount {"mountPath":"/etc/volcano","name":"a-svc"}
    "#]]
    .assert_eq(
        &world("plugin svc\n plugin env\n plugin pytorch --wait-master-enabled\n task master\n task worker")
            .pod("worker", 0),
    );
}

#[test]
fn every_plugin_but_hcclrank_is_a_controlled_resource() {
    let all = ["env", "hcclrank", "mpi", "pytorch", "ray", "ssh", "svc", "tensorflow"];
    let lines: String = all.iter().map(|name| format!("plugin {name}\n")).collect();
    let resources = world(&format!("{lines} task head")).plugins(|plugins| plugins.controlled_resources());
    expect![[r#"{"plugin-env": "env", "plugin-mpi": "mpi", "plugin-pytorch": "pytorch", "plugin-ray": "ray", "plugin-ssh": "ssh", "plugin-svc": "svc", "plugin-tensorflow": "tensorflow"}"#]].assert_eq(&format!("{resources:?}"));
}
