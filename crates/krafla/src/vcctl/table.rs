//! Tables and ages as Volcano's tools print them. Pure.

use std::time::Duration;

use krafla_api::Time;

/// A column: its header, and how wide it is at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) header: &'static str,
    pub(super) width: Width,
}

/// How wide a column is. A longer value pushes the rest of its row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Width {
    Fixed(usize),
    /// The longest value or the header, and so much more.
    Longest(usize),
    /// The longest value and the first, or the header and the second, whichever is more.
    LongestOrHeader(usize, usize),
}

/// A table with its header. Widths are those of the rows `measured`, which may be more than are shown.
pub(super) fn table(columns: &[Column], rows: &[Vec<String>], measured: &[Vec<String>]) -> String {
    let width = |index: usize, column: &Column| {
        let values = measured.iter().filter_map(|row| row.get(index)).map(|value| value.chars().count());
        let (longest, header) = (values.max().unwrap_or(0), column.header.len());
        match column.width {
            Width::Fixed(width) => width,
            Width::Longest(more) => longest.max(header) + more,
            Width::LongestOrHeader(more, more_than_header) => (longest + more).max(header + more_than_header),
        }
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(|(index, column)| width(index, column)).collect();
    let line = |values: &mut dyn Iterator<Item = &str>| {
        let cells = values.zip(&widths).map(|(value, width)| format!("{value:width$}"));
        cells.collect::<String>() + "\n"
    };
    let header = line(&mut columns.iter().map(|column| column.header));
    let rows = rows.iter().map(|row| line(&mut row.iter().map(String::as_str)));
    std::iter::once(header).chain(rows).collect()
}

/// What is printed where there is nothing to list.
pub(super) const NOTHING_FOUND: &str = "No resources found\n";

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

/// How long ago a moment was, in the largest units that say enough. `shows_day_zero`: whole years are `3y0d`, not `3y`.
pub(super) fn age(moment: Option<Time>, now: Time, shows_day_zero: bool) -> String {
    let Some(moment) = moment else { return "<unknown>".to_owned() };
    if moment > now {
        let ahead = moment.since(now);
        return if ahead > Duration::from_secs(1) { "<invalid>" } else { "0s" }.to_owned();
    }
    let seconds = now.since(moment).as_secs();
    let two = |unit: u64, letter: char, part: u64, small: char, shows_zero: bool| {
        let (whole, rest) = (seconds / unit, seconds % unit / part);
        if rest == 0 && !shows_zero {
            format!("{whole}{letter}")
        } else {
            format!("{whole}{letter}{rest}{small}")
        }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(MINUTE, 'm', 1, 's', false),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(HOUR, 'h', MINUTE, 'm', false),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(DAY, 'd', HOUR, 'h', false),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(YEAR, 'y', DAY, 'd', shows_day_zero),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_or_two_units() {
        let now = Time::from_seconds(2_000_000_000);
        let ages = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (62, "62s"),
            (180, "3m"),
            (190, "3m10s"),
            (10_799, "179m"),
            (18_000, "5h"),
            (18_420, "5h7m"),
            (43_200, "12h"),
            (172_800, "2d"),
            (464_400, "5d9h"),
            (531 * 86_400, "531d"),
            (3 * 365 * 86_400, "3y"),
            ((5 * 365 + 89) * 86_400, "5y89d"),
            (12 * 365 * 86_400, "12y"),
        ];
        for (seconds, expected) in ages {
            let moment = Time::from_seconds(2_000_000_000 - seconds);
            assert_eq!(age(Some(moment), now, false), expected, "{seconds}");
        }
        assert_eq!(age(Some(Time::from_seconds(2_000_000_000 - 3 * 365 * 86_400)), now, true), "3y0d");
        assert_eq!(age(None, now, false), "<unknown>");
    }

    #[test]
    fn a_long_value_pushes_the_rest_of_its_row() {
        let columns = [
            Column { header: "Name", width: Width::Fixed(6) },
            Column { header: "State", width: Width::Longest(2) },
        ];
        let rows =
            [vec!["a".to_owned(), "Open".to_owned()], vec!["longer-name".to_owned(), "Closed".to_owned()]];
        assert_eq!(table(&columns, &rows, &rows), "Name  State   \na     Open    \nlonger-nameClosed  \n");
    }
}
