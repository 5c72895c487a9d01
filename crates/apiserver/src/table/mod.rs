//! Objects as rows: what `kubectl get` prints.
//!
//! The server makes the rows, so that every client shows the same columns. Built-in kinds have a function that makes the
//! cells; kinds of a CRD have paths into the object.

mod autoscaler;
mod builtin;
mod cluster;
mod control;
mod human;
mod path;
mod pod;
mod setup;

use std::borrow::Cow;

use krafla_api::Time;
use krafla_schema::object;
use serde_json::{Map, Value, json};

pub use autoscaler::AUTOSCALER;
pub use builtin::*;
pub use cluster::*;
pub use control::*;
pub use human::age;
pub use path::Path;
pub use setup::*;

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: Cow<'static, str>,
    /// JSON type of its cells.
    pub kind: Cow<'static, str>,
    /// `name` for the column that names the object.
    pub format: Cow<'static, str>,
    /// What it shows.
    pub description: Cow<'static, str>,
    /// 0 for columns that are always shown, more for those of `-o wide`.
    pub priority: i32,
}

/// All columns of a kind, and how their cells are made.
#[derive(Clone)]
pub struct Columns {
    definitions: Vec<Column>,
    cells: Cells,
}

#[derive(Clone)]
enum Cells {
    Of(fn(&Value, Time) -> Vec<Value>),
    /// Where each cell is found, and the JSON type that its column promises.
    Paths(Vec<(Path, String)>),
}

/// The columns of a built-in kind.
#[derive(Clone, Copy)]
pub struct Builtin {
    /// Heading, JSON type, priority and meaning of each column.
    columns: &'static [(&'static str, &'static str, i32, &'static str)],
    /// The cells, in the order of the columns.
    cells: fn(&Value, Time) -> Vec<Value>,
}

impl From<Builtin> for Columns {
    fn from(builtin: Builtin) -> Columns {
        let column =
            |(name, kind, priority, description): &(&'static str, &'static str, i32, &'static str)| Column {
                name: (*name).into(),
                kind: (*kind).into(),
                format: if matches!(*name, "Name" | "Attacher") { "name" } else { "" }.into(),
                description: (*description).into(),
                priority: *priority,
            };
        Columns { definitions: builtin.columns.iter().map(column).collect(), cells: Cells::Of(builtin.cells) }
    }
}

impl Columns {
    /// The columns that a version of a CRD asks for; name and age if it asks for none.
    pub fn of_crd(asked: &[Value]) -> Columns {
        if asked.is_empty() {
            return NAME_AND_AGE.into();
        }
        let text = |column: &Value, field: &str| column[field].as_str().unwrap_or_default().to_owned();
        let mut definitions = Columns::from(NAME_ONLY).definitions;
        let mut paths = Vec::new();
        for column in asked {
            let (path, kind) = (text(column, "jsonPath"), text(column, "type"));
            let described = text(column, "description");
            let standard = || format!("Custom resource definition column (in JSONPath format): {path}");
            paths.push((Path::parse(&path).unwrap_or_default(), kind.clone()));
            definitions.push(Column {
                name: text(column, "name").into(),
                description: if described.is_empty() { standard().into() } else { described.into() },
                kind: kind.into(),
                format: text(column, "format").into(),
                priority: column["priority"].as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(0),
            });
        }
        Columns { definitions, cells: Cells::Paths(paths) }
    }

    /// The definitions as they go over the wire.
    pub fn to_json(&self) -> Value {
        let column = |column: &Column| {
            json!({
                "name": column.name, "type": column.kind, "format": column.format,
                "description": column.description, "priority": column.priority,
            })
        };
        self.definitions.iter().map(column).collect()
    }

    /// Whether the rows of an empty table are left out, as where upstream has no printer of its own for the kind.
    pub fn are_standard(&self) -> bool {
        let names: Vec<&str> = self.definitions.iter().map(|column| &*column.name).collect();
        matches!(self.cells, Cells::Of(_)) && names == ["Name", "Created At"]
    }

    /// The cells of one object.
    pub fn cells(&self, object: &Value, now: Time) -> Vec<Value> {
        match &self.cells {
            Cells::Of(make) => make(object, now),
            Cells::Paths(paths) => {
                let name = Value::from(object::name(object));
                let others = paths.iter().map(|(path, kind)| custom_cell(path, kind, object, now));
                std::iter::once(name).chain(others).collect()
            }
        }
    }
}

/// A cell is of its column's type, or empty.
fn custom_cell(path: &Path, kind: &str, object: &Value, now: Time) -> Value {
    let Some(found) = path.first(object) else { return Value::Null };
    match (kind, found) {
        ("date", Value::String(text)) => match text.parse() {
            Ok(time) => age(Some(Time(time)), now).into(),
            Err(_) => "<invalid>".into(),
        },
        ("string", Value::Null) => "<no value>".into(),
        ("integer", Value::Number(number)) => match number.as_f64() {
            Some(number) if found.is_f64() => (number.trunc() as i64).into(),
            _ => found.clone(),
        },
        ("string", Value::String(_)) | ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => {
            found.clone()
        }
        ("string", other) => other.to_string().into(),
        _ => Value::Null,
    }
}

/// What a row shows of its object besides the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    Nothing,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

/// One row.
pub fn row(columns: &Columns, object: &Value, include: Include, version: &str, now: Time) -> Value {
    let mut row = Map::new();
    row.insert("cells".into(), columns.cells(object, now).into());
    let conditions = pod::row_conditions(object);
    if !conditions.is_empty() {
        row.insert("conditions".into(), conditions.into());
    }
    let shown = match include {
        Include::Nothing => Value::Null,
        Include::Metadata => partial(object, version),
        Include::Object => object.clone(),
    };
    row.insert("object".into(), shown);
    Value::Object(row)
}

/// The metadata of an object and nothing else. `version` is the version of `meta.k8s.io` that the client asked for.
pub fn partial(object: &Value, version: &str) -> Value {
    json!({
        "apiVersion": format!("meta.k8s.io/{version}"), "kind": "PartialObjectMetadata",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}
