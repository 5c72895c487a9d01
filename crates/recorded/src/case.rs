//! The recorded cases as data: `tests/golden/apiserver/README.md` says what each field means.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Where the repository begins.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[derive(Deserialize)]
struct Area {
    cases: Vec<Case>,
}

/// The cases of one file.
pub fn load(file: &str) -> Vec<Case> {
    let path = root().join("tests/golden/apiserver").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let area: Area = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    area.cases
}

/// Requests that belong together, and what was answered.
#[derive(Deserialize)]
#[allow(missing_docs, reason = "README.md of the records describes the fields")]
pub struct Case {
    pub id: String,
    #[serde(default)]
    pub needs: Vec<String>,
    #[serde(default, rename = "managedFields")]
    pub compares_managed_fields: bool,
    #[serde(default, rename = "bare")]
    pub is_bare: bool,
    #[serde(rename = "steps")]
    raw_steps: Box<RawValue>,
}

impl Case {
    /// A case that was not recorded: its steps have no answers yet.
    pub fn new(id: &str, steps: &Value) -> Case {
        let raw_steps = serde_json::value::to_raw_value(steps).expect("JSON is written");
        Case {
            id: id.to_owned(),
            needs: Vec::new(),
            compares_managed_fields: true,
            is_bare: false,
            raw_steps,
        }
    }

    /// What is done, in order.
    pub fn steps(&self) -> Vec<Step> {
        serde_json::from_str(self.raw_steps.get()).unwrap_or_else(|error| panic!("{}: {error}", self.id))
    }

    /// The text of all steps: what appears in it was chosen by the case, not by the server.
    pub fn text(&self) -> &str {
        self.raw_steps.get()
    }
}

/// One thing to do.
#[derive(Deserialize)]
#[allow(missing_docs, reason = "README.md of the records describes the fields")]
pub struct Step {
    #[serde(default)]
    pub op: Operation,
    #[serde(default = "get")]
    pub method: String,
    #[serde(default)]
    pub path: String,
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
    #[serde(default, rename = "as")]
    pub who: Who,
    pub body: Option<Box<RawValue>>,
    pub text: Option<String>,
    pub base64: Option<String>,
    pub pad: Option<Pad>,
    pub nest: Option<usize>,
    pub base: Option<String>,
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    #[serde(default)]
    pub unset: Vec<String>,
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    pub view: Option<Vec<String>>,
    #[serde(default)]
    pub mask: Vec<String>,
    #[serde(default)]
    pub replace: Vec<(String, String)>,
    #[serde(default)]
    pub status_only: bool,
    #[serde(default, rename = "etag")]
    pub compares_etag: bool,
    /// Of `watch`, `read` and `close`: the name of the stream.
    #[serde(default)]
    pub watch: String,
    #[serde(default)]
    pub count: usize,
    #[serde(default)]
    pub closed: bool,
    #[serde(default)]
    pub sort: bool,
    #[serde(default)]
    pub bookmarks: bool,
    pub settle: Option<f64>,
    pub until: Option<Value>,
    #[serde(default)]
    pub expect: Value,
}

impl Step {
    /// How a person finds the step.
    pub fn title(&self) -> String {
        match self.op {
            Operation::Request => format!("{} {}", self.method, self.path),
            Operation::Poll => format!("poll {} {}", self.method, self.path),
            Operation::Watch => format!("watch {}", self.path),
            Operation::Read => format!("read {}", self.watch),
            Operation::Close => format!("close {}", self.watch),
        }
    }
}

fn get() -> String {
    "GET".to_owned()
}

/// What kind of step it is.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "README.md of the records describes the fields")]
pub enum Operation {
    #[default]
    Request,
    Poll,
    Watch,
    Read,
    Close,
}

/// Who asks.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "README.md of the records describes the fields")]
pub enum Who {
    #[default]
    Admin,
    Limited,
    Nobody,
    Wrong,
}

/// Many letters at one place of the body.
#[derive(Deserialize)]
#[allow(missing_docs, reason = "README.md of the records describes the fields")]
pub struct Pad {
    pub at: String,
    pub bytes: usize,
}
