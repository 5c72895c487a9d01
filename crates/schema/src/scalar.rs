//! Single values with a form of their own: times, durations, quantities, bytes. What is read is put into the form in
//! which Go prints it; what cannot be read is told in Go's words.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use jiff::Timestamp;
use jiff::civil::DateTime;
use krafla_api::{GoDuration, Quantity};
use serde_json::Value;

/// How exact a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `2006-01-02T15:04:05Z`; fractions of a second are read and dropped.
    Seconds,
    /// `2006-01-02T15:04:05.000000Z`; the fraction must be there.
    Micros,
}

impl Precision {
    /// The form as Go's messages show it.
    fn layout(self) -> &'static str {
        match self {
            Precision::Seconds => "2006-01-02T15:04:05Z07:00",
            Precision::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// A time in UTC. Go's zero time, the year 1, prints as null: none.
pub fn print_time(time: Timestamp, precision: Precision) -> Option<String> {
    if time == Timestamp::from_second(GO_ZERO_SECONDS).ok()? {
        return None;
    }
    Some(match precision {
        Precision::Seconds => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Precision::Micros => time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
    })
}

/// Midnight of 1 January of the year 1.
const GO_ZERO_SECONDS: i64 = -62_135_596_800;

/// Reads a time. The error is Go's text.
pub fn parse_time(text: &str, precision: Precision) -> Result<Timestamp, String> {
    TimeReader { whole: text, rest: text, precision }.read()
}

struct TimeReader<'a> {
    whole: &'a str,
    rest: &'a str,
    precision: Precision,
}

impl TimeReader<'_> {
    fn read(mut self) -> Result<Timestamp, String> {
        let year = self.digits(4, "2006")?;
        self.mark('-', "-")?;
        let month = self.digits(2, "01")?;
        self.mark('-', "-")?;
        let day = self.digits(2, "02")?;
        self.mark('T', "T")?;
        let hour = self.digits(2, "15")?;
        self.mark(':', ":")?;
        let minute = self.digits(2, "04")?;
        self.mark(':', ":")?;
        let second = self.digits(2, "05")?;
        let nanos = self.fraction()?;
        let offset_seconds = self.zone()?;
        if !self.rest.is_empty() {
            return Err(format!("parsing time {:?}: extra text: {:?}", self.whole, self.rest));
        }
        for (number, least, most, what) in [
            (month, 1, 12, "month"),
            (hour, 0, 23, "hour"),
            (minute, 0, 59, "minute"),
            (second, 0, 59, "second"),
        ] {
            if !(least..=most).contains(&number) {
                return Err(format!("parsing time {:?}: {what} out of range", self.whole));
            }
        }
        civil(year, [month, day, hour, minute, second], nanos)
            .and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC).ok())
            .and_then(|time| {
                Timestamp::new(time.timestamp().as_second().checked_sub(offset_seconds)?, nanos).ok()
            })
            .ok_or_else(|| format!("parsing time {:?}: day out of range", self.whole))
    }

    fn mismatch(&self, expected: &str) -> String {
        let layout = self.precision.layout();
        format!("parsing time {:?} as {layout:?}: cannot parse {:?} as {expected:?}", self.whole, self.rest)
    }

    fn digits(&mut self, count: usize, expected: &str) -> Result<i32, String> {
        let split = self.rest.split_at_checked(count);
        match split.filter(|(digits, _)| digits.bytes().all(|byte| byte.is_ascii_digit())) {
            Some((digits, rest)) => {
                self.rest = rest;
                digits.parse().map_err(|_| self.mismatch(expected))
            }
            None => Err(self.mismatch(expected)),
        }
    }

    fn mark(&mut self, mark: char, expected: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(mark).ok_or_else(|| self.mismatch(expected))?;
        Ok(())
    }

    fn fraction(&mut self) -> Result<i32, String> {
        let digits = self.rest.strip_prefix(['.', ',']).unwrap_or_default();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (digits, rest) = digits.split_at_checked(end).unwrap_or_default();
        match self.precision {
            Precision::Seconds if digits.is_empty() => return Ok(0),
            Precision::Micros if digits.len() != 6 => return Err(self.mismatch(".000000")),
            _ => self.rest = rest,
        }
        let nanos: String = digits.chars().chain("000000000".chars()).take(9).collect();
        nanos.parse().map_err(|_| self.mismatch(".000000"))
    }

    fn zone(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let before = self.rest;
        let mut parse = || {
            let sign = if self.rest.starts_with('-') { -1 } else { 1 };
            self.rest = self.rest.strip_prefix(['+', '-'])?;
            let hours = self.digits(2, "Z07:00").ok()?;
            self.mark(':', "Z07:00").ok()?;
            let minutes = self.digits(2, "Z07:00").ok()?;
            Some(sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60))
        };
        match parse() {
            Some(offset) => Ok(offset),
            None => {
                self.rest = before;
                Err(self.mismatch("Z07:00"))
            }
        }
    }
}

