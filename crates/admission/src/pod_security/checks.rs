//! The single rules, in the order in which their violations are told.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Level, Violation};

/// A rule.
struct Check {
    level: Level,
    /// The first minor version that has it.
    since: u32,
    /// From which minor version on a restricted rule takes its place in the restricted level.
    overridden_since: Option<u32>,
    find: fn(&Pod<'_>, u32) -> Option<Violation>,
}

const fn baseline(since: u32, find: fn(&Pod<'_>, u32) -> Option<Violation>) -> Check {
    Check { level: Level::Baseline, since, overridden_since: None, find }
}

const fn overridden(restricted_since: u32, find: fn(&Pod<'_>, u32) -> Option<Violation>) -> Check {
    Check { level: Level::Baseline, since: 0, overridden_since: Some(restricted_since), find }
}

const fn restricted(since: u32, find: fn(&Pod<'_>, u32) -> Option<Violation>) -> Check {
    Check { level: Level::Restricted, since, overridden_since: None, find }
}

const CHECKS: [Check; 19] = [
    baseline(0, app_armor),
    overridden(22, added_capabilities),
    baseline(0, host_namespaces),
    overridden(0, host_paths),
    baseline(0, host_ports),
    baseline(34, host_of_probes),
    baseline(0, privileged),
    overridden(35, proc_mount),
    baseline(0, se_linux),
    overridden(19, seccomp),
    baseline(0, sysctls),
    baseline(0, host_process),
    restricted(8, privilege_escalation),
    restricted(22, dropped_capabilities),
    restricted(35, unmasked_proc),
    restricted(0, volume_types),
    restricted(0, run_as_non_root),
    restricted(23, run_as_user),
    restricted(19, seccomp_is_set),
];

/// The rules of a level that a pod breaks.
pub(super) fn run(level: Level, minor: u32, pod: &Value) -> Vec<Violation> {
    let pod = Pod::read(pod);
    let counts = |check: &&Check| {
        let is_overridden =
            level == Level::Restricted && check.overridden_since.is_some_and(|since| since <= minor);
        check.level <= level && check.since <= minor && !is_overridden
    };
    CHECKS.iter().filter(counts).filter_map(|check| (check.find)(&pod, minor)).collect()
}

/// A pod, or a template of pods.
struct Pod<'a> {
    annotations: &'a Value,
    spec: &'a Value,
    /// The security context of the pod.
    context: &'a Value,
    /// Init containers, containers, ephemeral containers.
    containers: Vec<Container<'a>>,
}

struct Container<'a> {
    name: &'a str,
    all: &'a Value,
    context: &'a Value,
}

impl<'a> Pod<'a> {
    fn read(pod: &'a Value) -> Pod<'a> {
        let spec = &pod["spec"];
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let containers = lists.iter().flat_map(|list| spec[*list].as_array().into_iter().flatten());
        let containers = containers.map(|all| Container {
            name: all["name"].as_str().unwrap_or_default(),
            all,
            context: &all["securityContext"],
        });
        let annotations = at(pod, "/metadata/annotations");
        Pod { annotations, spec, context: &spec["securityContext"], containers: containers.collect() }
    }

    /// The names of the containers for which something holds.
    fn names_of(&self, is_bad: impl Fn(&Container<'a>) -> bool) -> Vec<&'a str> {
        self.containers.iter().filter(|container| is_bad(container)).map(|container| container.name).collect()
    }

    fn is_windows(&self) -> bool {
        at(self.spec, "/os/name") == "windows"
    }

    fn has_user_namespace(&self) -> bool {
        self.spec["hostUsers"] == false
    }
}

fn violation(reason: impl Into<String>, detail: impl Into<String>) -> Option<Violation> {
    Some(Violation { reason: reason.into(), detail: detail.into() })
}

fn plural(singular: &str, many: &str, count: usize) -> String {
    if count == 1 { singular } else { many }.to_owned()
}

fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{item}\"")).collect();
    items.join(", ")
}

/// `container "a"`, `containers "a", "b"`.
fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names.iter().copied()))
}

