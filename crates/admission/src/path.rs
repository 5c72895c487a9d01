//! Where in an object something is: `spec.tasks[0].template.spec.containers[1].name`.

use std::fmt;

/// The place of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(String);

impl Path {
    /// The place that is written like this.
    pub fn new(text: &str) -> Path {
        Path(text.to_owned())
    }

    /// A field of this object: `a.b`.
    pub fn field(&self, name: &str) -> Path {
        if self.0.is_empty() { Path::new(name) } else { self.with(&[".", name]) }
    }

    /// An item of this list: `a[0]`.
    pub fn index(&self, index: usize) -> Path {
        self.with(&["[", &index.to_string(), "]"])
    }

    /// An entry of this map: `a[key]`.
    pub fn key(&self, key: &str) -> Path {
        self.with(&["[", key, "]"])
    }

    /// Rules name every place they look at, so this is put together by hand: formatting takes several times as long.
    fn with(&self, parts: &[&str]) -> Path {
        let mut text =
            String::with_capacity(self.0.len() + parts.iter().map(|part| part.len()).sum::<usize>());
        text.push_str(&self.0);
        parts.iter().for_each(|part| text.push_str(part));
        Path(text)
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
