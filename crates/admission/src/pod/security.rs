//! Who a pod's processes are and what they may do; what each system knows of that.

use serde_json::Value;

use crate::json::At;
use crate::{Verdict, names};

use super::check;
use super::spec::{Pod, all_containers};

/// Checks the security settings of a pod.
pub(super) fn validate_pod(spec: &At<'_>, verdict: &mut Verdict) {
    let context = spec.get("securityContext");
    for id in ["fsGroup", "runAsUser", "runAsGroup"] {
        check::id(&context.get(id), verdict);
    }
    context.items("supplementalGroups").iter().for_each(|group| check::id(group, verdict));
    if spec.get("shareProcessNamespace").is_true() && spec.get("hostPID").is_true() {
        let rule = "ShareProcessNamespace and HostPID cannot both be enabled";
        verdict.invalid(context.get("shareProcessNamespace").path(), true, rule);
    }
    validate_sysctls(spec, &context.get("sysctls"), verdict);
    check::word(&context.get("fsGroupChangePolicy"), &["Always", "OnRootMismatch"], verdict);
    validate_seccomp(&context.get("seccompProfile"), verdict);
    validate_windows_options(&context.get("windowsOptions"), verdict);
    validate_app_armor(&context.get("appArmorProfile"), verdict);
    check::word(&context.get("supplementalGroupsPolicy"), &["Merge", "Strict"], verdict);
    check::word(&context.get("seLinuxChangePolicy"), &["Recursive"], verdict);
}

/// Kernel parameters that each IPC namespace has for itself.
const IPC_SYSCTLS: [&str; 10] = [
    "kernel.msg",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.shm",
    "kernel.shm_rmid_forced",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
];

/// Checks the security settings of a container.
pub(super) fn validate_container(context: &At<'_>, has_host_users: bool, verdict: &mut Verdict) {
    check::id(&context.get("runAsUser"), verdict);
    check::id(&context.get("runAsGroup"), verdict);
    let mount = context.get("procMount");
    check::word(&mount, &["Default", "Unmasked"], verdict);
    if has_host_users && mount.text() == "Unmasked" {
        verdict.invalid(mount.path(), mount.text(), "`hostUsers` must be false to use `Unmasked`");
    }
    validate_seccomp(&context.get("seccompProfile"), verdict);
    if context.get("allowPrivilegeEscalation").value() == &Value::Bool(false) {
        if context.get("privileged").is_true() {
            let rule = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            verdict.invalid_object(context.path(), "core.SecurityContext", context.value(), rule);
        }
        if context.get("capabilities").items("add").iter().any(|name| name.text() == "CAP_SYS_ADMIN") {
            let rule = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            verdict.invalid_object(context.path(), "core.SecurityContext", context.value(), rule);
        }
    }
    validate_windows_options(&context.get("windowsOptions"), verdict);
    validate_app_armor(&context.get("appArmorProfile"), verdict);
}

