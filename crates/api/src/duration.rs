//! Durations in Go's notation: `1h2m3s`, `300ms`, `-1.5h`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration as Go knows it: whole nanoseconds in 64 bits, and it may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    nanos: i64,
}

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The magnitude of the most negative duration; the most positive is one less.
const MAGNITUDE_MAX: u64 = 1 << 63;

impl GoDuration {
    /// A duration of so many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> GoDuration {
        GoDuration { nanos }
    }

    /// A duration of so many seconds; stays within what can be written down.
    pub const fn from_seconds(seconds: i64) -> GoDuration {
        GoDuration { nanos: seconds.saturating_mul(SECOND as i64) }
    }

    /// In nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// As a waiting time: a negative duration is over at once.
    pub fn to_std(self) -> Duration {
        u64::try_from(self.nanos).map(Duration::from_nanos).unwrap_or_default()
    }

    /// Whether it is below zero.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }
}

impl From<Duration> for GoDuration {
    /// Stays within what can be written down (292 years).
    fn from(duration: Duration) -> GoDuration {
        GoDuration { nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX) }
    }
}

impl fmt::Display for GoDuration {
    /// `1h2m3.5s`; below a second in the largest unit that leaves a whole number before the point (`1.5ms`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos.unsigned_abs();
        if self.nanos < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            _ if nanos < MICROSECOND => write!(f, "{nanos}ns"),
            _ if nanos < MILLISECOND => write!(f, "{}µs", Decimal { count: nanos, unit: MICROSECOND }),
            _ if nanos < SECOND => write!(f, "{}ms", Decimal { count: nanos, unit: MILLISECOND }),
            _ => {
                let (hours, minutes) = (nanos / HOUR, nanos % HOUR / MINUTE);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if hours > 0 || minutes > 0 {
                    write!(f, "{minutes}m")?;
                }
                write!(f, "{}s", Decimal { count: nanos % MINUTE, unit: SECOND })
            }
        }
    }
}

/// A count of nanoseconds in a larger unit, without zeros at the end of its fraction.
struct Decimal {
    count: u64,
    unit: u64,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decimal { count, unit } = *self;
        write!(f, "{}", count / unit)?;
        let fraction = count % unit;
        if fraction == 0 {
            return Ok(());
        }
        let digits = unit.ilog10() as usize;
        let fraction = format!("{fraction:0digits$}");
        write!(f, ".{}", fraction.trim_end_matches('0'))
    }
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotADuration(String);

impl fmt::Display for NotADuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a duration: {:?}; write it like \"1h30m\", \"10s\" or \"500ms\"", self.0)
    }
}

impl std::error::Error for NotADuration {}

impl FromStr for GoDuration {
    type Err = NotADuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| NotADuration(text.chars().take(64).collect()))
    }
}

/// One or more numbers, each with a unit and perhaps a fraction, after an optional sign. Zero needs no unit.
fn parse(text: &str) -> Option<GoDuration> {
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if unsigned == "0" {
        return Some(GoDuration::default());
    }
    if unsigned.is_empty() {
        return None;
    }
    let (mut total, mut rest) = (0u64, unsigned);
    while !rest.is_empty() {
        let (nanos, after) = parse_component(rest)?;
        total = total.checked_add(nanos).filter(|total| *total <= MAGNITUDE_MAX)?;
        rest = after;
    }
    let nanos = if is_negative { 0i64.checked_sub_unsigned(total)? } else { i64::try_from(total).ok()? };
    Some(GoDuration { nanos })
}

/// One number with its unit, and what follows it.
fn parse_component(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at_checked(unit_end)?;
    let unit = unit_nanos(unit)?;
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let nanos = whole.checked_mul(unit)?.checked_add(fraction_nanos(fraction, unit))?;
    (nanos <= MAGNITUDE_MAX).then_some((nanos, rest))
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // Both the micro sign and the Greek letter are in use.
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    })
}

/// The nanoseconds of a fraction. Go computes them in floating point from as many digits as fit in 63 bits; a third of
/// an hour written with nineteen digits is therefore exactly twenty minutes, here too.
fn fraction_nanos(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0u64, 1f64);
    for digit in digits.bytes().map(|byte| u64::from(byte.saturating_sub(b'0'))) {
        let longer = value.checked_mul(10).and_then(|tens| tens.checked_add(digit));
        match longer {
            Some(longer) if value <= (MAGNITUDE_MAX - 1) / 10 && longer <= MAGNITUDE_MAX => {
                value = longer;
                scale *= 10.0;
            }
            _ => break,
        }
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for GoDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> String {
        text.parse::<GoDuration>().map_or_else(|error| error.to_string(), |duration| duration.to_string())
    }

    #[test]
    fn durations_print_as_go_prints_them() {
        for (text, expected) in [
            ("0", "0s"),
            ("0s", "0s"),
            ("-0", "0s"),
            ("5s", "5s"),
            ("300s", "5m0s"),
            ("5m", "5m0s"),
            ("1h", "1h0m0s"),
            ("90m", "1h30m0s"),
            ("1h0.5s", "1h0m0.5s"),
            ("1.5h", "1h30m0s"),
            (".5s", "500ms"),
            ("1.s", "1s"),
            ("-1.5h", "-1h30m0s"),
            ("+2m3.25s", "2m3.25s"),
            ("1ns", "1ns"),
            ("1100ns", "1.1µs"),
            ("2200us", "2.2ms"),
            ("12µs", "12µs"),
            ("12μs", "12µs"),
            ("3s2s", "5s"),
            ("39h9m14.425s", "39h9m14.425s"),
            ("52763797000ns", "52.763797s"),
            ("0.3333333333333333333h", "20m0s"),
            ("0.100000000000000000000h", "6m0s"),
            ("9007199254.740993ms", "2501h59m59.254740993s"),
            ("9223372036854775807ns", "2562047h47m16.854775807s"),
            ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(printed(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_a_remedy() {
        let refused = [
            "",
            "3",
            "-",
            "s",
            ".",
            "-.",
            ".s",
            "+.s",
            "1d",
            "1 s",
            "1s ",
            "3000000h",
            "9223372036854775808ns",
            "1h2",
            "1µ",
            "\u{65e5}s",
            "1e3s",
            "--1s",
            "-+1s",
            "-9223372036854775809ns",
            "9223372036854775.808us0.1s",
        ];
        for text in refused {
            assert!(text.parse::<GoDuration>().is_err(), "{text}");
        }
        assert_eq!(printed("1d"), "not a duration: \"1d\"; write it like \"1h30m\", \"10s\" or \"500ms\"");
    }

    #[test]
    fn a_negative_duration_is_over_at_once() {
        assert_eq!(GoDuration::from_seconds(-3).to_std(), Duration::ZERO);
        assert_eq!(GoDuration::from_seconds(3).to_std(), Duration::from_secs(3));
    }
}
