//! The recorded cases as data: `tests/golden/apiserver/README.md` says what each field means.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Where the repository begins.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[derive(Deserialize)]
struct Area {
    cases: Vec<Case>,
}

/// The cases of one file.
pub(crate) fn load(file: &str) -> Vec<Case> {
    let path = root().join("tests/golden/apiserver").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let area: Area = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    area.cases
}

/// Requests that belong together, and what was answered.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    #[serde(default, rename = "managedFields")]
    pub(crate) compares_managed_fields: bool,
    #[serde(default, rename = "bare")]
    pub(crate) is_bare: bool,
    #[serde(rename = "steps")]
    raw_steps: Box<RawValue>,
}

impl Case {
    /// What is done, in order.
    pub(crate) fn steps(&self) -> Vec<Step> {
        serde_json::from_str(self.raw_steps.get()).unwrap_or_else(|error| panic!("{}: {error}", self.id))
    }

    /// The text of all steps: what appears in it was chosen by the case, not by the server.
    pub(crate) fn text(&self) -> &str {
        self.raw_steps.get()
    }
}

/// One thing to do.
#[derive(Deserialize)]
pub(crate) struct Step {
    #[serde(default)]
    pub(crate) op: Operation,
    #[serde(default = "get")]
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Option<String>>,
    #[serde(default, rename = "as")]
    pub(crate) who: Who,
    pub(crate) body: Option<Box<RawValue>>,
    pub(crate) text: Option<String>,
    pub(crate) base64: Option<String>,
    pub(crate) pad: Option<Pad>,
    pub(crate) nest: Option<usize>,
    pub(crate) base: Option<String>,
    #[serde(default)]
    pub(crate) set: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) unset: Vec<String>,
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
    pub(crate) view: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) mask: Vec<String>,
    #[serde(default)]
    pub(crate) replace: Vec<(String, String)>,
    #[serde(default)]
    pub(crate) status_only: bool,
    #[serde(default, rename = "etag")]
    pub(crate) compares_etag: bool,
    /// Of `watch`, `read` and `close`: the name of the stream.
    #[serde(default)]
    pub(crate) watch: String,
    #[serde(default)]
    pub(crate) count: usize,
    #[serde(default)]
    pub(crate) closed: bool,
    #[serde(default)]
    pub(crate) sort: bool,
    #[serde(default)]
    pub(crate) bookmarks: bool,
    pub(crate) settle: Option<f64>,
    pub(crate) until: Option<Value>,
    #[serde(default)]
    pub(crate) expect: Value,
}

impl Step {
    /// How a person finds the step.
    pub(crate) fn title(&self) -> String {
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
pub(crate) enum Operation {
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
pub(crate) enum Who {
    #[default]
    Admin,
    Limited,
    Nobody,
    Wrong,
}

/// Many letters at one place of the body.
#[derive(Deserialize)]
pub(crate) struct Pad {
    pub(crate) at: String,
    pub(crate) bytes: usize,
}