/// The pod and the containers that set something: `pod and container "a"`.
fn setters(pod: bool, names: &[&str]) -> Option<String> {
    let pod = pod.then(|| "pod".to_owned());
    let names = (!names.is_empty()).then(|| containers(names));
    let setters: Vec<String> = pod.into_iter().chain(names).collect();
    (!setters.is_empty()).then(|| setters.join(" and "))
}

/// What a pointer leads to; null if it leads nowhere.
fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    static NOTHING: Value = Value::Null;
    value.pointer(pointer).unwrap_or(&NOTHING)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn app_armor(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let is_bad = |context: &Value| {
        let profile = &context["appArmorProfile"];
        profile.is_object() && !["RuntimeDefault", "Localhost"].contains(&text(&profile["type"]))
    };
    let names = pod.names_of(|container| is_bad(container.context));
    let contexts = pod.containers.iter().map(|container| container.context).chain([pod.context]);
    let values: BTreeSet<&str> = contexts
        .filter(|context| is_bad(context))
        .map(|context| text(at(context, "/appArmorProfile/type")))
        .collect();
    let mut values: Vec<String> = values.into_iter().map(str::to_owned).collect();
    let mut setters: Vec<String> = setters(is_bad(pod.context), &names).into_iter().collect();
    let is_allowed = |profile: &str| {
        profile.is_empty() || profile == "runtime/default" || profile.starts_with("localhost/")
    };
    let annotations = pod.annotations.as_object().into_iter().flatten();
    let annotations = annotations.filter(|(key, value)| key.starts_with(PREFIX) && !is_allowed(text(value)));
    let mut annotations: Vec<String> =
        annotations.map(|(key, value)| format!("{key}={:?}", text(value))).collect();
    if !annotations.is_empty() {
        annotations.sort();
        setters.push(plural("annotation", "annotations", annotations.len()));
        values.extend(annotations);
    }
    if setters.is_empty() {
        return None;
    }
    violation(
        plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len()),
        format!(
            "{} must not set AppArmor profile type to {}",
            setters.join(" and "),
            quoted(values.iter().map(String::as_str))
        ),
    )
}

const DEFAULT_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Capabilities that are added and not allowed.
fn forbidden_capabilities<'a>(
    container: &Container<'a>,
    allowed: &'static [&'static str],
) -> impl Iterator<Item = &'a str> + use<'a> {
    strings(at(container.context, "/capabilities/add")).filter(|name| !allowed.contains(name))
}

fn added_beyond(pod: &Pod<'_>, allowed: &'static [&'static str]) -> Option<String> {
    let names = pod.names_of(|container| forbidden_capabilities(container, allowed).next().is_some());
    let added = pod.containers.iter().flat_map(|container| forbidden_capabilities(container, allowed));
    let added: BTreeSet<&str> = added.collect();
    let told = || {
        let (names, added) = (containers(&names), quoted(added.iter().copied()));
        format!("{names} must not include {added} in securityContext.capabilities.add")
    };
    (!names.is_empty()).then(told)
}

fn added_capabilities(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    violation("non-default capabilities", added_beyond(pod, &DEFAULT_CAPABILITIES)?)
}

fn dropped_capabilities(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor >= 25 && pod.is_windows() {
        return None;
    }
    let drops_all = |container: &Container<'_>| {
        strings(at(container.context, "/capabilities/drop")).any(|name| name == "ALL")
    };
    let keeping = pod.names_of(|container| !drops_all(container));
    let keeping = (!keeping.is_empty())
        .then(|| format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeping)));
    let details: Vec<String> = keeping.into_iter().chain(added_beyond(pod, &["NET_BIND_SERVICE"])).collect();
    if details.is_empty() { None } else { violation("unrestricted capabilities", details.join("; ")) }
}

