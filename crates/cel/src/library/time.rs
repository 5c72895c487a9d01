//! Moments and durations.

use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};
use krafla_api::GoDuration;

use super::{Function, T, failed, global, member, misfit};
use crate::cost::Cost;
use crate::eval::EvalError;
use crate::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    global("timestamp", &[T::Str], T::Time, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => {
            let read = parse_timestamp(text).map(Value::Timestamp);
            read.ok_or_else(|| failed(format!("parsing time {:?}: not a timestamp", &**text)))
        }
        _ => misfit(),
    }),
    global("timestamp", &[T::Int], T::Time, Cost::Flat, |arguments, _| match arguments {
        [Value::Int(seconds)] => {
            Timestamp::from_second(*seconds).map(Value::Timestamp).map_err(|_| failed("timestamp overflow"))
        }
        _ => misfit(),
    }),
    global("timestamp", &[T::Time], T::Time, Cost::Flat, |arguments, _| match arguments {
        [value] => Ok(value.clone()),
        _ => misfit(),
    }),
    global("duration", &[T::Str], T::Duration, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => match text.parse() {
            Ok(duration) => Ok(Value::Duration(duration)),
            Err(_) => {
                Err(failed("type conversion error from 'string' to 'google.protobuf.Duration'".to_owned()))
            }
        },
        _ => misfit(),
    }),
    global("duration", &[T::Duration], T::Duration, Cost::Flat, |arguments, _| match arguments {
        [value] => Ok(value.clone()),
        _ => misfit(),
    }),
    global("_+_", &[T::Time, T::Duration], T::Time, Cost::Flat, |arguments, _| match arguments {
        [Value::Timestamp(at), Value::Duration(by)] => moved(*at, by.as_nanos().into()),
        _ => misfit(),
    }),
    global("_+_", &[T::Duration, T::Time], T::Time, Cost::Flat, |arguments, _| match arguments {
        [Value::Duration(by), Value::Timestamp(at)] => moved(*at, by.as_nanos().into()),
        _ => misfit(),
    }),
    global("_-_", &[T::Time, T::Duration], T::Time, Cost::Flat, |arguments, _| match arguments {
        [Value::Timestamp(at), Value::Duration(by)] => moved(*at, -i128::from(by.as_nanos())),
        _ => misfit(),
    }),
    global("_-_", &[T::Time, T::Time], T::Duration, Cost::Flat, |arguments, _| match arguments {
        [Value::Timestamp(at), Value::Timestamp(from)] => lasting(at.as_nanosecond() - from.as_nanosecond()),
        _ => misfit(),
    }),
    global("_+_", &[T::Duration, T::Duration], T::Duration, Cost::Flat, |arguments, _| match arguments {
        [Value::Duration(left), Value::Duration(right)] => {
            lasting(i128::from(left.as_nanos()) + i128::from(right.as_nanos()))
        }
        _ => misfit(),
    }),
    global("_-_", &[T::Duration, T::Duration], T::Duration, Cost::Flat, |arguments, _| match arguments {
        [Value::Duration(left), Value::Duration(right)] => {
            lasting(i128::from(left.as_nanos()) - i128::from(right.as_nanos()))
        }
        _ => misfit(),
    }),
    // Months and days of the week, of the month and of the year are counted from zero; only dates are not.
    member("getFullYear", &[T::Time], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, |at| at.year().into())
    }),
    member("getFullYear", &[T::Time, T::Str], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, |at| at.year().into())
    }),
    member("getMonth", &[T::Time], T::Int, Cost::Flat, |arguments, _| part(arguments, month)),
    member("getMonth", &[T::Time, T::Str], T::Int, Cost::Flat, |arguments, _| part(arguments, month)),
    member("getDate", &[T::Time], T::Int, Cost::Flat, |arguments, _| part(arguments, |at| at.day().into())),
    member("getDate", &[T::Time, T::Str], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, |at| at.day().into())
    }),
    member("getDayOfMonth", &[T::Time], T::Int, Cost::Flat, |arguments, _| part(arguments, day_of_month)),
    member("getDayOfMonth", &[T::Time, T::Str], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, day_of_month)
    }),
    member("getDayOfWeek", &[T::Time], T::Int, Cost::Flat, |arguments, _| part(arguments, day_of_week)),
    member("getDayOfWeek", &[T::Time, T::Str], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, day_of_week)
    }),
    member("getDayOfYear", &[T::Time], T::Int, Cost::Flat, |arguments, _| part(arguments, day_of_year)),
    member("getDayOfYear", &[T::Time, T::Str], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, day_of_year)
    }),
    member("getHours", &[T::Time], T::Int, Cost::Flat, |arguments, _| part(arguments, |at| at.hour().into())),
    member("getHours", &[T::Time, T::Str], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, |at| at.hour().into())
    }),
    member("getMinutes", &[T::Time], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, |at| at.minute().into())
    }),
    member("getMinutes", &[T::Time, T::Str], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, |at| at.minute().into())
    }),
    member("getSeconds", &[T::Time], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, |at| at.second().into())
    }),
    member("getSeconds", &[T::Time, T::Str], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, |at| at.second().into())
    }),
    member("getMilliseconds", &[T::Time], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, |at| at.millisecond().into())
    }),
    member("getMilliseconds", &[T::Time, T::Str], T::Int, Cost::Flat, |arguments, _| {
        part(arguments, |at| at.millisecond().into())
    }),
    member("getHours", &[T::Duration], T::Int, Cost::Flat, |arguments, _| {
        whole(arguments, 3_600_000_000_000)
    }),
    member("getMinutes", &[T::Duration], T::Int, Cost::Flat, |arguments, _| whole(arguments, 60_000_000_000)),
    member("getSeconds", &[T::Duration], T::Int, Cost::Flat, |arguments, _| whole(arguments, 1_000_000_000)),
    member("getMilliseconds", &[T::Duration], T::Int, Cost::Flat, |arguments, _| match arguments {
        [Value::Duration(duration)] => Ok(Value::Int(duration.as_nanos() / 1_000_000 % 1000)),
        _ => misfit(),
    }),
];

