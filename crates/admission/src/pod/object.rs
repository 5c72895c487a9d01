//! Pods and templates as objects of their own, as Kubernetes' API server checks them.

use serde_json::Value;

use crate::json::At;
use crate::look::findings;
use crate::{Finding, Path, Verdict};

use super::spec::Dialect;
use super::{container, security, spec, template};

/// Says everything that is wrong with a new pod, apart from its metadata.
pub fn validate_new(pod: &Value) -> Vec<Finding> {
    findings(pod, validate_created)
}

fn validate_created(pod: &At<'_>, verdict: &mut Verdict) {
    validate_whole(pod, verdict);
    let spec = pod.get("spec");
    let ephemeral = spec.get("ephemeralContainers");
    if !ephemeral.is_empty() {
        verdict.forbidden(ephemeral.path(), "cannot be set on create");
    }
    let annotations = pod.get("metadata").get("annotations");
    security::validate_profiles_agree(&annotations, &spec, verdict);
    let node = spec.get("nodeName");
    if !node.is_empty() && !spec.get("schedulingGates").is_empty() {
        verdict.forbidden(node.path(), "cannot be set until all schedulingGates have been cleared");
    }
}

/// Says everything that is wrong with a pod template at a place.
pub fn validate_template(template: &Value, path: &Path) -> Vec<Finding> {
    let mut verdict = Verdict::default();
    template::validate_unnamed(&At::new(template, path.clone()), Dialect::Kubernetes, &mut verdict);
    verdict.refusals
}

/// The rules that hold for a pod at any time.
pub(super) fn validate_whole(pod: &At<'_>, verdict: &mut Verdict) {
    let spec = pod.get("spec");
    security::validate_annotations(&pod.get("metadata").get("annotations"), &spec, verdict);
    spec::validate(&spec, Dialect::Kubernetes, verdict);
    validate_tokens(&spec, verdict);
    validate_images(&spec, verdict);
}

/// Templates may have spaces around an image's name, for the sake of those who replace it later.
fn validate_images(spec: &At<'_>, verdict: &mut Verdict) {
    for container in ["containers", "initContainers"].into_iter().flat_map(|list| spec.items(list)) {
        container::validate_image(&container, verdict);
    }
}

/// Without a service account there is nobody whose token could be shown. Templates may leave the account to later.
fn validate_tokens(spec: &At<'_>, verdict: &mut Verdict) {
    if !spec.str("serviceAccountName").is_empty() {
        return;
    }
    let volumes = spec.items("volumes");
    for source in volumes.iter().flat_map(|volume| volume.get("projected").items("sources")) {
        let token = source.get("serviceAccountToken");
        if token.is_set() {
            verdict.forbidden(token.path(), "must not be specified when serviceAccountName is not set");
        }
    }
}
