//! Pod Security Standards: what the labels of a namespace ask of its pods, pure.
//!
//! `pod-security.kubernetes.io/enforce`, `audit` and `warn` name a level, and the same with `-version` the release whose
//! rules count. Rules are those of Kubernetes 1.36; [`checks`] has them one by one.

mod checks;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

/// The prefix of the labels.
const PREFIX: &str = "pod-security.kubernetes.io/";

/// How strict rules are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// There are none.
    #[default]
    Privileged,
    /// Nothing that is known to lead out of a container.
    Baseline,
    /// What hardened pods need.
    Restricted,
}

/// The minor version of Kubernetes whose rules count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u32);

impl Version {
    const LATEST: Version = Version(u32::MAX);
}

/// Rules: a level, as one version has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How strict.
    pub level: Level,
    /// As of which version.
    pub version: Version,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { level: Level::Privileged, version: Version::LATEST }
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::LATEST => write!(f, "{level}:latest"),
            Version(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

/// What a namespace asks of its pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Pods that break these rules are refused.
    pub enforce: Rules,
    /// Those that break these are noted in the audit log.
    pub audit: Rules,
    /// Authors of pods and templates that break these are warned.
    pub warn: Rules,
}

/// A label that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLabel {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Why.
    pub why: &'static str,
}

impl Policy {
    /// Reads labels. What cannot be read counts as the strictest that refuses, and as the mildest that warns.
    pub fn from_labels<'a>(label: impl Fn(&str) -> Option<&'a str>) -> (Policy, Vec<BadLabel>) {
        let (mut policy, mut bad) = (Policy::default(), Vec::new());
        let mut read = |mode: &str, rules: &mut Rules, if_bad: Level| {
            let (key, version_key) = (format!("{PREFIX}{mode}"), format!("{PREFIX}{mode}-version"));
            let level = label(&key);
            if let Some(value) = level {
                rules.level = parse_level(value).unwrap_or_else(|| {
                    let why = "must be one of privileged, baseline, restricted";
                    bad.push(BadLabel { key, value: value.to_owned(), why });
                    if_bad
                });
            }
            let version = label(&version_key);
            if let Some(value) = version {
                rules.version = parse_version(value).unwrap_or_else(|| {
                    let why = "must be \"latest\" or \"v1.x\"";
                    bad.push(BadLabel { key: version_key, value: value.to_owned(), why });
                    Version::LATEST
                });
            }
            (level.map(|value| parse_level(value).is_some()), version.is_some())
        };
        let (has_enforce, _) = read("enforce", &mut policy.enforce, Level::Restricted);
        read("audit", &mut policy.audit, Level::Privileged);
        let (has_warn, has_warn_version) = read("warn", &mut policy.warn, Level::Privileged);
        // A refused pod template gets a warning even without the label `warn`.
        if has_warn.is_none() && has_enforce == Some(true) && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if !has_warn_version {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, bad)
    }

    /// Whether nothing is asked of pods.
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|rules| rules.level == Level::Privileged)
    }
}

fn parse_level(text: &str) -> Option<Level> {
    match text {
        "privileged" => Some(Level::Privileged),
        "baseline" => Some(Level::Baseline),
        "restricted" => Some(Level::Restricted),
        _ => None,
    }
}

fn parse_version(text: &str) -> Option<Version> {
    if text == "latest" {
        return Some(Version::LATEST);
    }
    let minor = text.strip_prefix("v1.")?;
    let is_number = minor.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = minor.len() > 1 && minor.starts_with('0');
    let minor = minor.parse().ok().filter(|_| is_number && !has_leading_zero)?;
    Some(Version(minor))
}

/// A rule that a pod breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What rule: `privileged`.
    pub reason: String,
    /// How: which containers, and what they must not do.
    pub detail: String,
}

/// The rules that a pod, or a template of pods, breaks.
pub fn violations(rules: Rules, pod: &Value) -> Vec<Violation> {
    if rules.level == Level::Privileged {
        return Vec::new();
    }
    checks::run(rules.level, rules.version.0, pod)
}

/// The rules that are broken, in one line.
pub fn reasons(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.reason.as_str()).collect::<Vec<_>>().join(", ")
}

/// The rules that are broken and how, in one line.
pub fn details(violations: &[Violation]) -> String {
    let shown = |Violation { reason, detail }: &Violation| {
        if detail.is_empty() { reason.clone() } else { format!("{reason} ({detail})") }
    };
    violations.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Where the pod, or the template of pods, is in an object of a resource that has one.
pub fn pod_of<'a>(group: &str, plural: &str, object: &'a Value) -> Option<&'a Value> {
    let pointer = match (group, plural) {
        ("", "pods") => "",
        ("", "podtemplates") => "/template",
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => "/spec/template",
        ("batch", "cronjobs") => "/spec/jobTemplate/spec/template",
        _ => return None,
    };
    object.pointer(pointer).filter(|pod| pod.is_object())
}
