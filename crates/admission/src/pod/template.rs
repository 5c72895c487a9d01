//! A pod template, checked as Kubernetes checks one: what is wrong with it would be wrong with each of its pods.

use crate::json::At;
use crate::{Path, Verdict, names};

use super::spec::Dialect;
use super::{check, security, spec};

/// Checks the template of a task. `task` gives the template its name, as if it were an object of its own.
pub(crate) fn validate(template: At<'_>, task: &str, namespace: &str, path: &Path, verdict: &mut Verdict) {
    validate_metadata(task, namespace, &path.field("metadata"), verdict);
    validate_unnamed(&template, Dialect::Volcano, verdict);
}

/// Checks a template that has no name of its own, as those of batch/v1 Jobs.
pub(crate) fn validate_unnamed(template: &At<'_>, dialect: Dialect, verdict: &mut Verdict) {
    // Labels and annotations are reported without the `metadata` that they stand in, as Kubernetes does.
    let metadata = template.get("metadata");
    let at = |name: &str| metadata.get(name).reported_at(template.path().field(name));
    let (labels, annotations) = (at("labels"), at("annotations"));
    check::labels(&labels, verdict);
    check::annotations(&annotations, verdict);
    let pod = template.get("spec");
    security::validate_annotations(&annotations, &pod, verdict);
    spec::validate(&pod, dialect, verdict);
    security::validate_profiles_agree(&annotations, &pod, verdict);
    let ephemeral = pod.get("ephemeralContainers");
    if !ephemeral.is_empty() {
        verdict.forbidden(ephemeral.path(), "ephemeral containers not allowed in pod template");
    }
}

fn validate_metadata(name: &str, namespace: &str, path: &Path, verdict: &mut Verdict) {
    if name.is_empty() {
        verdict.required(&path.field("name"), "name or generateName is required");
    } else {
        verdict.invalid_each(&path.field("name"), name, names::dns_subdomain(name));
    }
    if namespace.is_empty() {
        verdict.required(&path.field("namespace"), "");
    } else {
        verdict.invalid_each(&path.field("namespace"), namespace, names::dns_label(namespace));
    }
}
