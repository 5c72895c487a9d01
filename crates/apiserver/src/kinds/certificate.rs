//! Requests for certificates. The server stores them; signers and approvers are controllers of their own.

use krafla_admission::builtin::certificate;
use krafla_admission::rbac::User;
use krafla_api::Time;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::Value;

use super::{Rules, keep_all_but};

/// Requests for certificates.
pub struct CertificateSigningRequest;

impl CertificateSigningRequest {
    /// Notes who asks for a certificate: what a client says about that does not count.
    pub(crate) fn note_user(request: &mut Value, user: Option<&User>) {
        let spec = object::part(request, "spec");
        for field in ["username", "uid", "groups", "extra"] {
            spec.remove(field);
        }
        if let Value::Object(told) = crate::users::to_json(user) {
            spec.extend(told);
        }
    }
}

impl Rules for CertificateSigningRequest {
    fn default(&self, request: &mut Value) {
        certificate::default_request(request);
    }

    fn on_create(&self, request: &mut Value, _now: Time) {
        object::remove(request, "status");
    }

    fn on_update(&self, request: &mut Value, old: &Value) {
        keep_all_but(request, old, &["metadata"]);
    }

    fn validate(&self, request: &Value) -> Vec<FieldError> {
        field::found(certificate::validate_request(request))
    }

    fn validate_update(&self, request: &Value, old: &Value) -> Vec<FieldError> {
        field::found(certificate::validate_change(request, old, None))
    }

    fn validate_status(&self, request: &Value, old: &Value) -> Vec<FieldError> {
        field::found(certificate::validate_change(request, old, Some("status")))
    }

    fn keep_but_part(&self, request: &mut Value, old: &Value, _subresource: &str) {
        let conditions = request.pointer("/status/conditions").cloned();
        keep_all_but(request, old, &["metadata"]);
        let status = object::part(request, "status");
        match conditions {
            Some(conditions) => status.insert("conditions".to_owned(), conditions),
            None => status.remove("conditions"),
        };
    }

    fn validate_part(&self, request: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
        field::found(certificate::validate_change(request, old, Some(subresource)))
    }
}
