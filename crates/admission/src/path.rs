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
        if self.0.is_empty() { Path::new(name) } else { Path(format!("{self}.{name}")) }
    }

    /// An item of this list: `a[0]`.
    pub fn index(&self, index: usize) -> Path {
        Path(format!("{self}[{index}]"))
    }

    /// An entry of this map: `a[key]`.
    pub fn key(&self, key: &str) -> Path {
        Path(format!("{self}[{key}]"))
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
