//! Durations as Go writes them: `1h30m`, `-1.5s`, `0`.

/// The units, in nanoseconds.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("\u{3bc}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];
/// The longest duration, in nanoseconds.
const NANOSECONDS_MAX: f64 = 9.223_372_036_854_775e18;

/// Whether a text is a duration; if not, why, in Go's words.
pub(super) fn check(text: &str) -> Result<(), String> {
    let quoted = krafla_schema::json::go_quote(text);
    let invalid = || format!("time: invalid duration {quoted}");
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut nanoseconds = 0.0;
    while !rest.is_empty() {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (whole, after) = rest.split_at(digits(rest));
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(digits(after)),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let (unit, after) =
            after.split_at(after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len()));
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {quoted}"));
        }
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let unit = krafla_schema::json::go_quote(unit);
            return Err(format!("time: unknown unit {unit} in duration {quoted}"));
        };
        nanoseconds += format!("0{whole}.{fraction}0").parse::<f64>().unwrap_or(f64::INFINITY) * factor;
        if nanoseconds > NANOSECONDS_MAX {
            return Err(invalid());
        }
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for good in ["0", "-0", "1s", "1h30m", "1.5s", ".5ms", "-3us", "10\u{b5}s", "2562047h"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let bad = [
            ("invalid", "time: invalid duration \"invalid\""),
            ("5", "time: missing unit in duration \"5\""),
            ("5x", "time: unknown unit \"x\" in duration \"5x\""),
            ("1s2", "time: missing unit in duration \"1s2\""),
            (".s", "time: invalid duration \".s\""),
            ("-", "time: invalid duration \"-\""),
            ("1 s", "time: unknown unit \" s\" in duration \"1 s\""),
            ("9999999h", "time: invalid duration \"9999999h\""),
        ];
        for (text, why) in bad {
            assert_eq!(check(text), Err(why.to_owned()));
        }
    }
}
