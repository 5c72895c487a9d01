//! Events.

use serde_json::Value;

use super::Rules;
use crate::object;

/// Events.
pub struct Event;

impl Rules for Event {
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
