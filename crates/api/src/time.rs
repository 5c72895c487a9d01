//! Kubernetes' times, as they stand in JSON.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The time zone of this name, spelt exactly so.
pub fn time_zone(name: &str) -> Option<TimeZone> {
    if name == "UTC" {
        return Some(TimeZone::UTC);
    }
    TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name))
}

/// A moment. In JSON it has whole seconds (`2026-11-15T08:00:00Z`), as all of Kubernetes' times but the micro ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Timestamp);

impl Time {
    /// The moment `nanos` after 1970.
    pub fn from_nanos(nanos: i128) -> Time {
        Time(Timestamp::from_nanosecond(nanos).unwrap_or(Timestamp::MAX))
    }

    /// The moment `seconds` after 1970.
    pub fn from_seconds(seconds: i64) -> Time {
        Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
    }

    /// This moment plus a duration; stays within what can be written down.
    pub fn after(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(duration).unwrap_or(Timestamp::MAX))
    }

    /// How long after `earlier` this moment is; zero if it is before.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::try_from(self.0.duration_since(earlier.0)).unwrap_or_default()
    }

    /// The same moment without its fraction of a second: what remains after a trip through JSON.
    pub fn whole_seconds(self) -> Time {
        Time::from_seconds(self.0.as_second())
    }

    /// With microseconds (`2026-11-15T08:00:00.000000Z`), as Lease and Event want it.
    pub fn to_micro_string(self) -> String {
        format!("{:.6}", self.0)
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0}", self.whole_seconds().0)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map(Time).map_err(|_| serde::de::Error::custom(format_args!("not a time: {text:?}")))
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}
