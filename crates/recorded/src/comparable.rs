//! Turns what differs from run to run (names, UIDs, times, versions) into placeholders, the same way as when the answers
//! were recorded. The rules are in `tests/golden/apiserver/README.md`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

const UUID_LENGTH: usize = 36;
static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)"));
static SCHEME: LazyLock<Regex> = LazyLock::new(|| pattern(r#"in scheme "[^"]*\.go:\d+""#));
static OBJECT: LazyLock<Regex> = LazyLock::new(|| pattern(r#"Invalid value: "\{(?:[^"\\]|\\.)*\}""#));
static VERSION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(ResourceVersion in (?:object meta: |record \())[1-9]\d*"));
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d+(y|d|h|m|s))+$"));
static AGO: LazyLock<Regex> = LazyLock::new(|| pattern(r"\((\d+(y|d|h|m|s))+ ago\)"));
const AGE_COLUMNS: [&str; 9] = [
    "Age",
    "Last Schedule",
    "Duration",
    "Last Seen",
    "First Seen",
    "AGE",
    "Last Update",
    "RunningDuration",
    "Validated",
];

/// What has been seen in one case.
pub struct Normaliser {
    unique: String,
    /// The text of the case: what it contains was chosen by the case and stays.
    sent: String,
    keeps_managed_fields: bool,
    uids: BTreeMap<String, String>,
    /// Names made from `generateName`, in order of appearance.
    names: Vec<(String, String)>,
}

impl Normaliser {
    /// A normaliser for one case: its random letters, and everything that it sends.
    pub fn new(unique: &str, sent: &str, keeps_managed_fields: bool) -> Normaliser {
        let (uids, names) = (BTreeMap::new(), Vec::new());
        Normaliser { unique: unique.to_owned(), sent: sent.to_owned(), keeps_managed_fields, uids, names }
    }

    fn without_unique(&self, text: &str) -> String {
        text.replace(&format!("g-{}", self.unique), "{{ns}}").replace(&self.unique, "{{u}}")
    }

    /// A text with placeholders.
    pub fn text(&mut self, text: &str) -> String {
        let mut text = self.without_unique(text);
        for (full, short) in &self.names {
            text = text.replace(full, short);
        }
        // Most texts hold none of what the patterns look for: asking that first is much cheaper.
        if text.len() >= UUID_LENGTH && text.contains('-') {
            text =
                UUID.replace_all(&text, |found: &Captures<'_>| uid(&mut self.uids, &found[0])).into_owned();
        }
        if text.contains('T') && text.contains(':') {
            text = TIME.replace_all(&text, |found: &Captures<'_>| time(found, &self.sent)).into_owned();
        }
        if !text.contains(' ') {
            return text;
        }
        let text = SCHEME.replace_all(&text, r#"in scheme "<scheme>""#);
        let text = OBJECT.replace_all(&text, |found: &Captures<'_>| match &found[0] {
            quoted if quoted.contains("resourceVersion") => r#"Invalid value: "<object>""#.to_owned(),
            other => other.to_owned(),
        });
        VERSION.replace_all(&text, "${1}<rv>").into_owned()
    }

    /// A document, or a part of one that stands under `key`.
    pub fn value(&mut self, value: &Value, key: &str) -> Value {
        match value {
            Value::Object(object) => self.object(object),
            Value::Array(items) => {
                let mut items: Vec<Value> = items.iter().map(|item| self.value(item, key)).collect();
                if key == "managedFields" {
                    items.sort_by_key(managed_order);
                }
                Value::Array(items)
            }
            Value::String(text) => Value::String(self.string(text, key)),
            Value::Number(number) if matches!(key, "nodePort" | "healthCheckNodePort") => {
                let is_chosen_by_server = number.as_i64().is_some_and(|port| port > 1000)
                    && !self.sent.contains(&number.to_string());
                if is_chosen_by_server { json!("<port>") } else { value.clone() }
            }
            other => other.clone(),
        }
    }

    fn string(&mut self, text: &str, key: &str) -> String {
        match key {
            "resourceVersion" if is_version(text) => format!("<rv:{text}>"),
            "storageVersionHash" => "<hash>".to_owned(),
            "continue" if !text.is_empty() => "<continue>".to_owned(),
            "clusterIP" | "clusterIPs" if is_address(text) && !self.sent.contains(text) => "<ip>".to_owned(),
            "token" if text.len() > 40 => "<token>".to_owned(),
            _ => self.text(text),
        }
    }

    fn object(&mut self, object: &Map<String, Value>) -> Value {
        self.note_generated_name(object);
        let is_list = is_list(object);
        let mut shown = Map::new();
        let mut keys: Vec<&String> = object.keys().collect();
        keys.sort();
        for key in keys {
            let value = &object[key];
            if key == "managedFields" && !self.keeps_managed_fields {
                continue;
            }
            let is_list_metadata = key == "metadata" && is_list && value.get("resourceVersion").is_some();
            let (value, key) = match value {
                Value::Object(metadata) if is_list_metadata => (self.list_metadata(metadata), key.clone()),
                value => (self.value(value, key), self.text(key)),
            };
            shown.insert(key, value);
        }
        if object.get("kind") == Some(&json!("Table")) {
            hide_ages(&mut shown, object);
        }
        Value::Object(shown)
    }

    fn note_generated_name(&mut self, object: &Map<String, Value>) {
        let part = |name: &str| object.get("metadata")?.get(name)?.as_str();
        let (Some(prefix), Some(name)) = (part("generateName"), part("name")) else { return };
        let is_generated = !prefix.is_empty() && name.starts_with(prefix) && name.len() > prefix.len();
        let full = self.without_unique(name);
        if is_generated && !self.sent.contains(name) && !self.names.iter().any(|(known, _)| *known == full) {
            let short = format!("{}<rand:{}>", self.without_unique(prefix), self.names.len() + 1);
            self.names.push((full, short));
        }
    }

    /// A list's version moves on with every write anywhere.
    fn list_metadata(&mut self, metadata: &Map<String, Value>) -> Value {
        let mut rest = metadata.clone();
        let version = rest.remove("resourceVersion").unwrap_or_default();
        let mut shown = self.value(&Value::Object(rest), "metadata");
        let is_real = version.as_str().is_some_and(is_version);
        shown["resourceVersion"] = if is_real { json!("<listrv>") } else { version };
        shown
    }

    /// One event of a watch.
    pub fn event(&mut self, event: &Value) -> Value {
        let mut object = event["object"].clone();
        if event["type"] == "BOOKMARK" {
            hide_versions(&mut object);
        }
        json!({"type": event["type"], "object": self.value(&object, "")})
    }
}

/// UIDs are numbered by first appearance. Those that begin with eight zeros are the case's own.
fn uid(known: &mut BTreeMap<String, String>, uid: &str) -> String {
    if uid.starts_with("00000000") {
        return uid.to_owned();
    }
    let next = format!("<uid:{}>", known.len() + 1);
    known.entry(uid.to_owned()).or_insert(next).clone()
}

/// Times within a day of now, unless the case has sent them.
fn time(found: &Captures<'_>, sent: &str) -> String {
    let whole = &found[0];
    let is_near = || {
        let written: DateTime = found[1].parse().ok()?;
        let written = written.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
        Some((written - jiff::Timestamp::now().as_second()).abs() <= 86_400)
    };
    if sent.contains(whole) || is_near() != Some(true) {
        return whole.to_owned();
    }
    match found.get(2).map(|fraction| fraction.len()) {
        Some(7) => "<microtime>".to_owned(),
        Some(_) => "<nanotime>".to_owned(),
        None => "<time>".to_owned(),
    }
}

fn is_version(text: &str) -> bool {
    !text.is_empty() && text != "0" && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_address(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn is_list(object: &Map<String, Value>) -> bool {
    let has = |name: &str| object.get(name).is_some_and(Value::is_array);
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    has("items") || has("rows") || kind.ends_with("List") || kind == "Table"
}

fn managed_order(entry: &Value) -> [String; 4] {
    ["operation", "manager", "subresource", "apiVersion"]
        .map(|name| entry[name].as_str().unwrap_or_default().to_owned())
}

fn hide_versions(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key == "resourceVersion" { *value = json!("<listrv>") } else { hide_versions(value) }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide_versions),
        _ => {}
    }
}

fn hide_ages(shown: &mut Map<String, Value>, table: &Map<String, Value>) {
    let Some(rows) = shown.get_mut("rows").and_then(Value::as_array_mut) else { return };
    let cells = rows.iter_mut().filter_map(|row| row["cells"].as_array_mut());
    let Some(columns) = table.get("columnDefinitions").and_then(Value::as_array) else {
        // Later tables of a watch do not name their columns; what was recorded of them happened within a second.
        let is_age = |cell: &&mut Value| cell.as_str().is_some_and(|text| AGE.is_match(text));
        cells.flatten().filter(is_age).for_each(|cell| *cell = json!("0s"));
        return;
    };
    for cells in cells {
        for (cell, column) in cells.iter_mut().zip(columns) {
            let Some(text) = cell.as_str() else { continue };
            let name = column["name"].as_str().unwrap_or_default();
            let is_age = AGE_COLUMNS.contains(&name) || column["type"] == "date";
            *cell = if is_age && AGE.is_match(text) {
                json!("<age>")
            } else {
                json!(AGO.replace_all(text, "(<age> ago)"))
            };
        }
    }
}
