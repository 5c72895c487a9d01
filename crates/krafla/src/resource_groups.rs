//! The file of `--admission-conf`: resource groups in the form of Volcano's webhook manager.
//!
//! Volcano passes over what it can not read in a group, and the group then does less than it says, or nothing. Here that is
//! refused at the start, with its place.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use krafla_admission::pod::{GroupSelector, ResourceGroup};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct File {
    resource_groups: Vec<Group>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Group {
    resource_group: String,
    object: Object,
    scheduler_name: String,
    tolerations: Vec<BTreeMap<String, Value>>,
    labels: BTreeMap<String, String>,
    /// JSON in a text.
    affinity: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Object {
    key: String,
    value: Vec<String>,
}

/// The groups of a file, in its order.
pub(crate) fn read(path: &Path) -> Result<Vec<ResourceGroup>> {
    let origin = || format!("cannot read the resource groups of {}", path.display());
    let text = std::fs::read_to_string(path).with_context(origin)?;
    parse(&text).with_context(origin)
}

fn parse(text: &str) -> Result<Vec<ResourceGroup>> {
    let options = serde_saphyr::options! { with_snippet: false };
    let file: Option<File> = serde_saphyr::from_str_with_options(text, options)?;
    let groups = file.unwrap_or_default().resource_groups.into_iter().enumerate();
    groups.map(|(index, group)| built(group).with_context(|| format!("resourceGroups[{index}]"))).collect()
}

fn built(group: Group) -> Result<ResourceGroup> {
    let selector = selector(&group.object).context("object")?;
    let affinity = match group.affinity.trim() {
        "" => None,
        text => Some(serde_json::from_str(text).context("affinity: must be a string of JSON")?),
    };
    let tolerations = group.tolerations.into_iter().map(|fields| Value::Object(fields.into_iter().collect()));
    Ok(ResourceGroup {
        name: group.resource_group,
        selector,
        scheduler_name: group.scheduler_name,
        tolerations: tolerations.collect(),
        labels: group.labels,
        affinity,
    })
}

fn selector(object: &Object) -> Result<GroupSelector> {
    Ok(match object.key.as_str() {
        "namespace" => GroupSelector::Namespace(object.value.clone()),
        "annotation" => GroupSelector::Annotation(annotations(&object.value)?),
        "" => GroupSelector::NamedOrAnnotation(annotations(&object.value)?),
        other => bail!("key: {other:?} selects nothing; want namespace or annotation, or leave it out"),
    })
}

/// Each text holds annotations: `pool: small`. The first of a name counts.
fn annotations(texts: &[String]) -> Result<BTreeMap<String, String>> {
    let mut annotations = BTreeMap::new();
    for (index, text) in texts.iter().enumerate() {
        let read: BTreeMap<String, String> = serde_saphyr::from_str(text)
            .map_err(|_| anyhow!("value[{index}]: {text:?} is not an annotation; write `name: value`"))?;
        for (name, value) in read {
            annotations.entry(name).or_insert(value);
        }
    }
    Ok(annotations)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn groups_are_read_in_volcanos_form() {
        let text = r#"
resourceGroups:
- resourceGroup: management
  object:
    key: namespace
    value: [mng-ns-1, mng-ns-2]
  schedulerName: default-scheduler
  tolerations:
  - {effect: NoExecute, key: slow, operator: Exists, tolerationSeconds: 30}
  labels: {volcano.sh/nodetype: management}
  affinity: '{"nodeAffinity": {}}'
- resourceGroup: cpu
  object:
    key: annotation
    value: ["volcano.sh/resource-group: cpu", "pool: small", "pool: large"]
- resourceGroup: gpu
  schedulerName: volcano
"#;
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let seconds =
            json!({ "effect": "NoExecute", "key": "slow", "operator": "Exists", "tolerationSeconds": 30 });
        let groups = vec![
            ResourceGroup {
                name: "management".to_owned(),
                selector: GroupSelector::Namespace(vec!["mng-ns-1".to_owned(), "mng-ns-2".to_owned()]),
                scheduler_name: "default-scheduler".to_owned(),
                tolerations: vec![seconds],
                labels: map(&[("volcano.sh/nodetype", "management")]),
                affinity: Some(json!({ "nodeAffinity": {} })),
            },
            ResourceGroup {
                name: "cpu".to_owned(),
                selector: GroupSelector::Annotation(map(&[
                    ("volcano.sh/resource-group", "cpu"),
                    ("pool", "small"),
                ])),
                ..ResourceGroup::default()
            },
            ResourceGroup {
                name: "gpu".to_owned(),
                scheduler_name: "volcano".to_owned(),
                ..ResourceGroup::default()
            },
        ];
        assert_eq!(parse(text).unwrap(), groups);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn what_would_have_no_effect_is_refused_with_its_place() {
        for (text, why) in [
            ("resourceGroup: []", "unknown field"),
            ("resourceGroups: [{tolerations: 3}]", "expected"),
            (
                "resourceGroups: [{}, {object: {key: label, value: [a]}}]",
                "resourceGroups[1]: object: key: \"label\" selects nothing; want namespace or annotation",
            ),
            (
                "resourceGroups: [{object: {key: annotation, value: [small]}}]",
                "resourceGroups[0]: object: value[0]: \"small\" is not an annotation; write `name: value`",
            ),
            ("resourceGroups: [{affinity: '{'}]", "resourceGroups[0]: affinity: must be a string of JSON"),
        ] {
            let refusal = format!("{:#}", parse(text).unwrap_err());
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }
}
