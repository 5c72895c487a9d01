//! Sets of indexes as a Job's status writes them: `0-3,7`.

use std::fmt;

/// A set of indexes: ascending intervals that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Indexes(Vec<(u32, u32)>);

impl Indexes {
    /// Reads what is there and makes sense, up to the last index that the Job has. A status is never refused: what nobody
    /// can read was never counted.
    pub(crate) fn parse(text: &str, completions: u32) -> Indexes {
        let mut intervals = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { continue };
            if first >= completions {
                break;
            }
            intervals.push((first, last.min(completions.saturating_sub(1))));
        }
        Indexes::of_intervals(intervals)
    }

    fn of_intervals(mut intervals: Vec<(u32, u32)>) -> Indexes {
        intervals.retain(|(first, last)| first <= last);
        intervals.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(intervals.len());
        for (first, last) in intervals {
            match joined.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        Indexes(joined)
    }

    /// The set with these indexes as well.
    pub(crate) fn with(&self, more: impl IntoIterator<Item = u32>) -> Indexes {
        let single = more.into_iter().map(|index| (index, index));
        Indexes::of_intervals(self.0.iter().copied().chain(single).collect())
    }

    /// The set with those of another as well.
    pub(crate) fn joined(&self, other: &Indexes) -> Indexes {
        Indexes::of_intervals(self.0.iter().chain(&other.0).copied().collect())
    }

    /// The set without the indexes from `first` to `last`.
    pub(crate) fn without(&self, first: u32, last: u32) -> Indexes {
        let before = |(start, end): &(u32, u32)| Some((*start, first.checked_sub(1)?.min(*end)));
        let after = |(start, end): &(u32, u32)| Some((last.checked_add(1)?.max(*start), *end));
        let parts = self.0.iter().flat_map(|interval| [before(interval), after(interval)]);
        Indexes::of_intervals(parts.flatten().collect())
    }

    /// The lowest `n` indexes that are not in it, as far as there are so many below `end`.
    pub(crate) fn lowest_missing(&self, mut n: u32, end: u32) -> Indexes {
        let mut missing = Vec::new();
        let mut next = 0;
        for (first, last) in self.0.iter().copied().chain([(end, end)]) {
            let free = first.min(end).saturating_sub(next).min(n);
            if free > 0 {
                missing.push((next, next + free - 1));
            }
            n -= free;
            next = last.saturating_add(1);
        }
        Indexes(missing)
    }

    /// Whether an index is in it.
    pub(crate) fn contains(&self, index: u32) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= index);
        let interval = after.checked_sub(1).and_then(|before| self.0.get(before));
        interval.is_some_and(|(_, last)| index <= *last)
    }

    /// All of them, lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> i64 {
        self.0.iter().map(|(first, last)| i64::from(*last) - i64::from(*first) + 1).sum()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of these indexes the other set has too.
    pub(crate) fn n_in(&self, other: &Indexes) -> i64 {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut n = 0;
        while let (Some((first, last)), Some((start, end))) = (mine.peek(), theirs.peek()) {
            n += (i64::from(*last.min(end)) - i64::from(*first.max(start)) + 1).max(0);
            // The interval that ends first meets nothing more of the other set.
            if last < end {
                mine.next()
            } else {
                theirs.next()
            };
        }
        n
    }
}

impl fmt::Display for Indexes {
    /// Two neighbours are listed; three and more are a range.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (first, last)) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_makes_sense_is_read() {
        for (text, completions, expected) in [
            ("", 9, ""),
            ("0,1-foo,bar", 9, "0"),
            ("0-5,8-10", 8, "0-5"),
            ("0-5,8-10", 10, "0-5,8,9"),
            ("1,3,4,5,7", 9, "1,3-5,7"),
            ("0,1", 9, "0,1"),
            ("2,4,5,7,8,9", 20, "2,4,5,7-9"),
            ("5-3", 9, ""),
            ("0", 0, ""),
        ] {
            assert_eq!(Indexes::parse(text, completions).to_string(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(indexes in proptest::collection::btree_set(0u32..60, 0..40)) {
            let set = Indexes::default().with(indexes.iter().copied());
            prop_assert_eq!(&Indexes::parse(&set.to_string(), 60), &set);
            prop_assert_eq!(set.len(), indexes.len() as i64);
            for index in 0..61 {
                prop_assert_eq!(set.contains(index), indexes.contains(&index));
            }
        }

        #[test]
        fn what_is_taken_out_added_and_missing_is_what_a_set_says(
            some in proptest::collection::btree_set(0u32..30, 0..30),
            others in proptest::collection::btree_set(0u32..30, 0..30),
            (first, last, n) in (0u32..32, 0u32..32, 0u32..40),
        ) {
            use std::collections::BTreeSet;
            let set = |indexes: &BTreeSet<u32>| Indexes::default().with(indexes.iter().copied());
            let union: BTreeSet<u32> = some.union(&others).copied().collect();
            prop_assert_eq!(set(&some).joined(&set(&others)), set(&union));
            let rest: BTreeSet<u32> = some.iter().copied().filter(|index| *index < first || *index > last).collect();
            prop_assert_eq!(set(&some).without(first, last), set(&rest));
            let missing: BTreeSet<u32> =
                (0..last).filter(|index| !some.contains(index)).take(n as usize).collect();
            prop_assert_eq!(set(&some).lowest_missing(n, last), set(&missing));
        }

        #[test]
        fn common_indexes_are_counted(
            some in proptest::collection::btree_set(0u32..40, 0..30),
            others in proptest::collection::btree_set(0u32..40, 0..30),
        ) {
            let set = |indexes: &std::collections::BTreeSet<u32>| Indexes::default().with(indexes.iter().copied());
            prop_assert_eq!(set(&some).n_in(&set(&others)), some.intersection(&others).count() as i64);
        }
    }
}
