//! Durations as people say them.

use krafla_api::Time;

/// How long ago a time is, in at most two units: `45s`, `3m5s`, `2d4h`.
pub fn age(since: Option<Time>, now: Time) -> String {
    match since {
        Some(since) => human(now.0.as_second() - since.0.as_second()),
        None => "<unknown>".into(),
    }
}

/// A number of seconds in at most two units. The second unit goes as the number of the first grows.
pub(super) fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let two = |count: i64, unit: &str, rest: i64, small: &str| match rest {
        0 => format!("{count}{unit}"),
        rest => format!("{count}{unit}{rest}{small}"),
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1 => "0s".into(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_unit_goes_as_the_first_grows() {
        const HOUR: i64 = 3600;
        const DAY: i64 = 24 * HOUR;
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (185, "3m5s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 60, "3h1m"),
            (8 * HOUR + 60, "8h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (9 * DAY + HOUR, "9d"),
            (730 * DAY, "2y"),
            (731 * DAY, "2y1d"),
            (9 * 365 * DAY, "9y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }
}
