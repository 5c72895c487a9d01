//! Cron's notation, as Volcano and Kubernetes read it: five fields, or a word such as `@daily`.
//!
//! ```text
//!   */15 8-18 * * mon-fri
//!   │    │    │ │ └ day of the week: 0-6, sun-sat
//!   │    │    │ └── month: 1-12, jan-dec
//!   │    │    └──── day of the month: 1-31
//!   │    └───────── hour: 0-23
//!   └────────────── minute: 0-59
//! ```
//!
//! This is only the reading; when a schedule is next due is the CronJob controller's question.

use std::fmt;
use std::num::IntErrorKind;
use std::str::FromStr;

use krafla_api::GoDuration;

/// When something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The time zone in front of the schedule (`TZ=Asia/Tokyo ...`), if any.
    pub time_zone: Option<String>,
    /// The times.
    pub times: Times,
}

/// The times of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Times {
    /// Whenever the clock and the calendar show this.
    At {
        /// Minutes of the hour.
        minute: Values,
        /// Hours of the day.
        hour: Values,
        /// Days of the month.
        day_of_month: Values,
        /// Months of the year.
        month: Values,
        /// Days of the week; 0 is Sunday.
        day_of_week: Values,
    },
    /// Again and again after this time; at least a second.
    Every(GoDuration),
}

/// The values that one field allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// One bit per value.
    pub bits: u64,
    /// Whether the field is a star: if one of the two day fields is, both must match; else either does.
    pub is_star: bool,
}

impl Values {
    /// Whether a value is allowed.
    pub fn contains(self, value: u8) -> bool {
        value < 64 && self.bits & (1 << value) != 0
    }
}

/// Why a text is no schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotASchedule(String);

impl fmt::Display for NotASchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotASchedule {}

/// A schedule is a line, not a book.
const TEXT_LENGTH_MAX: usize = 1024;

/// The values of a field, and the words for them.
struct Range {
    min: u8,
    max: u8,
    words: &'static [&'static str],
}

const MINUTE: Range = Range { min: 0, max: 59, words: &[] };
const HOUR: Range = Range { min: 0, max: 23, words: &[] };
const DAY_OF_MONTH: Range = Range { min: 1, max: 31, words: &[] };
const MONTH: Range = Range {
    min: 1,
    max: 12,
    words: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const DAY_OF_WEEK: Range =
    Range { min: 0, max: 6, words: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

impl FromStr for Schedule {
    type Err = NotASchedule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > TEXT_LENGTH_MAX {
            return Err(NotASchedule(format!("a schedule has at most {TEXT_LENGTH_MAX} characters")));
        }
        let zoned = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let (time_zone, rest) = match zoned {
            None => (None, text),
            Some(zoned) => {
                let parts = zoned.split_once(' ');
                let (zone, rest) =
                    parts.ok_or_else(|| NotASchedule("no schedule after the time zone".to_owned()))?;
                (Some(zone.to_owned()), rest.trim())
            }
        };
        let times = if rest.starts_with('@') { parse_word(rest)? } else { parse_fields(rest)? };
        Ok(Schedule { time_zone, times })
    }
}

fn parse_word(word: &str) -> Result<Times, NotASchedule> {
    let fields = match word {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let every = word.strip_prefix("@every ");
            let every = every.ok_or_else(|| NotASchedule(format!("unrecognized descriptor: {word}")))?;
            let duration: Result<GoDuration, _> = every.parse();
            let duration = duration.map_err(|_| {
                NotASchedule(format!("failed to parse duration {word}: {}", duration_fault(every)))
            })?;
            return Ok(Times::Every(whole_seconds(duration)));
        }
    };
    parse_fields(fields)
}

/// Seconds without their fraction, and at least one.
/// What is wrong with a duration, in the words of Kubernetes' answers.
fn duration_fault(text: &str) -> String {
    let invalid = format!("time: invalid duration {text:?}");
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest.is_empty() {
        return invalid;
    }
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let (number, after) = rest.split_at(rest.find(|c| !is_number(c)).unwrap_or(rest.len()));
        if !number.contains(|c: char| c.is_ascii_digit()) || number.matches('.').count() > 1 {
            return invalid;
        }
        let (unit, after) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        if unit.is_empty() {
            return format!("time: missing unit in duration {text:?}");
        }
        if !["ns", "us", "µs", "μs", "ms", "s", "m", "h"].contains(&unit) {
            return format!("time: unknown unit {unit:?} in duration {text:?}");
        }
        rest = after;
    }
    invalid
}

fn whole_seconds(duration: GoDuration) -> GoDuration {
    GoDuration::from_seconds((duration.as_nanos() / 1_000_000_000).max(1))
}

fn parse_fields(text: &str) -> Result<Times, NotASchedule> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day_of_month, month, day_of_week] = fields.as_slice() else {
        let (n_fields, fields) = (fields.len(), fields.join(" "));
        return Err(NotASchedule(format!("expected exactly 5 fields, found {n_fields}: [{fields}]")));
    };
    Ok(Times::At {
        minute: parse_field(minute, &MINUTE)?,
        hour: parse_field(hour, &HOUR)?,
        day_of_month: parse_field(day_of_month, &DAY_OF_MONTH)?,
        month: parse_field(month, &MONTH)?,
        day_of_week: parse_field(day_of_week, &DAY_OF_WEEK)?,
    })
}