fn host_namespaces(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let used: Vec<String> =
        fields.filter(|field| pod.spec[*field] == true).map(|field| format!("{field}=true")).collect();
    if used.is_empty() { None } else { violation("host namespaces", used.join(", ")) }
}

fn volumes<'a>(pod: &Pod<'a>) -> impl Iterator<Item = &'a Value> + use<'a> {
    pod.spec["volumes"].as_array().into_iter().flatten()
}

fn host_paths(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let names: Vec<&str> = volumes(pod)
        .filter(|volume| volume["hostPath"].is_object())
        .map(|volume| text(&volume["name"]))
        .collect();
    let told = || format!("{} {}", plural("volume", "volumes", names.len()), quoted(names.iter().copied()));
    if names.is_empty() { None } else { violation("hostPath volumes", told()) }
}

fn host_ports(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let ports = |container: &Container<'_>| -> Vec<String> {
        let ports = container.all["ports"].as_array().into_iter().flatten();
        let ports = ports.filter_map(|port| port["hostPort"].as_i64()).filter(|port| *port != 0);
        ports.map(|port| port.to_string()).collect()
    };
    let names = pod.names_of(|container| !ports(container).is_empty());
    let used: BTreeSet<String> = pod.containers.iter().flat_map(ports).collect();
    let told = || {
        format!(
            "{} {} {} {}",
            containers(&names),
            plural("uses", "use", names.len()),
            plural("hostPort", "hostPorts", used.len()),
            used.iter().cloned().collect::<Vec<_>>().join(", ")
        )
    };
    if names.is_empty() { None } else { violation("hostPort", told()) }
}

fn host_of_probes(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    const HANDLERS: [&str; 5] =
        ["/livenessProbe", "/readinessProbe", "/startupProbe", "/lifecycle/postStart", "/lifecycle/preStop"];
    let hosts = |container: &Container<'_>| -> Vec<String> {
        let handlers = HANDLERS.iter().filter_map(|handler| container.all.pointer(handler));
        let hosts = handlers
            .flat_map(|handler| ["/httpGet/host", "/tcpSocket/host"].map(|host| text(at(handler, host))));
        hosts.filter(|host| !host.is_empty()).map(str::to_owned).collect()
    };
    let names: BTreeSet<&str> = pod.names_of(|container| !hosts(container).is_empty()).into_iter().collect();
    let names: Vec<&str> = names.into_iter().collect();
    let used: BTreeSet<String> = pod.containers.iter().flat_map(hosts).collect();
    let told = || {
        format!(
            "{} {} {} {}",
            containers(&names),
            plural("uses", "use", names.len()),
            plural("probe or lifecycle host", "probe or lifecycle hosts", used.len()),
            quoted(used.iter().map(String::as_str))
        )
    };
    if names.is_empty() { None } else { violation("probe or lifecycle host", told()) }
}

fn privileged(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let names = pod.names_of(|container| container.context["privileged"] == true);
    let told = || format!("{} must not set securityContext.privileged=true", containers(&names));
    if names.is_empty() { None } else { violation("privileged", told()) }
}

fn proc_mount(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor >= 35 && pod.has_user_namespace() { None } else { unmasked_proc(pod, minor) }
}

fn unmasked_proc(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let mount = |container: &Container<'_>| {
        container.context["procMount"].as_str().filter(|mount| *mount != "Default").map(str::to_owned)
    };
    let names = pod.names_of(|container| mount(container).is_some());
    let mounts: BTreeSet<String> = pod.containers.iter().filter_map(mount).collect();
    let told = || {
        let mounts = quoted(mounts.iter().map(String::as_str));
        format!("{} must not set securityContext.procMount to {mounts}", containers(&names))
    };
    if names.is_empty() { None } else { violation("procMount", told()) }
}

