//! A webhook's no, as the client gets it.

use krafla_cluster::Details;
use serde_json::Value;

use crate::status::Status;

/// The refusal of a request that a webhook denied with this `Status`.
pub(super) fn denied(webhook: &str, status: &Value) -> Status {
    let text = |field: &str| status.get(field).and_then(Value::as_str).unwrap_or_default();
    let denied = format!("admission webhook {webhook:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    // A webhook cannot say yes and no at once: what is no refusal becomes the plainest one.
    let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| (400..600).contains(code)).unwrap_or(400);
    Status {
        code,
        reason: text("reason").to_owned().into(),
        message,
        details: status.get("details").map(|details| Box::new(Details::read(details))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_keeps_the_webhooks_words_and_code() {
        let shown = |status: Value| {
            let status = denied("a.b.c", &status);
            format!("{} {}: {}", status.code, status.reason, status.message)
        };
        assert_eq!(
            shown(json!({"code": 403, "reason": "Forbidden", "message": "no"})),
            "403 Forbidden: admission webhook \"a.b.c\" denied the request: no"
        );
        assert_eq!(
            shown(json!({"code": 200, "reason": "Mine"})),
            "400 Mine: admission webhook \"a.b.c\" denied the request: Mine"
        );
        assert_eq!(
            shown(json!(null)),
            "400 : admission webhook \"a.b.c\" denied the request without explanation"
        );
    }
}
