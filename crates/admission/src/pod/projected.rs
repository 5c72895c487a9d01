//! Volumes put together from parts: Secrets, ConfigMaps, fields of the pod, tokens, certificates.

use std::collections::BTreeSet;

use crate::json::At;
use crate::{Path, Verdict, names};

use super::{check, env};

/// A volume put together from parts.
pub(super) fn volume(source: &At<'_>, verdict: &mut Verdict) {
    check::file_mode(&source.get("defaultMode"), verdict);
    let mut paths = Paths { seen: BTreeSet::new(), volume: source.path().clone() };
    for part in source.items("sources") {
        validate_part(&part, source, &mut paths, verdict);
    }
}

/// The paths that the parts of a volume fill; two may not fill the same.
struct Paths<'a> {
    seen: BTreeSet<&'a str>,
    volume: Path,
}

impl<'a> Paths<'a> {
    fn take(&mut self, path: &'a str, shown: &str, verdict: &mut Verdict) {
        if !path.is_empty() && !self.seen.insert(path) {
            verdict.invalid(&self.volume, shown, "conflicting duplicate paths");
        }
    }
}

fn validate_part<'a>(part: &At<'a>, volume: &At<'a>, paths: &mut Paths<'a>, verdict: &mut Verdict) {
    let kinds =
        ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
    let given: Vec<(&str, At<'a>)> =
        kinds.map(|kind| (kind, part.get(kind))).into_iter().filter(|(_, at)| at.is_set()).collect();
    for (kind, source) in &given {
        match *kind {
            "secret" | "configMap" => {
                check::texts(source, &["name"], verdict);
                for item in source.items("items") {
                    key_to_path(&item, verdict);
                    paths.take(item.str("path"), source.str("name"), verdict);
                }
            }
            "downwardAPI" => {
                for item in source.items("items") {
                    downward_api_file(&item, source.path(), verdict);
                    paths.take(item.str("path"), item.str("path"), verdict);
                }
            }
            "serviceAccountToken" => token(source, volume, verdict),
            "clusterTrustBundle" => {
                trust_bundle(source, verdict);
                paths.take(source.str("path"), source.str("path"), verdict);
            }
            _ => certificate(source, paths, verdict),
        }
    }
    if given.len() > 1 {
        verdict.forbidden(part.path(), "may not specify more than 1 volume type per source");
    }
}

/// A key of a Secret or ConfigMap, and the file it becomes.
pub(super) fn key_to_path(item: &At<'_>, verdict: &mut Verdict) {
    check::texts(item, &["key", "path"], verdict);
    check::local_free_path(&item.get("path"), verdict);
    check::file_mode(&item.get("mode"), verdict);
}

/// Fields of the pod as files.
pub(super) fn downward_api_volume(source: &At<'_>, verdict: &mut Verdict) {
    check::file_mode(&source.get("defaultMode"), verdict);
    for item in source.items("items") {
        downward_api_file(&item, source.path(), verdict);
    }
}

/// Kubernetes reports these at the volume, without saying which file it was.
fn downward_api_file(item: &At<'_>, path: &Path, verdict: &mut Verdict) {
    let item = item.clone().reported_at(path.clone());
    check::texts(&item, &["path"], verdict);
    check::local_free_path(&item.get("path"), verdict);
    let (field, resource) = (item.get("fieldRef"), item.get("resourceFieldRef"));
    match (field.is_set(), resource.is_set()) {
        (true, is_twofold) => {
            env::field(&field, &env::VOLUME_FIELDS, verdict);
            if is_twofold {
                let rule = "fieldRef and resourceFieldRef can not be specified simultaneously";
                verdict.invalid(path, "resource", rule);
            }
        }
        (false, true) => env::resource_field(&resource, true, verdict),
        (false, false) => verdict.required(path, "one of fieldRef and resourceFieldRef is required"),
    }
    check::file_mode(&item.get("mode"), verdict);
}

fn token(source: &At<'_>, volume: &At<'_>, verdict: &mut Verdict) {
    let expiration = source.get("expirationSeconds");
    match expiration.int() {
        Some(seconds) if seconds < 600 => {
            verdict.invalid(expiration.path(), seconds, "may not specify a duration less than 10 minutes");
        }
        Some(seconds) if seconds > 1 << 32 => {
            verdict.invalid(
                expiration.path(),
                seconds,
                "may not specify a duration larger than 2^32 seconds",
            );
        }
        Some(_) | None => {}
    }
    // Kubernetes reports the path at the volume.
    let path = source.get("path").reported_at(volume.path().field("path"));
    if check::text(&path, verdict) {
        check::local_free_path(&path, verdict);
    }
}

fn trust_bundle(source: &At<'_>, verdict: &mut Verdict) {
    let (name, signer) = (source.get("name"), source.get("signerName"));
    match (name.is_set(), signer.is_set()) {
        (true, true) => {
            verdict.invalid(source.path(), source.value(), "only one of name and signerName may be used")
        }
        (true, false) => {
            if name.text().is_empty() {
                verdict.required(name.path(), "must be a valid object name");
            }
            let selector = source.get("labelSelector");
            if selector.is_set() {
                verdict.invalid(
                    selector.path(),
                    selector.value(),
                    "labelSelector must be unset if name is specified",
                );
            }
        }
        (false, true) => {
            if signer.text().is_empty() {
                verdict.required(signer.path(), "must be a valid signer name");
            }
            signer_name(&signer, verdict);
            check::label_selector(&source.get("labelSelector"), verdict);
        }
        (false, false) => verdict.required(source.path(), "either name or signerName must be specified"),
    }
    check::texts(source, &["path"], verdict);
    check::local_free_path(&source.get("path"), verdict);
}

/// `domain/name`, the domain fully qualified.
fn signer_name(signer: &At<'_>, verdict: &mut Verdict) {
    let text = signer.text();
    let Some((domain, name)) = text.split_once('/') else {
        let rule = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        verdict.invalid(signer.path(), text, rule);
        return;
    };
    verdict.invalid_each(signer.path(), text, names::dns_subdomain(domain));
    if !domain.contains('.') {
        verdict.invalid(
            signer.path(),
            text,
            "should be a domain with at least two segments separated by dots",
        );
    }
    if name.is_empty() {
        verdict.invalid(signer.path(), text, "validating name \"\": a signer needs a name after its domain");
    }
}

fn certificate<'a>(source: &At<'a>, paths: &mut Paths<'a>, verdict: &mut Verdict) {
    signer_name(&source.get("signerName"), verdict);
    let key_types = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
    let key_type = source.get("keyType");
    if !key_types.contains(&key_type.text()) {
        verdict.unsupported(key_type.path(), key_type.text(), &key_types);
    }
    let expiration = source.get("maxExpirationSeconds");
    if let Some(seconds) = expiration.int().filter(|seconds| *seconds < 3600) {
        verdict.invalid(expiration.path(), seconds, "if provided, maxExpirationSeconds must be >= 3600");
    }
    let files = ["credentialBundlePath", "keyPath", "certificateChainPath"].map(|name| source.get(name));
    for file in files.iter().filter(|file| !file.text().is_empty()) {
        check::local_free_path(file, verdict);
        paths.take(file.text(), file.text(), verdict);
    }
    if files.iter().all(|file| file.text().is_empty()) {
        let rule = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        verdict.required(source.path(), rule);
    }
}
