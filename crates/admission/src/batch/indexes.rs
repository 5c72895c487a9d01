//! Sets of indexes as text: `1,3-5`.

/// Ranges of indexes, ascending, both ends included.
pub(super) type Ranges = Vec<(i64, i64)>;

/// Reads a set of indexes below `completions`, or says in upstream's words what is wrong with it. Its length is bounded by that of
/// the object: what a Job of a hundred thousand indexes reports may well be half a megabyte.
pub(super) fn parse(text: &str, completions: i64) -> Result<Ranges, String> {
    let mut ranges: Ranges = Vec::new();
    if text.is_empty() {
        return Ok(ranges);
    }
    for part in text.split(',') {
        let (first, last) = range(part, completions)?;
        if let Some((_, previous)) = ranges.last().filter(|(_, previous)| *previous >= first) {
            return Err(out_of_order(*previous, first));
        }
        ranges.push((first, last));
    }
    Ok(ranges)
}

/// Those parts of a text that are ranges of indexes.
pub(super) fn readable(text: &str, completions: i64) -> Ranges {
    text.split(',').filter_map(|part| range(part, completions).ok()).collect()
}

fn range(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = part.split('-').collect();
    match limits.as_slice() {
        [only] => index(only, completions).map(|only| (only, only)),
        [first, last] => {
            let (first, last) = (index(first, completions)?, index(last, completions)?);
            if first < last { Ok((first, last)) } else { Err(out_of_order(first, last)) }
        }
        _ => Err(format!(
            "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        )),
    }
}

/// How many indexes there are.
pub(super) fn count(ranges: &Ranges) -> i64 {
    ranges.iter().map(|(first, last)| last - first + 1).sum()
}

/// The first index that is in both.
pub(super) fn overlap(some: &Ranges, others: &Ranges) -> Option<i64> {
    let common = |(a, b): &(i64, i64), (c, d): &(i64, i64)| (a.max(c) <= b.min(d)).then_some(*a.max(c));
    // Both are in order, so the range that ends first can meet nothing further.
    let (mut some, mut others) = (some.iter().peekable(), others.iter().peekable());
    while let (Some(range), Some(other)) = (some.peek(), others.peek()) {
        if let Some(index) = common(range, other) {
            return Some(index);
        }
        if range.1 < other.1 {
            some.next()
        } else {
            others.next()
        };
    }
    None
}

fn index(text: &str, completions: i64) -> Result<i64, String> {
    let number: i64 = match text.parse::<i64>() {
        Ok(number) if text.bytes().all(|byte| byte.is_ascii_digit()) => number,
        _ => return Err(format!("cannot convert string to integer for index: {text:?}")),
    };
    if number >= completions { Err(format!("too large index: {text:?}")) } else { Ok(number) }
}

fn out_of_order(previous: i64, current: i64) -> String {
    format!("non-increasing order, previous: {previous}, current: {current}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_read() {
        assert_eq!(parse("", 3), Ok(Vec::new()));
        assert_eq!(parse("0,2-4,7", 8), Ok(vec![(0, 0), (2, 4), (7, 7)]));
        assert_eq!(parse("0,2-4,7", 8).map(|ranges| count(&ranges)), Ok(5));
    }

    #[test]
    fn what_is_no_set_of_indexes_is_refused() {
        for (text, why) in [
            ("a-b", "cannot convert string to integer for index: \"a\""),
            ("1,", "cannot convert string to integer for index: \"\""),
            ("+1", "cannot convert string to integer for index: \"+1\""),
            ("2,1", "non-increasing order, previous: 2, current: 1"),
            ("2-1", "non-increasing order, previous: 2, current: 1"),
            ("1-1", "non-increasing order, previous: 1, current: 1"),
            ("0-9", "too large index: \"9\""),
            ("5", "too large index: \"5\""),
            ("-1", "cannot convert string to integer for index: \"\""),
            ("1-", "cannot convert string to integer for index: \"\""),
            (",1", "cannot convert string to integer for index: \"\""),
            ("1,,3", "cannot convert string to integer for index: \"\""),
            ("1, 3", "cannot convert string to integer for index: \" 3\""),
            ("1,1", "non-increasing order, previous: 1, current: 1"),
            ("0-2,1", "non-increasing order, previous: 2, current: 1"),
            (
                "1-2-3",
                "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts separated by '-'",
            ),
        ] {
            assert_eq!(parse(text, 5), Err(why.to_owned()), "{text}");
        }
    }

    #[test]
    fn sets_meet_where_they_share_an_index() {
        let sets = |a: &str, b: &str| Some((parse(a, 99).ok()?, parse(b, 99).ok()?));
        for (a, b, expected) in [("0,5-9", "1-4,7", Some(7)), ("0", "0", Some(0)), ("1-3", "4", None)] {
            assert_eq!(sets(a, b).and_then(|(a, b)| overlap(&a, &b)), expected, "{a} {b}");
        }
    }
}
