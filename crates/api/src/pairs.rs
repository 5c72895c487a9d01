//! Labels, annotations and the like, in little memory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Names and values in order of names. All are in one text: as a tree of strings they would take several times the
/// memory, and every object has two of these.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<Box<str>, Box<str>>")]
pub struct Pairs {
    /// Name, value, name, value...
    text: Box<str>,
    /// Where in the text each of them ends.
    ends: Box<[u32]>,
}

impl Pairs {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut start = 0;
        for [name_end, value_end] in self.ends.as_chunks().0 {
            let [name_end, value_end] = [*name_end as usize, *value_end as usize];
            // Nearly all others differ in length already.
            if name_end - start == name.len() && self.text.get(start..name_end) == Some(name) {
                return self.text.get(name_end..value_end);
            }
            start = value_end;
        }
        None
    }

    /// All of them, in order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        let mut parts = self.ends.iter().map(move |end| {
            let part = start..*end as usize;
            start = part.end;
            self.text.get(part).unwrap_or_default()
        });
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// Whether there is a value of a name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl From<BTreeMap<Box<str>, Box<str>>> for Pairs {
    fn from(pairs: BTreeMap<Box<str>, Box<str>>) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::with_capacity(2 * pairs.len()));
        for part in pairs.iter().flat_map(|(name, value)| [name, value]) {
            text.push_str(part);
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        Pairs { text: text.into(), ends: ends.into() }
    }
}

impl<N: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(N, V)> for Pairs {
    /// Of two values of one name, the later counts.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect::<BTreeMap<_, _>>().into()
    }
}

impl Serialize for Pairs {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl std::fmt::Debug for Pairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_of_two_values_counts() {
        let pairs: Pairs = [("b", "1"), ("a", "2"), ("b", "3")].into_iter().collect();
        assert_eq!(pairs.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!((pairs.get("b"), pairs.get("c")), (Some("3"), None));
    }
}