/// A moment as RFC 3339 writes it, or the start of a day.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let day = || {
        text.parse::<jiff::civil::Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|start| start.timestamp())
    };
    if text.len() == 10 { day() } else { text.parse().ok() }
}

/// A duration as seconds, which is how its text is made: `90s`, `1.5s`.
pub(super) fn in_seconds(duration: GoDuration) -> String {
    let nanos = duration.as_nanos();
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, rest) = (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    if rest == 0 {
        return format!("{sign}{seconds}s");
    }
    let fraction = format!("{rest:09}");
    format!("{sign}{seconds}.{}s", fraction.trim_end_matches('0'))
}

fn moved<'a>(at: Timestamp, nanos: i128) -> Result<Value<'a>, EvalError> {
    let moved =
        i64::try_from(nanos).ok().and_then(|nanos| at.checked_add(SignedDuration::from_nanos(nanos)).ok());
    moved.map(Value::Timestamp).ok_or_else(|| failed("timestamp overflow"))
}

fn lasting<'a>(nanos: i128) -> Result<Value<'a>, EvalError> {
    let duration = i64::try_from(nanos).map(GoDuration::from_nanos);
    duration.map(Value::Duration).map_err(|_| failed("duration overflow"))
}

/// A part of a moment, in UTC or in the time zone that is named.
fn part<'a>(arguments: &[Value<'a>], part: fn(&Zoned) -> i64) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::Timestamp(at)] => Ok(Value::Int(part(&at.to_zoned(TimeZone::UTC)))),
        [Value::Timestamp(at), Value::String(zone)] => Ok(Value::Int(part(&at.to_zoned(time_zone(zone)?)))),
        _ => misfit(),
    }
}

/// `UTC`, or a distance from it: `-08:00`. Names of places need a database that not every machine has.
fn time_zone(name: &str) -> Result<TimeZone, EvalError> {
    if matches!(name, "UTC" | "Z" | "") {
        return Ok(TimeZone::UTC);
    }
    let read = || {
        let (sign, rest) = match name.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, name.strip_prefix('+').unwrap_or(name)),
        };
        let (hours, minutes) = rest.split_once(':')?;
        let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
        let seconds = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?;
        Offset::from_seconds(sign * seconds).ok().map(TimeZone::fixed)
    };
    read().ok_or_else(|| failed(format!("unknown time zone {name}")))
}

fn month(at: &Zoned) -> i64 {
    i64::from(at.month()) - 1
}

fn day_of_month(at: &Zoned) -> i64 {
    i64::from(at.day()) - 1
}

fn day_of_week(at: &Zoned) -> i64 {
    at.weekday().to_sunday_zero_offset().into()
}

fn day_of_year(at: &Zoned) -> i64 {
    i64::from(at.day_of_year()) - 1
}

fn whole<'a>(arguments: &[Value<'a>], unit: i64) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::Duration(duration)] => Ok(Value::Int(duration.as_nanos() / unit)),
        _ => misfit(),
    }
}
