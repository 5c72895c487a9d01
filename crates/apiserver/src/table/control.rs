//! Columns of how requests are served, and of devices.

use krafla_schema::object::{self, text_at};
use serde_json::Value;

use super::Builtin;
use super::builtin::{AGE, NAME, created, name, or_none};
use super::human::human;

/// APIServices.
pub const API_SERVICE: Builtin = Builtin {
    columns: &[
        NAME,
        ("Service", "string", 0, "Service of the server that answers"),
        ("Available", "string", 0, "Whether that server answers"),
        AGE,
    ],
    cells: |service, now| {
        let reference = service.pointer("/spec/service").filter(|reference| !reference.is_null());
        let server = reference.map_or("Local".to_owned(), |reference| {
            format!("{}/{}", text_at(reference, "namespace"), text_at(reference, "name"))
        });
        let available = condition(service, "Available").map_or("Unknown".to_owned(), |condition| {
            let (status, reason) = (text_at(condition, "status"), text_at(condition, "reason"));
            if status == "True" || reason.is_empty() { status } else { format!("{status} ({reason})") }
        });
        vec![name(service), server.into(), available.into(), created(service, now)]
    },
};

/// Requests for certificates.
pub const CERTIFICATE_REQUEST: Builtin = Builtin {
    columns: &[
        NAME,
        AGE,
        ("SignerName", "string", 0, "Signer that is asked"),
        ("Requestor", "string", 0, "User who asks"),
        ("RequestedDuration", "string", 0, "How long the certificate should be valid"),
        ("Condition", "string", 0, "Whether it is approved, and issued"),
    ],
    cells: |request, now| {
        let has = |kind: &str| condition(request, kind).is_some();
        let mut state = match (has("Denied"), has("Approved")) {
            (true, _) => "Denied".to_owned(),
            (false, true) => "Approved".to_owned(),
            (false, false) => "Pending".to_owned(),
        };
        if has("Failed") {
            state.push_str(",Failed");
        }
        if !text_at(request, "status.certificate").is_empty() {
            state.push_str(",Issued");
        }
        let seconds = request.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
        vec![
            name(request),
            created(request, now),
            or_none(text_at(request, "spec.signerName")).into(),
            text_at(request, "spec.username").into(),
            seconds.map_or("<none>".to_owned(), human).into(),
            state.into(),
        ]
    },
};

/// Flow schemas.
pub const FLOW_SCHEMA: Builtin = Builtin {
    columns: &[
        NAME,
        ("PriorityLevel", "string", 0, "Priority level of its requests"),
        ("MatchingPrecedence", "string", 0, "Schemas with lower numbers come first"),
        ("DistinguisherMethod", "string", 0, "What tells its flows apart"),
        AGE,
        ("MissingPL", "string", 0, "Whether the priority level does not exist"),
    ],
    cells: |schema, now| {
        let missing = condition(schema, "Dangling").map(|condition| text_at(condition, "status"));
        vec![
            name(schema),
            text_at(schema, "spec.priorityLevelConfiguration.name").into(),
            schema.pointer("/spec/matchingPrecedence").cloned().unwrap_or_default(),
            or_none(text_at(schema, "spec.distinguisherMethod.type")).into(),
            created(schema, now),
            missing.unwrap_or_else(|| "?".to_owned()).into(),
        ]
    },
};

/// Priority levels.
pub const PRIORITY_LEVEL: Builtin = Builtin {
    columns: &[
        NAME,
        ("Type", "string", 0, "Whether its requests are limited"),
        ("NominalConcurrencyShares", "string", 0, "Its share of what the server can do"),
        ("Queues", "string", 0, "Number of queues"),
        ("HandSize", "string", 0, "Queues that one flow may use"),
        ("QueueLengthLimit", "string", 0, "Most requests that wait in one queue"),
        AGE,
    ],
    cells: |level, now| {
        let number = |path: &str| level.pointer(path).cloned().unwrap_or_else(|| "<none>".into());
        let queuing = "/spec/limited/limitResponse/queuing";
        vec![
            name(level),
            text_at(level, "spec.type").into(),
            number("/spec/limited/nominalConcurrencyShares"),
            number(&format!("{queuing}/queues")),
            number(&format!("{queuing}/handSize")),
            number(&format!("{queuing}/queueLengthLimit")),
            created(level, now),
        ]
    },
};

/// Classes of attributes of volumes.
pub const VOLUME_ATTRIBUTES_CLASS: Builtin = Builtin {
    columns: &[NAME, ("DriverName", "string", 0, "Driver of the volumes"), AGE],
    cells: |class, now| vec![name(class), text_at(class, "driverName").into(), created(class, now)],
};

/// Kinds that show their age and nothing else.
pub const NAME_AND_AGE_TEXT: Builtin =
    Builtin { columns: &[NAME, AGE], cells: |object, now| vec![name(object), created(object, now)] };

/// Claims of devices.
pub const RESOURCE_CLAIM: Builtin = Builtin {
    columns: &[NAME, ("State", "string", 0, "Whether it is allocated and reserved"), AGE],
    cells: |claim, now| {
        let is_deleted = !object::meta(claim, "deletionTimestamp").is_empty();
        let is_allocated = claim.pointer("/status/allocation").is_some_and(|value| !value.is_null());
        let reserved = claim.pointer("/status/reservedFor").and_then(Value::as_array);
        let states = [
            ("deleted", is_deleted),
            ("pending", !is_deleted && !is_allocated),
            ("allocated", is_allocated),
            ("reserved", is_allocated && reserved.is_some_and(|list| !list.is_empty())),
        ];
        let states = states.into_iter().filter_map(|(state, is_so)| is_so.then_some(state));
        vec![name(claim), states.collect::<Vec<_>>().join(",").into(), created(claim, now)]
    },
};

/// Devices that a driver offers.
pub const RESOURCE_SLICE: Builtin = Builtin {
    columns: &[
        NAME,
        ("Node", "string", 0, "Node of the devices"),
        ("Driver", "string", 0, "Driver of the devices"),
        ("Pool", "string", 0, "Pool that the slice belongs to"),
        AGE,
    ],
    cells: |slice, now| {
        vec![
            name(slice),
            text_at(slice, "spec.nodeName").into(),
            text_at(slice, "spec.driver").into(),
            text_at(slice, "spec.pool.name").into(),
            created(slice, now),
        ]
    },
};

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == kind)
}