fn civil(year: i32, [month, day, hour, minute, second]: [i32; 5], nanos: i32) -> Option<DateTime> {
    let small = |number: i32| i8::try_from(number).ok();
    let date = jiff::civil::Date::new(i16::try_from(year).ok()?, small(month)?, small(day)?).ok()?;
    Some(date.at(small(hour)?, small(minute)?, small(second)?, nanos))
}

/// A quantity in its canonical form. The error is Go's text.
pub fn canonical_quantity(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    text.parse::<Quantity>().map(|quantity| quantity.to_string()).map_err(|_| {
        let suffix =
            text.trim_start_matches(['+', '-']).trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
        let after = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let exponent = after.strip_prefix(['+', '-']).unwrap_or(after);
        if text.is_empty()
            || text.len() == suffix.len()
            || !exponent.bytes().all(|byte| byte.is_ascii_digit())
        {
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        } else if suffix.is_empty() {
            "unable to parse numeric part of quantity"
        } else {
            "unable to parse quantity's suffix"
        }
    })
}

/// A number as Go's conversions make a whole one of it: what does not fit wraps around, or is the least of all; none if it
/// has a fraction.
pub fn go_converted(text: &str, is_short: bool) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "that is what Go does")]
    if let Ok(whole) = text.parse::<i64>() {
        return Some(if is_short { i64::from(whole as i32) } else { whole });
    }
    let number = text.parse::<f64>().ok().filter(|number| number.fract() == 0.0)?;
    let (least, beyond) =
        if is_short { (i64::from(i32::MIN), 2f64.powi(31)) } else { (i64::MIN, 2f64.powi(63)) };
    #[expect(clippy::cast_possible_truncation, reason = "it fits")]
    Some(if (-beyond..beyond).contains(&number) { number as i64 } else { least })
}

/// An amount of a resource as the server keeps it: in whole thousandths.
pub fn rounded_amount(amount: Value) -> Value {
    let quantity = amount.as_str().and_then(|text| text.parse::<Quantity>().ok());
    match quantity.filter(|quantity| quantity.rounded_to_milli() != *quantity) {
        Some(quantity) => quantity.rounded_to_milli().to_string().into(),
        None => amount,
    }
}

/// A duration as Go prints it. The error is Go's text.
pub fn canonical_duration(text: &str) -> Result<String, String> {
    let duration: Result<GoDuration, _> = text.parse();
    duration.map(|duration| duration.to_string()).map_err(|_| format!("time: invalid duration {text:?}"))
}

/// Bytes as JSON carries them.
pub fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Go does not mind stray bits behind the last byte.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The bytes that base64 stands for; none if it is not well formed.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    LENIENT.decode(text).ok()
}

