//! `metadata.managedFields`: who has set which fields, how and when.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::set::{FieldSet, push_text};

/// Of so many managers that update, the oldest are put together.
const UPDATE_MANAGERS_MAX: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// Who manages fields, and by what right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    /// Whether by server-side apply.
    pub(super) applies: bool,
    pub(super) name: String,
    pub(super) subresource: String,
    /// Of an update; who applies is the same in every version.
    pub(super) api_version: String,
}

impl Manager {
    fn operation(&self) -> &'static str {
        if self.applies { "Apply" } else { "Update" }
    }
}

impl std::fmt::Display for Manager {
    /// As messages about conflicts name it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        if self.applies { Ok(()) } else { write!(f, " using {}", self.api_version) }
    }
}

/// What one manager manages.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Owned {
    pub(super) fields: FieldSet,
    pub(super) api_version: String,
    /// When it last set something; none for an apply that changed nothing.
    pub(super) time: Option<String>,
}

pub(super) type Managed = BTreeMap<Manager, Owned>;

/// Reads the managers of an object; none if any entry is not understood.
pub(super) fn decode(entries: &[Value]) -> Option<Managed> {
    entries.iter().map(decode_entry).collect()
}

fn decode_entry(entry: &Value) -> Option<(Manager, Owned)> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let applies = match text("operation").as_str() {
        "Apply" => true,
        "Update" => false,
        _ => return None,
    };
    let api_version = Some(text("apiVersion")).filter(|version| !version.is_empty())?;
    if text("fieldsType") != "FieldsV1" {
        return None;
    }
    let fields = FieldSet::from_value(entry.get("fieldsV1").unwrap_or(&json!({})))?;
    let manager = Manager {
        applies,
        name: text("manager"),
        subresource: text("subresource"),
        api_version: if applies { String::new() } else { api_version.clone() },
    };
    let time = Some(text("time")).filter(|time| !time.is_empty());
    Some((manager, Owned { fields, api_version, time }))
}

/// The managers of an object as a tree.
pub(super) fn encode(managed: Managed) -> Vec<Value> {
    in_order(managed).into_iter().map(|(manager, owned)| encode_entry(manager, owned)).collect()
}

/// Room for the managers of most new objects, so that their text need not be moved while it grows.
const USUAL_BYTES: usize = 4 << 10;

/// The managers of an object as text: that of [`encode`], without making a tree of it first.
pub(super) fn write(managed: Managed) -> String {
    let mut json = String::with_capacity(USUAL_BYTES);
    json.push('[');
    for (at, (manager, owned)) in in_order(managed).iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        write_entry(manager, owned, &mut json);
    }
    json.push(']');
    json
}

/// Those that apply first, then by time and name.
fn in_order(managed: Managed) -> Vec<(Manager, Owned)> {
    let mut entries: Vec<(Manager, Owned)> = managed.into_iter().collect();
    entries.sort_by(|(left, left_owned), (right, right_owned)| {
        let key = |manager: &Manager, owned: &Owned| {
            (!manager.applies, owned.time.clone(), manager.name.clone(), owned.api_version.clone())
        };
        key(left, left_owned)
            .cmp(&key(right, right_owned))
            .then_with(|| left.subresource.cmp(&right.subresource))
    });
    entries
}

fn encode_entry(manager: Manager, owned: Owned) -> Value {
    let time = shown_time(&manager, &owned).map(str::to_owned);
    let mut entry = Map::new();
    let mut say = |key: &str, value: Value| {
        entry.insert(key.to_owned(), value);
    };
    say("operation", manager.operation().into());
    say("manager", manager.name.into());
    say("apiVersion", owned.api_version.into());
    say("fieldsType", "FieldsV1".into());
    say("fieldsV1", owned.fields.into_value());
    if !manager.subresource.is_empty() {
        say("subresource", manager.subresource.into());
    }
    if let Some(time) = time {
        say("time", time.into());
    }
    Value::Object(entry)
}

fn write_entry(manager: &Manager, owned: &Owned, json: &mut String) {
    let say = |before: &str, text: &str, json: &mut String| {
        json.push_str(before);
        push_text(json, text);
    };
    say(r#"{"apiVersion":"#, &owned.api_version, json);
    json.push_str(r#","fieldsType":"FieldsV1","fieldsV1":"#);
    owned.fields.write(json);
    say(r#","manager":"#, &manager.name, json);
    say(r#","operation":"#, manager.operation(), json);
    if !manager.subresource.is_empty() {
        say(r#","subresource":"#, &manager.subresource, json);
    }
    if let Some(time) = shown_time(manager, owned) {
        say(r#","time":"#, time, json);
    }
    json.push('}');
}

/// Who writes a scale does not see the object, and upstream does not say when that was.
fn shown_time<'a>(manager: &Manager, owned: &'a Owned) -> Option<&'a str> {
    owned.time.as_deref().filter(|_| manager.subresource != "scale")
}

/// Puts the oldest updates together when there are too many managers, so that objects do not grow without end.
pub(super) fn cap(managed: &mut Managed) {
    let mut updaters: Vec<(Option<String>, Manager)> = managed
        .iter()
        .filter(|(manager, _)| !manager.applies)
        .map(|(manager, owned)| (owned.time.clone(), manager.clone()))
        .collect();
    let mut n_updaters = updaters.len();
    updaters.sort();
    let mut first_of_version: BTreeMap<String, Manager> = BTreeMap::new();
    for (time, manager) in updaters {
        if n_updaters <= UPDATE_MANAGERS_MAX {
            return;
        }
        let version = manager.api_version.clone();
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, manager);
            continue;
        };
        let bucket = Manager {
            applies: false,
            name: ANCIENT.to_owned(),
            subresource: String::new(),
            api_version: version.clone(),
        };
        if !managed.contains_key(&bucket)
            && let Some(owned) = managed.remove(first)
        {
            managed.insert(bucket.clone(), owned);
        }
        if let (Some(owned), Some(all)) = (managed.remove(&manager), managed.get_mut(&bucket)) {
            all.fields.add(owned.fields);
            all.time = time;
            n_updaters -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_managers_are_the_text_of_their_tree() {
        let entries = json!([
            {"manager": "a \"quoted\" one", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:spec": {".": {}, "f:x": {}}}, "time": "2026-11-15T08:00:00Z"},
            {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:status": {"f:phase": {}}}, "subresource": "status", "time": "2026-11-15T08:00:01Z"},
            {"manager": "scaler", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:spec": {"f:replicas": {}}}, "subresource": "scale", "time": "2026-11-15T08:00:02Z"},
        ]);
        let managed = decode(entries.as_array().unwrap()).unwrap();
        assert_eq!(write(managed.clone()), Value::Array(encode(managed)).to_string());
        assert_eq!(write(Managed::new()), "[]");
    }
}
