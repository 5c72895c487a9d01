//! Where in an object something is: `spec.tasks[0].template.spec.containers[1].name`.

use std::fmt;

/// The place of a field. It may be left unnamed, and then so are all places that are found from it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Option<String>);

impl Default for Path {
    /// The object itself.
    fn default() -> Path {
        Path::new("")
    }
}

impl Path {
    /// The place that is written like this.
    pub fn new(text: &str) -> Path {
        Path(Some(text.to_owned()))
    }

    /// A place that nobody will ask the name of.
    pub(crate) fn unnamed() -> Path {
        Path(None)
    }

    /// A field of this object: `a.b`.
    pub fn field(&self, name: &str) -> Path {
        match &self.0 {
            None => Path(None),
            Some(text) if text.is_empty() => Path::new(name),
            Some(text) => joined(text, &[".", name]),
        }
    }

    /// An item of this list: `a[0]`.
    pub fn index(&self, index: usize) -> Path {
        match &self.0 {
            None => Path(None),
            Some(text) => joined(text, &["[", &index.to_string(), "]"]),
        }
    }

    /// An entry of this map: `a[key]`.
    pub fn key(&self, key: &str) -> Path {
        match &self.0 {
            None => Path(None),
            Some(text) => joined(text, &["[", key, "]"]),
        }
    }

    /// As text; empty for an unnamed place.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

fn joined(text: &str, parts: &[&str]) -> Path {
    let mut longer = String::with_capacity(text.len() + parts.iter().map(|part| part.len()).sum::<usize>());
    longer.push_str(text);
    longer.extend(parts.iter().copied());
    Path(Some(longer))
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
