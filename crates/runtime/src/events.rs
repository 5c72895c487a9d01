//! Notes become Events that `kubectl describe` shows: core/v1, the same thing said again counted instead of repeated.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::Step;
use krafla_plan::{Note, Object, Severity};
use serde_json::json;

/// How many different things are remembered. Beyond that, the oldest is said anew instead of counted.
const REMEMBERED_MAX: usize = 4096;

/// A note about an object.
#[derive(Clone, Debug)]
pub struct Remark {
    /// The object.
    pub about: Arc<Object>,
    /// The component that says it.
    pub by: &'static str,
    /// The note.
    pub note: Note,
    /// When it was made.
    pub at: Time,
}

/// Turns remarks into writes, and remembers what has been said.
#[derive(Debug, Default)]
pub struct Recorder {
    said: BTreeMap<Said, Record>,
    n_said: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Said {
    about: Uid,
    reason: &'static str,
    message: String,
}

#[derive(Clone, Debug)]
struct Record {
    key: Key,
    /// Who the Event is, once the server has said so.
    uid: Option<Uid>,
    count: u64,
    order: u64,
}

impl Recorder {
    /// The write that says it: a new Event, or one more in the count of the same.
    pub fn record(&mut self, remark: &Remark) -> Step {
        let said = Said {
            about: remark.about.meta.uid.clone(),
            reason: remark.note.reason,
            message: remark.note.message.clone(),
        };
        self.n_said = self.n_said.saturating_add(1);
        if let Some(Record { key, uid: Some(uid), count, order }) = self.said.get_mut(&said) {
            *count = count.saturating_add(1);
            *order = self.n_said;
            return Step::Patch {
                kind: Kind::Event,
                key: key.clone(),
                uid: uid.clone(),
                revision: None,
                of_status: false,
                patch: json!({ "count": count, "lastTimestamp": remark.at }),
            };
        }
        let key = self.name(remark);
        let record = Record { key: key.clone(), uid: None, count: 1, order: self.n_said };
        self.said.insert(said, record);
        self.forget_oldest();
        Step::Create { kind: Kind::Event, object: manifest(remark, &key) }
    }

    /// What the server made of a new Event: from now on it can be counted. One that is gone is said anew.
    pub fn stored(&mut self, key: &Key, uid: Option<Uid>) {
        if let Some(record) = self.said.values_mut().find(|record| record.key == *key) {
            record.uid = uid;
        }
    }

    /// The object's name, and a number that no other Event of this object has: as client-go names them.
    fn name(&self, remark: &Remark) -> Key {
        let nanos = remark.at.0.as_nanosecond().saturating_add(i128::from(self.n_said));
        let about = &remark.about.meta.key;
        let namespace = if about.namespace.is_empty() { "default" } else { &about.namespace };
        Key::new(namespace, &format!("{}.{nanos:x}", about.name))
    }

    fn forget_oldest(&mut self) {
        if self.said.len() > REMEMBERED_MAX {
            let oldest =
                self.said.iter().min_by_key(|(_, record)| record.order).map(|(said, _)| said.clone());
            oldest.and_then(|said| self.said.remove(&said));
        }
    }
}

fn manifest(remark: &Remark, key: &Key) -> serde_json::Value {
    let (about, info) = (&remark.about.meta, remark.about.kind.info());
    let severity = match remark.note.severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    };
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": key.name.as_ref(), "namespace": key.namespace.as_ref() },
        "involvedObject": {
            "apiVersion": info.api_version(),
            "kind": info.kind,
            "namespace": about.key.namespace.as_ref(),
            "name": about.key.name.as_ref(),
            "uid": about.uid,
            "resourceVersion": about.revision.to_string(),
        },
        "type": severity,
        "reason": remark.note.reason,
        "message": remark.note.message,
        "source": { "component": remark.by },
        "reportingComponent": remark.by,
        "reportingInstance": "",
        "firstTimestamp": remark.at,
        "lastTimestamp": remark.at,
        "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remark(message: &str) -> Remark {
        let job = r#"{"metadata":{"namespace":"ns","name":"a","uid":"u1","resourceVersion":"7"}}"#;
        Remark {
            about: Arc::new(Object::decode(Kind::VcJob, job.as_bytes())),
            by: "vc-controller-manager",
            note: Note::warning("QueueNotFound", message.to_owned()),
            at: Time::from_seconds(1_800_000_000),
        }
    }

    #[test]
    fn the_same_said_again_is_counted() {
        let mut recorder = Recorder::default();
        let Step::Create { object, .. } = recorder.record(&remark("no queue")) else { panic!("not new") };
        let name = object["metadata"]["name"].as_str().unwrap();
        recorder.stored(&Key::new("ns", name), Some("e1".into()));
        let again = recorder.record(&remark("no queue")).to_string();
        expect_test::expect![
            "patch event a.18fae27693b40001 {\"count\":2,\"lastTimestamp\":\"2027-01-15T08:00:00Z\"}"
        ]
        .assert_eq(&again);
        assert!(matches!(recorder.record(&remark("another thing")), Step::Create { .. }));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut recorder = Recorder::default();
        for n in 0..REMEMBERED_MAX + 10 {
            recorder.record(&remark(&n.to_string()));
        }
        assert_eq!(recorder.said.len(), REMEMBERED_MAX);
    }
}
