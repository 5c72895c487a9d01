//! Events.

use serde_json::{Value, json};

use super::{Rules, default_to};
use crate::object;

/// Events.
pub struct Event;

impl Rules for Event {
    /// The fields that an event always shows, set or not.
    fn default(&self, object: &mut Value) {
        let fields = object::fields(object);
        for time in ["eventTime", "firstTimestamp", "lastTimestamp"] {
            default_to(fields, time, Value::Null);
        }
        default_to(fields, "reportingComponent", "");
        default_to(fields, "reportingInstance", "");
        default_to(fields, "source", json!({}));
    }

    fn selectable(&self, object: &Value, field: &str) -> String {
        let first_of = |paths: [&str; 2]| {
            paths
                .iter()
                .map(|path| object::text_at(object, path))
                .find(|text| !text.is_empty())
                .unwrap_or_default()
        };
        match field {
            "source" => first_of(["source.component", "reportingComponent"]),
            "reportingController" => object::text_at(object, "reportingComponent"),
            _ => object::text_at(object, field),
        }
    }
}
