//! Resource groups: what an administrator adds to all pods of a namespace or with an annotation.

use std::collections::BTreeMap;

use krafla_api::labels::RESOURCE_GROUP;
use serde_json::{Map, Value};

use crate::Path;
use crate::json::At;

/// What is added to which pods. The first group that is for a pod wins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceGroup {
    /// The group's name; with the default selector, the value of the annotation `volcano.sh/resource-group`.
    pub name: String,
    /// Which pods it is for.
    pub selector: GroupSelector,
    /// The scheduler of the pods; empty leaves it as it is.
    pub scheduler_name: String,
    /// Tolerations, added to the pods' own.
    pub tolerations: Vec<Value>,
    /// Node labels, added to the pods' node selector; they win over the pods' own.
    pub labels: BTreeMap<String, String>,
    /// The affinity of pods that have none.
    pub affinity: Option<Value>,
}

/// Which pods a group is for.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupSelector {
    /// Pods of these namespaces.
    Namespace(Vec<String>),
    /// Pods with one of these annotations.
    Annotation(BTreeMap<String, String>),
    /// Pods with one of these annotations, or whose `volcano.sh/resource-group` is the group's name.
    NamedOrAnnotation(BTreeMap<String, String>),
    /// No pods: the selector is one that nobody knows.
    Nothing,
}

impl Default for GroupSelector {
    fn default() -> Self {
        GroupSelector::NamedOrAnnotation(BTreeMap::new())
    }
}

impl ResourceGroup {
    /// Whether this group is for a pod.
    pub(super) fn is_for(&self, pod: &Value) -> bool {
        let metadata = At::new(pod, Path::default()).get("metadata");
        let annotations = metadata.get("annotations");
        let annotation = |key: &str| annotations.str(key);
        let is_annotated = |wanted: &BTreeMap<String, String>| {
            wanted.iter().any(|(key, value)| !value.is_empty() && annotation(key) == value)
        };
        match &self.selector {
            GroupSelector::Namespace(names) => names.iter().any(|name| name == metadata.str("namespace")),
            GroupSelector::Annotation(wanted) => is_annotated(wanted),
            GroupSelector::NamedOrAnnotation(wanted) => {
                is_annotated(wanted) || annotation(RESOURCE_GROUP) == self.name
            }
            GroupSelector::Nothing => false,
        }
    }

    /// Adds to a pod what this group says.
    pub(super) fn apply(&self, pod: &mut Value) {
        let Some(pod) = pod.as_object_mut() else { return };
        let spec = pod.entry("spec").or_insert_with(|| Value::Object(Map::new()));
        let Some(spec) = spec.as_object_mut() else { return };
        if !self.labels.is_empty() {
            let selector = spec.entry("nodeSelector").or_insert_with(|| Value::Object(Map::new()));
            if let Some(selector) = selector.as_object_mut() {
                selector.extend(self.labels.iter().map(|(key, value)| (key.clone(), value.as_str().into())));
            }
        }
        if let Some(affinity) = &self.affinity
            && spec.get("affinity").is_none_or(Value::is_null)
        {
            spec.insert("affinity".to_owned(), affinity.clone());
        }
        if !self.tolerations.is_empty() {
            let tolerations = spec.entry("tolerations").or_insert_with(|| Value::Array(Vec::new()));
            if let Some(tolerations) = tolerations.as_array_mut() {
                tolerations.extend(self.tolerations.iter().cloned());
            }
        }
        if !self.scheduler_name.is_empty() {
            spec.insert("schedulerName".to_owned(), self.scheduler_name.as_str().into());
        }
    }
}
