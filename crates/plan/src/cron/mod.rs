//! When a schedule is due: cron's notation ([`krafla_admission::cron`]) on the clocks of a time zone.
//!
//! A time is due when the clock on the wall shows it. So an hour that a clock skips in spring has no runs, and one that it
//! repeats in autumn has them twice, as in Kubernetes and Volcano. Nothing here reads a clock: moments come in, moments go out.
//! Time zones are compiled in, so that every machine agrees on them.

use std::time::Duration;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use krafla_admission::cron::{NotASchedule, Schedule, Times};
use krafla_api::Time;

/// How far ahead a due time is looked for. A schedule such as `0 0 31 2 *` has none.
const YEARS_AHEAD_MAX: i16 = 5;

/// A schedule in its time zone.
#[derive(Clone, Debug)]
pub struct Timetable {
    times: Times,
    zone: TimeZone,
}

/// Why there is no timetable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The schedule can not be read.
    Schedule(String),
    /// There is no such time zone.
    Zone(String),
}

/// The latest due time, and how many there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The latest.
    pub at: Time,
    /// How many times were due up to now, reckoned by the distance of the first two.
    pub n_missed: u64,
}

impl Timetable {
    /// Reads a schedule. A zone within the schedule (`TZ=...`) goes before `zone`; without any it is UTC.
    pub fn new(schedule: &str, zone: Option<&str>) -> Result<Timetable, Problem> {
        let schedule: Schedule =
            schedule.parse().map_err(|problem: NotASchedule| Problem::Schedule(problem.to_string()))?;
        let name = schedule.time_zone.as_deref().or(zone).unwrap_or("UTC");
        let zone = krafla_api::time_zone(name).ok_or_else(|| Problem::Zone(name.to_owned()))?;
        Ok(Timetable { times: schedule.times, zone })
    }

    /// The first due time after a moment; none if there is none within five years.
    pub fn next(&self, after: Time) -> Option<Time> {
        match &self.times {
            Times::Every(period) => Some(after.whole_seconds().after(period.to_std())),
            Times::At { .. } => self.next_on_the_wall(after),
        }
    }

    /// The latest due time after `earliest` and not after `now`.
    pub fn due(&self, earliest: Time, now: Time) -> Option<Due> {
        let first = self.next(earliest).filter(|first| *first <= now)?;
        let gap = self.next(first).map_or(0, |second| second.since(first).as_secs());
        let n_missed = now.since(first).as_secs().checked_div(gap).unwrap_or(0).saturating_add(1);
        let at = match &self.times {
            Times::Every(_) => {
                first.after(Duration::from_secs(gap.saturating_mul(n_missed.saturating_sub(1))))
            }
            Times::At { .. } => self.latest(first, now),
        };
        Some(Due { at, n_missed })
    }

    /// How many times are past `earliest` and not later than `now`, about. Where runs have a deadline, what was due before it
    /// began is forgiven.
    pub fn n_missed(&self, earliest: Time, deadline: Option<Duration>, now: Time) -> u64 {
        let forgiven =
            deadline.map_or(Duration::ZERO, |deadline| now.since(earliest).saturating_sub(deadline));
        self.due(earliest.after(forgiven), now).map_or(0, |due| due.n_missed)
    }

    /// A moment as the zone's clocks show it, with the distance to UTC.
    pub fn on_the_wall(&self, at: Time) -> String {
        let shown = at.whole_seconds().0.to_zoned(self.zone.clone());
        if shown.offset().is_zero() {
            at.to_string()
        } else {
            shown.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
        }
    }

    /// The latest due time up to `now`, given one that is: the last moment after which something is still due, halved down to
    /// the second. However long the program was down, a few dozen looks are enough.
    fn latest(&self, first: Time, now: Time) -> Time {
        let is_due_after =
            |second: i64| self.next(Time::from_seconds(second)).is_some_and(|next| next <= now);
        let (mut yes, mut no) = (first.0.as_second().saturating_sub(1), now.0.as_second());
        while no.saturating_sub(yes) > 1 {
            let middle = yes.saturating_add(no.saturating_sub(yes) / 2);
            if is_due_after(middle) { yes = middle } else { no = middle }
        }
        self.next(Time::from_seconds(yes)).unwrap_or(first)
    }

    fn next_on_the_wall(&self, after: Time) -> Option<Time> {
        let start = after.whole_seconds().after(Duration::from_secs(1)).0.to_zoned(self.zone.clone());
        let last_year = start.year().saturating_add(YEARS_AHEAD_MAX);
        let mut shown = start;
        while shown.year() <= last_year {
            match self.skip(&shown) {
                None => return Some(Time(shown.timestamp())),
                Some(later) if later > shown => shown = later,
                // The calendar ends here.
                Some(_) => return None,
            }
        }
        None
    }

    /// Where to look next, if the clock does not show a due time: at the next month, day, hour or minute.
    fn skip(&self, shown: &Zoned) -> Option<Zoned> {
        let Times::At { minute, hour, month, .. } = &self.times else { return None };
        let field = |value: i8| u8::try_from(value).unwrap_or(u8::MAX);
        if !month.contains(field(shown.month())) {
            let next = shown.date().first_of_month().checked_add(1.month());
            return Some(
                next.and_then(|date| date.to_zoned(self.zone.clone())).unwrap_or_else(|_| shown.clone()),
            );
        }
        if !self.has_day(shown) {
            let next = shown.date().tomorrow();
            return Some(
                next.and_then(|date| date.to_zoned(self.zone.clone())).unwrap_or_else(|_| shown.clone()),
            );
        }
        if !hour.contains(field(shown.hour())) {
            let to_next = 3600 - i64::from(shown.minute()) * 60 - i64::from(shown.second());
            return Some(self.later(shown, to_next));
        }
        if !minute.contains(field(shown.minute())) || shown.second() != 0 {
            return Some(self.later(shown, 60 - i64::from(shown.second())));
        }
        None
    }

    fn later(&self, shown: &Zoned, seconds: i64) -> Zoned {
        let second = shown.timestamp().as_second().saturating_add(seconds);
        Timestamp::from_second(second).unwrap_or(Timestamp::MAX).to_zoned(self.zone.clone())
    }

    /// If either day field is a star both must match; else one is enough.
    fn has_day(&self, shown: &Zoned) -> bool {
        let Times::At { day_of_month, day_of_week, .. } = &self.times else { return false };
        let in_month = day_of_month.contains(u8::try_from(shown.day()).unwrap_or(u8::MAX));
        let in_week = day_of_week.contains(day_number(shown.weekday()));
        if day_of_month.is_star || day_of_week.is_star { in_month && in_week } else { in_month || in_week }
    }
}

/// 0 is Sunday.
fn day_number(day: Weekday) -> u8 {
    u8::try_from(day.to_sunday_zero_offset()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests;