/// Base64 without the line breaks that it may have. The error is Go's text, with the place that Go names.
pub fn canonical_base64(text: &str) -> Result<String, String> {
    let plain: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match LENIENT.decode(&plain) {
        Ok(bytes) => Ok(encode_base64(&bytes)),
        Err(_) => Err(format!("illegal base64 data at input byte {}", corrupt_at(text.as_bytes()))),
    }
}

/// Where Go's decoder stops: at the wrong character, or at the start of the last group where that is too short.
fn corrupt_at(text: &[u8]) -> usize {
    let mut n_in_group = 0;
    let mut letters = text.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    while let Some((at, byte)) = letters.next() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => n_in_group = (n_in_group + 1) % 4,
            b'=' if n_in_group == 2 => match letters.next() {
                None => return text.len(),
                Some((_, b'=')) => return letters.next().map_or(at, |(at, _)| at),
                Some((second, _)) => return second.saturating_sub(1),
            },
            b'=' if n_in_group == 3 => return letters.next().map_or(at, |(at, _)| at),
            _ => return at,
        }
    }
    text.len().saturating_sub(n_in_group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str, precision: Precision) -> String {
        match parse_time(text, precision) {
            Ok(time) => print_time(time, precision).unwrap_or_else(|| "null".to_owned()),
            Err(fault) => fault,
        }
    }

    #[test]
    fn times_are_printed_in_utc() {
        let seconds = |text| time(text, Precision::Seconds);
        assert_eq!(seconds("2020-01-02T03:04:05Z"), "2020-01-02T03:04:05Z");
        assert_eq!(seconds("2020-01-02T03:04:05.999+02:30"), "2020-01-02T00:34:05Z");
        assert_eq!(seconds("0001-01-01T00:00:00Z"), "null");
        let micros = |text| time(text, Precision::Micros);
        assert_eq!(micros("2020-01-02T03:04:05.000005Z"), "2020-01-02T03:04:05.000005Z");
    }

    #[test]
    fn what_is_no_time_is_told_in_gos_words() {
        let seconds = |text| time(text, Precision::Seconds);
        let prefix = "as \"2006-01-02T15:04:05Z07:00\": cannot parse";
        assert_eq!(
            seconds("yesterday"),
            format!("parsing time \"yesterday\" {prefix} \"yesterday\" as \"2006\"")
        );
        assert_eq!(seconds("2020-01-02"), format!("parsing time \"2020-01-02\" {prefix} \"\" as \"T\""));
        assert_eq!(
            seconds("2020-13-02T03:04:05Z"),
            "parsing time \"2020-13-02T03:04:05Z\": month out of range"
        );
        assert_eq!(
            seconds("2020-02-30T03:04:05Z"),
            "parsing time \"2020-02-30T03:04:05Z\": day out of range"
        );
        let fault = "parsing time \"2020-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": \
                     cannot parse \"Z\" as \".000000\"";
        assert_eq!(time("2020-01-01T00:00:00Z", Precision::Micros), fault);
    }

    #[test]
    fn quantities_are_canonical_or_refused_in_gos_words() {
        assert_eq!(canonical_quantity("0.5").as_deref(), Ok("500m"));
        assert_eq!(canonical_quantity(" 1024Mi").as_deref(), Ok("1Gi"));
        let format =
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        for text in ["", "much", "1x", "10Foo"] {
            assert_eq!(canonical_quantity(text), Err(format), "{text:?}");
        }
        assert_eq!(canonical_quantity("1kk"), Err("unable to parse quantity's suffix"));
    }

    #[test]
    fn base64_faults_name_the_place_that_go_names() {
        let at = |text| canonical_base64(text).unwrap_err().rsplit(' ').next().map(str::to_owned).unwrap();
        assert_eq!(canonical_base64("YQ\n==").as_deref(), Ok("YQ=="));
        for (text, place) in [("v", "0"), ("not base64", "3"), ("YWJj!", "4"), ("YQ=", "3"), ("YWJjZA", "4")]
        {
            assert_eq!(at(text), place, "{text:?}");
        }
    }
}