fn se_linux(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    let mut allowed = vec!["", "container_t", "container_init_t", "container_kvm_t"];
    if minor >= 31 {
        allowed.push("container_engine_t");
    }
    let has_bad_type = |options: &Value| !allowed.contains(&text(&options["type"]));
    let sets = |options: &Value, field: &str| !text(&options[field]).is_empty();
    let is_bad = |context: &Value| {
        let options = &context["seLinuxOptions"];
        has_bad_type(options) || sets(options, "user") || sets(options, "role")
    };
    let names = pod.names_of(|container| is_bad(container.context));
    let setters = setters(is_bad(pod.context), &names)?;
    let contexts = pod.containers.iter().map(|container| container.context).chain([pod.context]);
    let options: Vec<&Value> = contexts.map(|context| &context["seLinuxOptions"]).collect();
    let types: BTreeSet<&str> = options
        .iter()
        .filter(|options| has_bad_type(options))
        .map(|options| text(&options["type"]))
        .collect();
    let mut told = Vec::new();
    if !types.is_empty() {
        told.push(format!("{} {}", plural("type", "types", types.len()), quoted(types.iter().copied())));
    }
    for field in ["user", "role"] {
        if options.iter().any(|options| sets(options, field)) {
            told.push(format!("{field} may not be set"));
        }
    }
    let told = told.join("; ");
    violation("seLinuxOptions", format!("{setters} set forbidden securityContext.seLinuxOptions: {told}"))
}

fn seccomp(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor >= 19 { seccomp_fields(pod) } else { seccomp_annotations(pod) }
}

fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    let is_allowed = |value: &str| {
        ["runtime/default", "docker/default"].contains(&value) || value.starts_with("localhost/")
    };
    let keys = pod.containers.iter().map(|container| format!("{OF_CONTAINER}{}", container.name));
    let bad = |key: String| {
        let value = pod.annotations.get(&key)?.as_str().filter(|value| !is_allowed(value))?;
        Some(format!("{key}={value:?}"))
    };
    let found: BTreeSet<String> = keys.chain([OF_POD.to_owned()]).filter_map(bad).collect();
    let told = || {
        let list = found.iter().cloned().collect::<Vec<_>>().join(", ");
        format!("forbidden {} {list}", plural("annotation", "annotations", found.len()))
    };
    if found.is_empty() { None } else { violation("seccompProfile", told()) }
}

/// Whether a context sets a profile, and whether it is a good one.
fn profile(context: &Value) -> Option<bool> {
    let profile = context["seccompProfile"].as_object()?;
    let kind = profile.get("type").map_or("", text);
    Some(["Localhost", "RuntimeDefault"].contains(&kind))
}

fn seccomp_fields(pod: &Pod<'_>) -> Option<Violation> {
    let is_bad = |context: &Value| profile(context) == Some(false);
    let names = pod.names_of(|container| is_bad(container.context));
    let setters = setters(is_bad(pod.context), &names)?;
    let contexts = pod.containers.iter().map(|container| container.context).chain([pod.context]);
    let values: BTreeSet<&str> = contexts
        .filter(|context| is_bad(context))
        .map(|context| text(at(context, "/seccompProfile/type")))
        .collect();
    let values = quoted(values.iter().copied());
    violation(
        "seccompProfile",
        format!("{setters} must not set securityContext.seccompProfile.type to {values}"),
    )
}

fn seccomp_is_set(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor >= 25 && pod.is_windows() {
        return None;
    }
    if let Some(found) = seccomp_fields(pod) {
        return Some(found);
    }
    let of_pod = profile(pod.context) == Some(true);
    let names = pod.names_of(|container| profile(container.context).is_none() && !of_pod);
    let told = || {
        let names = containers(&names);
        format!(
            "pod or {names} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
        )
    };
    if names.is_empty() { None } else { violation("seccompProfile", told()) }
}