fn validate_sysctls(spec: &At<'_>, sysctls: &At<'_>, verdict: &mut Verdict) {
    let mut seen = std::collections::BTreeSet::new();
    for name in sysctls.list().iter().map(|sysctl| sysctl.get("name")) {
        let text = name.text();
        if text.is_empty() {
            verdict.required(name.path(), "");
        } else if !is_sysctl(text) {
            let rule = "must have at most 253 characters and match regex \
                ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            verdict.invalid(name.path(), text, rule);
        } else if !seen.insert(text) {
            verdict.duplicate(name.path(), text);
        }
        let plain = text.replace('/', ".");
        let is_ipc = IPC_SYSCTLS.contains(&plain.as_str()) || plain.starts_with("fs.mqueue.");
        if spec.get("hostNetwork").is_true() && plain.starts_with("net.") {
            verdict.invalid(name.path(), text, "may not be specified when 'hostNetwork' is true");
        } else if spec.get("hostIPC").is_true() && is_ipc {
            verdict.invalid(name.path(), text, "may not be specified when 'hostIPC' is true");
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_segment = |text: &str| {
        text.starts_with(is_edge)
            && text.ends_with(is_edge)
            && text.chars().all(|c| is_edge(c) || "-_".contains(c))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_segment)
}

fn validate_seccomp(profile: &At<'_>, verdict: &mut Verdict) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.get("type"), profile.get("localhostProfile"));
    if kind.text().is_empty() {
        verdict.required(kind.path(), "type is required when seccompProfile is set");
    } else {
        check::word(&kind, &["Localhost", "RuntimeDefault", "Unconfined"], verdict);
    }
    match (kind.text() == "Localhost", file.is_set()) {
        (true, false) => verdict.required(file.path(), "must be set when seccomp type is Localhost"),
        (true, true) => check::local_path(&file, verdict),
        (false, true) => {
            let rule = "can only be set when seccomp type is Localhost";
            verdict.invalid_object(file.path(), "core.SeccompProfile", profile.value(), rule);
        }
        (false, false) => {}
    }
}

fn validate_app_armor(profile: &At<'_>, verdict: &mut Verdict) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.get("type"), profile.get("localhostProfile"));
    match kind.text() {
        "Localhost" => {
            let name = file.text();
            if name != name.trim() {
                verdict.invalid(file.path(), name, "must not be padded with whitespace");
            } else if name.is_empty() {
                verdict.required(file.path(), "must be set when AppArmor type is Localhost");
            }
            if name.len() > 4095 {
                verdict.too_long(file.path(), 4095);
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if file.is_set() {
                verdict.invalid(file.path(), file.text(), "can only be set when AppArmor type is Localhost");
            }
        }
        "" => verdict.required(kind.path(), "type is required when appArmorProfile is set"),
        _ => check::word(&kind, &["Localhost", "RuntimeDefault", "Unconfined"], verdict),
    }
}

fn validate_windows_options(options: &At<'_>, verdict: &mut Verdict) {
    let name = options.get("gmsaCredentialSpecName");
    if name.is_set() {
        verdict.invalid_each(name.path(), name.text(), names::dns_subdomain(name.text()));
    }
    let credentials = options.get("gmsaCredentialSpec");
    if credentials.is_set() && credentials.text().is_empty() {
        verdict.invalid(credentials.path(), "", "gmsaCredentialSpec cannot be an empty string");
    } else if credentials.text().len() > 64 * 1024 {
        verdict.invalid(
            credentials.path(),
            credentials.text(),
            "gmsaCredentialSpec size must be under 64 KiB",
        );
    }
    let user = options.get("runAsUserName");
    if user.is_set()
        && let Some(rule) = windows_user_rule(user.text())
    {
        verdict.invalid(user.path(), user.text(), rule);
    }
}

/// What is wrong with a Windows user, written `DOMAIN\user` or `user`.
fn windows_user_rule(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("runAsUserName cannot be an empty string");
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return Some("runAsUserName cannot contain control characters");
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, rest)) if rest.contains('\\') => {
            return Some("runAsUserName cannot contain more than one backslash");
        }
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    if let Some(domain) = domain {
        let is_net_bios = |domain: &str| {
            (1..=15).contains(&domain.len())
                && !domain.starts_with('.')
                && !domain.contains(['/', ':', '*', '?', '"', '<', '>', '|'])
        };
        if domain.len() >= 256 {
            return Some("runAsUserName's Domain length must be under 256 characters");
        }
        if !is_net_bios(domain) && !names::dns_subdomain(&domain.to_lowercase()).is_empty() {
            return Some("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
        }
    }
    if user.is_empty() {
        return Some("runAsUserName's User cannot be empty");
    }
    if user.len() > 104 {
        return Some("runAsUserName's User length must not be longer than 104 characters");
    }
    if user.chars().all(|c| c == '.' || c == ' ') {
        return Some("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(['"', '/', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        return Some("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    None
}

/// Windows containers that run on the host do so all together, and in its network.
pub(super) fn validate_host_process(spec: &At<'_>, verdict: &mut Verdict) {
    let host_process =
        |at: &At<'_>| at.get("securityContext").get("windowsOptions").get("hostProcess").value().as_bool();
    let of_pod = host_process(spec);
    let (mut n_containers, mut n_on_host) = (0, 0);
    for container in all_containers(spec) {
        let of_container = host_process(&container);
        n_containers += 1;
        n_on_host += usize::from(of_container.or(of_pod) == Some(true));
        if let (Some(of_pod), Some(of_container)) = (of_pod, of_container)
            && of_pod != of_container
        {
            let path =
                container.get("securityContext").get("windowsOptions").get("hostProcess").path().clone();
            let rule = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            verdict.invalid(&path, of_container, rule);
        }
    }
    if n_on_host == 0 {
        return;
    }
    if n_on_host != n_containers {
        let rule =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        verdict.invalid(spec.path(), "", rule);
    }
    if !spec.get("hostNetwork").is_true() {
        let rule = "hostNetwork must be true if pod contains any hostProcess containers";
        verdict.invalid(spec.get("hostNetwork").path(), false, rule);
    }
}

/// A pod with users of its own shares nothing else with the host.
pub(super) fn validate_host_users(spec: &At<'_>, pod: &Pod<'_>, verdict: &mut Verdict) {
    if pod.has_host_users {
        return;
    }
    let rule = "when `hostUsers` is false";
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.get(field).is_true() {
            verdict.forbidden(&spec.path().field(shown), rule);
        }
    }
    for devices in all_containers(spec).map(|container| container.get("volumeDevices")) {
        if !devices.is_empty() {
            verdict.forbidden(devices.path(), rule);
        }
    }
}

/// Settings that only the other system knows.
pub(super) fn validate_os(spec: &At<'_>, verdict: &mut Verdict) {
    let os = spec.get("os");
    match os.str("name") {
        _ if !os.is_set() => {}
        "" => verdict.required(os.get("name").path(), ""),
        "linux" => {
            let contexts = std::iter::once(spec.clone()).chain(all_containers(spec));
            for options in contexts.map(|at| at.get("securityContext").get("windowsOptions")) {
                if options.is_set() {
                    verdict.forbidden(options.path(), "windows options cannot be set for a linux pod");
                }
            }
        }
        "windows" => validate_windows(spec, verdict),
        other => verdict.unsupported(os.path(), other, &["linux", "windows"]),
    }
}

fn validate_windows(spec: &At<'_>, verdict: &mut Verdict) {
    // In the order in which they are reported: the spec's own, and those of its security context.
    const POD: [&str; 10] = [
        "seccompProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "sysctls",
        "shareProcessNamespace",
        "runAsUser",
        "runAsGroup",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "seLinuxChangePolicy",
    ];
    const CONTAINER: [&str; 10] = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    let rule = "cannot be set for a windows pod";
    let context = spec.get("securityContext");
    let profiles = [context.get("appArmorProfile"), context.get("seLinuxOptions"), spec.get("hostUsers")];
    let taken = ["hostPID", "hostIPC"].map(|field| spec.get(field)).into_iter().filter(At::is_true);
    let others = POD.map(|field| if field == "shareProcessNamespace" { spec } else { &context }.get(field));
    let is_given = |at: &At<'_>| if at.value().is_array() { !at.is_empty() } else { at.is_set() };
    let of_pod =
        profiles.into_iter().filter(At::is_set).chain(taken).chain(others.into_iter().filter(is_given));
    let of_containers = all_containers(spec).flat_map(|container| {
        let context = container.get("securityContext");
        CONTAINER.map(|field| context.get(field)).into_iter().filter(At::is_set)
    });
    for setting in of_pod.chain(of_containers) {
        verdict.forbidden(setting.path(), rule);
    }
}

/// Marks pods that a node runs by itself.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Annotations that have a meaning to Kubernetes.
pub(super) fn validate_annotations(annotations: &At<'_>, spec: &At<'_>, verdict: &mut Verdict) {
    for (key, value) in annotations.entries() {
        let text = value.text();
        if key == MIRROR && spec.str("nodeName").is_empty() {
            verdict.invalid(value.path(), text, "must set spec.nodeName if mirror pod annotation is set");
        }
        if key == DELETION_COST && !is_deletion_cost(text) {
            verdict.invalid(value.path(), text, "must be a 32bit integer");
        }
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            let at = value.clone().reported_at(annotations.path().field(key));
            validate_seccomp_annotation(&at, verdict);
        }
        if let Some(name) = key.strip_prefix(APP_ARMOR) {
            if !all_containers(spec).any(|container| container.str("name") == name) {
                verdict.invalid(value.path(), name, "container not found");
            }
            let is_profile =
                ["", "runtime/default", "unconfined"].contains(&text) || text.starts_with("localhost/");
            if !is_profile {
                verdict.invalid(value.path(), text, format_args!("invalid AppArmor profile name: {text:?}"));
            }
        }
    }
}

fn is_deletion_cost(text: &str) -> bool {
    // A leading plus or zero would make two texts of one cost.
    text.parse::<i32>().is_ok_and(|cost| cost.to_string() == text)
}

fn validate_seccomp_annotation(at: &At<'_>, verdict: &mut Verdict) {
    let text = at.text();
    if let Some(file) = text.strip_prefix("localhost/") {
        let file = Value::from(file);
        check::local_path(&At::new(&file, at.path().clone()), verdict);
    } else if !["runtime/default", "docker/default", "unconfined"].contains(&text) {
        verdict.invalid(at.path(), text, "must be a valid seccomp profile");
    }
}

/// Where a profile is given twice, as an annotation and as a field, both must say the same.
pub(super) fn validate_profiles_agree(annotations: &At<'_>, spec: &At<'_>, verdict: &mut Verdict) {
    let annotation = |key: &str| annotations.value().get(key).and_then(Value::as_str);
    let pod_context = spec.get("securityContext");
    let of_pod = pod_context.get("seccompProfile");
    agree(&of_pod, of_pod.path(), annotation(SECCOMP_POD), "seccomp", verdict);
    for container in all_containers(spec) {
        let context = container.get("securityContext");
        let seccomp = context.get("seccompProfile");
        let of_container = annotation(&format!("{SECCOMP_CONTAINER}{}", container.str("name")));
        agree(&seccomp, seccomp.path(), of_container, "seccomp", verdict);
        if spec.get("os").str("name") == "windows" {
            continue;
        }
        let own = context.get("appArmorProfile");
        let profile = if own.is_set() { own.clone() } else { pod_context.get("appArmorProfile") };
        let of_container = annotation(&format!("{APP_ARMOR}{}", container.str("name")));
        agree(&profile, own.path(), of_container, "apparmor", verdict);
    }
}

fn agree(profile: &At<'_>, path: &crate::Path, annotation: Option<&str>, what: &str, verdict: &mut Verdict) {
    let Some(annotation) = annotation.filter(|_| profile.is_set()) else { return };
    let is_same_type = match profile.str("type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default")
        }
        "Localhost" => annotation.starts_with("localhost/"),
        _ => true,
    };
    if !is_same_type {
        verdict.forbidden(&path.field("type"), &format!("{what} type in annotation and field must match"));
    } else if profile.str("type") == "Localhost"
        && annotation.strip_prefix("localhost/") != profile.get("localhostProfile").value().as_str()
    {
        let rule = format!("{what} profile in annotation and field must match");
        verdict.forbidden(&path.field("localhostProfile"), &rule);
    }
}