/// A list of values and ranges. Empty items say nothing.
fn parse_field(text: &str, range: &Range) -> Result<Values, NotASchedule> {
    let mut values = Values { bits: 0, is_star: false };
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let more = parse_item(item, range).map_err(NotASchedule)?;
        values.bits |= more.bits;
        values.is_star |= more.is_star;
    }
    Ok(values)
}

/// `*`, `n`, `a-b`, each perhaps with `/step`; `n/step` goes on to the largest value.
fn parse_item(item: &str, range: &Range) -> Result<Values, String> {
    let (span, step) = item.split_once('/').map_or((item, None), |(span, step)| (span, Some(step)));
    let (low, high) = span.split_once('-').map_or((span, None), |(low, high)| (low, Some(high)));
    // What follows a star is not looked at.
    let is_star = low == "*" || low == "?";
    let (min, max) = (u64::from(range.min), u64::from(range.max));
    let (start, end) = match high {
        _ if is_star => (min, max),
        Some(high) if high.contains('-') => return Err(format!("too many hyphens: {item}")),
        Some(high) => (range.value(low)?, range.value(high)?),
        None => {
            let start = range.value(low)?;
            (start, if step.is_some() { max } else { start })
        }
    };
    let step = match step {
        Some(step) if step.contains('/') => return Err(format!("too many slashes: {item}")),
        Some(step) => number(step)?,
        None => 1,
    };
    if start < min {
        return Err(format!("beginning of range ({start}) below minimum ({min}): {item}"));
    }
    if end > max {
        return Err(format!("end of range ({end}) above maximum ({max}): {item}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {item}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {item}"));
    }
    let values = (start..=end).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    // A star that leaves values out is no longer one.
    Ok(Values { bits: values.fold(0, |bits, value| bits | 1 << value), is_star: is_star && step == 1 })
}

impl Range {
    fn value(&self, text: &str) -> Result<u64, String> {
        let word = self.words.iter().position(|word| word.eq_ignore_ascii_case(text));
        match word.and_then(|position| u64::try_from(position).ok()) {
            Some(position) => Ok(position + u64::from(self.min)),
            None => number(text),
        }
    }
}

/// A number that is not negative; a plus in front is allowed.
fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(error) => {
            let why = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let list = |values: Values, max: u8| {
            let all: Vec<String> =
                (0..=max).filter(|value| values.contains(*value)).map(|value| value.to_string()).collect();
            if values.is_star { "*".to_owned() } else { all.join(",") }
        };
        match text.parse::<Schedule>() {
            Err(error) => format!("error: {error}"),
            Ok(Schedule { times: Times::Every(duration), .. }) => format!("every {duration}"),
            Ok(Schedule {
                time_zone,
                times: Times::At { minute, hour, day_of_month, month, day_of_week },
            }) => format!(
                "{} {} {} {} {}{}",
                list(minute, 59),
                list(hour, 23),
                list(day_of_month, 31),
                list(month, 12),
                list(day_of_week, 6),
                time_zone.map(|zone| format!(" in {zone}")).unwrap_or_default()
            ),
        }
    }

    #[test]
    fn schedules_are_read() {
        for (text, expected) in [
            ("+1 *-3 * * *", "1 * * * *"),
            ("*/15 8-10 * * mon-WED", "0,15,30,45 8,9,10 * * 1,2,3"),
            ("5/20 0 1,,2 JAN ?", "5,25,45 0 1,2 1 *"),
            ("0 0 */1 * 1", "0 0 * * 1"),
            ("0 0 */20 * 1", "0 0 1,21 * 1"),
            (", * * * *", " * * * *"),
            ("@weekly", "0 0 * * 0"),
            ("CRON_TZ=Asia/Tokyo 0 9 * * *", "0 9 * * * in Asia/Tokyo"),
            ("TZ=UTC @daily", "0 0 * * * in UTC"),
            ("@every 90m", "every 1h30m0s"),
            ("@every 500ms", "every 1s"),
            ("@every -5m", "every 1s"),
            ("@every 2.7s", "every 2s"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        let refused = [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* * 0 * *",
            "* * * * 7",
            "5-1 * * * *",
            "1-2-3 * * * *",
            "*/0 * * * *",
            "*/ * * * *",
            "-1 * * * *",
            "1/2/3 * * * *",
            "*/5-7 * * * *",
            "99999999999 * * * *",
            "* * * foo *",
            "TZ=UTC",
            "TZ=UTC ",
            "@reboot",
            "@every",
            "@every 1d",
        ];
        for text in refused {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_refusal_says_what_is_wrong_in_the_words_that_users_know() {
        for (text, why) in [
            ("every day", "expected exactly 5 fields, found 2: [every day]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
            ("* * * foo *", "failed to parse int from foo: strconv.Atoi: parsing \"foo\": invalid syntax"),
            ("@sometimes", "unrecognized descriptor: @sometimes"),
        ] {
            assert_eq!(shown(text), format!("error: {why}"), "{text}");
        }
    }
}