fn sysctls(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    const ALLOWED: [(u32, &str); 12] = [
        (0, "kernel.shm_rmid_forced"),
        (0, "net.ipv4.ip_local_port_range"),
        (0, "net.ipv4.tcp_syncookies"),
        (0, "net.ipv4.ping_group_range"),
        (0, "net.ipv4.ip_unprivileged_port_start"),
        (27, "net.ipv4.ip_local_reserved_ports"),
        (29, "net.ipv4.tcp_keepalive_time"),
        (29, "net.ipv4.tcp_fin_timeout"),
        (29, "net.ipv4.tcp_keepalive_intvl"),
        (29, "net.ipv4.tcp_keepalive_probes"),
        (32, "net.ipv4.tcp_rmem"),
        (32, "net.ipv4.tcp_wmem"),
    ];
    let is_allowed = |name: &&str| ALLOWED.iter().any(|(since, known)| known == name && *since <= minor);
    let named = pod.context["sysctls"].as_array().into_iter().flatten().map(|sysctl| text(&sysctl["name"]));
    let bad: Vec<&str> = named.filter(|name| !is_allowed(name)).collect();
    if bad.is_empty() { None } else { violation("forbidden sysctls", bad.join(", ")) }
}

fn host_process(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let is_bad = |context: &Value| at(context, "/windowsOptions/hostProcess") == true;
    let names = pod.names_of(|container| is_bad(container.context));
    let setters = setters(is_bad(pod.context), &names)?;
    violation(
        "hostProcess",
        format!("{setters} must not set securityContext.windowsOptions.hostProcess=true"),
    )
}

fn privilege_escalation(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor >= 25 && pod.is_windows() {
        return None;
    }
    let names = pod.names_of(|container| container.context["allowPrivilegeEscalation"] != false);
    let told = || format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&names));
    if names.is_empty() { None } else { violation("allowPrivilegeEscalation != false", told()) }
}

fn volume_types(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    const KNOWN: [&str; 21] = [
        "hostPath",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "gitRepo",
        "nfs",
        "iscsi",
        "glusterfs",
        "rbd",
        "flexVolume",
        "cinder",
        "cephfs",
        "flocker",
        "fc",
        "azureFile",
        "vsphereVolume",
        "quobyte",
        "azureDisk",
        "photonPersistentDisk",
        "portworxVolume",
        "scaleIO",
        "storageos",
    ];
    let is = |volume: &Value, kinds: &[&'static str]| -> Option<&'static str> {
        kinds.iter().find(|kind| volume[**kind].is_object()).copied()
    };
    let bad: Vec<&Value> = volumes(pod).filter(|volume| is(volume, &ALLOWED).is_none()).collect();
    let kinds: BTreeSet<&str> = bad.iter().map(|volume| is(volume, &KNOWN).unwrap_or("unknown")).collect();
    let told = || {
        format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", bad.len()),
            quoted(bad.iter().map(|volume| text(&volume["name"]))),
            plural("uses", "use", bad.len()),
            plural("restricted volume type", "restricted volume types", kinds.len()),
            quoted(kinds.iter().copied())
        )
    };
    if bad.is_empty() { None } else { violation("restricted volume types", told()) }
}

fn run_as_non_root(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if minor >= 35 && pod.has_user_namespace() {
        return None;
    }
    let is_refused = |context: &Value| context["runAsNonRoot"] == false;
    let names = pod.names_of(|container| is_refused(container.context));
    if let Some(setters) = setters(is_refused(pod.context), &names) {
        return violation(REASON, format!("{setters} must not set securityContext.runAsNonRoot=false"));
    }
    let of_pod = pod.context["runAsNonRoot"] == true;
    let names = pod.names_of(|container| !container.context["runAsNonRoot"].is_boolean() && !of_pod);
    let told = || format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&names));
    if names.is_empty() { None } else { violation(REASON, told()) }
}

fn run_as_user(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor >= 35 && pod.has_user_namespace() {
        return None;
    }
    let is_root = |context: &Value| context["runAsUser"] == 0;
    let names = pod.names_of(|container| is_root(container.context));
    let setters = setters(is_root(pod.context), &names)?;
    violation("runAsUser=0", format!("{setters} must not set runAsUser=0"))
}
