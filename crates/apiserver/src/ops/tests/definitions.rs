//! Kinds that come and go with their definitions, and what holds them.

use super::*;

const WIDGETS: &str = "widgets.example.com";

fn definition(plural: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "properties": {"size": {"type": "integer", "default": 3}},
    }}});
    let scale = json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"});
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"scale": scale},
            }],
        },
    })
}

impl Cluster {
    pub(super) fn define(&self, plural: &str, kind: &str) -> Value {
        self.create(Kind::CustomResourceDefinition, definition(plural, kind)).unwrap()
    }

    pub(super) fn undefine(&self, plural: &str) -> Deleted {
        let name = format!("{plural}.example.com");
        self.delete(Kind::CustomResourceDefinition, &name, &DeleteOptions::default()).unwrap()
    }

    fn widgets(&self) -> Option<Arc<Resource>> {
        self.0.registry().find("example.com", "v1", "widgets")
    }

    fn create_widget(&self, widget: Value) -> Result<Value, Status> {
        let widgets = self.widgets().unwrap();
        let widget = crate::codec::normalise(&widgets, &widget).unwrap();
        let options = WriteOptions::default();
        let created = self.0.create(&widgets, "default", widget, &options);
        created.now_or_never().unwrap().map(|created| serde_json::from_slice(&created.bytes).unwrap())
    }
}

/// The conditions of a definition, one line each.
fn conditions(definition: &Value) -> Vec<String> {
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
    conditions.iter().map(|it| ["type", "status", "reason"].map(|field| text(it, field)).join(" ")).collect()
}

#[test]
fn a_definition_is_served_as_long_as_it_is_there() {
    let cluster = Cluster::new();
    cluster.define("widgets", "Widget");
    let created = cluster.create_widget(json!({"metadata": {"name": "w"}, "spec": {"odd": 1}})).unwrap();
    assert_eq!(created["spec"], json!({"size": 3}));
    cluster.undefine("widgets");
    assert!(cluster.widgets().is_none());
    assert!(cluster.get(Kind::CustomResourceDefinition, WIDGETS).is_none());
}

#[test]
fn the_objects_of_a_deleted_definition_do_not_come_back_with_it() {
    let cluster = Cluster::new();
    cluster.define("widgets", "Widget");
    cluster.create_widget(json!({"metadata": {"name": "w"}})).unwrap();
    cluster.undefine("widgets");
    cluster.define("widgets", "Widget");
    assert!(cluster.0.get(&cluster.widgets().unwrap(), &Key::new("default", "w")).is_err());
}

#[test]
fn a_definition_waits_for_the_last_of_its_objects() {
    let cluster = Cluster::new();
    cluster.define("widgets", "Widget");
    cluster.create_widget(json!({"metadata": {"name": "w", "finalizers": ["example.com/held"]}})).unwrap();
    assert!(matches!(cluster.undefine("widgets"), Deleted::Marked(_)));
    let marked = cluster.get(Kind::CustomResourceDefinition, WIDGETS).unwrap();
    assert_eq!(marked["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(conditions(&marked).last().unwrap(), "Terminating True InstanceDeletionInProgress");
    let refused = cluster.create_widget(json!({"metadata": {"name": "late"}})).unwrap_err();
    says(
        &refused,
        expect![[
            r#"403 Forbidden: widgets.example.com "late" is forbidden: create not allowed while custom resource definition is terminating"#
        ]],
    );
    let (widgets, key) = (cluster.widgets().unwrap(), Key::new("default", "w"));
    let let_go = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let options = WriteOptions::default();
    cluster.0.patch(&widgets, &key, Part::Main, &let_go, &options).now_or_never().unwrap().unwrap();
    assert!(cluster.get(Kind::CustomResourceDefinition, WIDGETS).is_none());
    assert!(cluster.widgets().is_none());
}

#[test]
fn a_definition_whose_deletion_was_cut_short_goes_at_the_next_start() {
    let cluster = Cluster::new();
    cluster.define("widgets", "Widget");
    cluster.create_widget(json!({"metadata": {"name": "w"}})).unwrap();
    let cut_short = json!({"metadata": {"finalizers": ["customresourcecleanup.apiextensions.k8s.io"]}});
    cluster.patch(Kind::CustomResourceDefinition, WIDGETS, Part::Main, cut_short).unwrap();
    let definitions = cluster.resource(Kind::CustomResourceDefinition);
    let entry = cluster.0.get(&definitions, &Key::new("", WIDGETS)).unwrap();
    let mut stored = parse(&entry).unwrap();
    krafla_schema::object::set_meta(&mut stored, "deletionTimestamp", "2027-01-15T08:00:00Z");
    let draft = cluster.0.draft(&definitions, stored, None).now_or_never().unwrap().unwrap();
    let write = crate::store::Write {
        resource: definitions.storage.clone(),
        key: entry.key.clone(),
        expect: crate::store::Expect::Revision(entry.revision),
        change: crate::store::Change::Put(draft),
    };
    cluster.0.store().commit(write).now_or_never().unwrap().unwrap();
    cluster.0.bootstrap().now_or_never().unwrap().unwrap();
    assert!(cluster.get(Kind::CustomResourceDefinition, WIDGETS).is_none());
}

#[test]
fn names_belong_to_the_first_who_asks_until_it_goes() {
    let cluster = Cluster::new();
    let first = cluster.define("widgets", "Widget");
    assert_eq!(
        conditions(&first),
        ["NamesAccepted True NoConflicts", "Established True InitialNamesAccepted"]
    );
    let second = cluster.define("gadgets", "Widget");
    assert_eq!(
        conditions(&second),
        ["NamesAccepted False ListKindConflict", "Established False NotAccepted"]
    );
    let gadgets = || cluster.0.registry().find("example.com", "v1", "gadgets");
    assert!(gadgets().is_none());
    cluster.undefine("widgets");
    let settled = cluster.get(Kind::CustomResourceDefinition, "gadgets.example.com").unwrap();
    assert_eq!(
        conditions(&settled),
        ["NamesAccepted True NoConflicts", "Established True InitialNamesAccepted"]
    );
    assert!(gadgets().is_some());
}

#[test]
fn a_definition_that_never_got_its_names_can_be_deleted() {
    let cluster = Cluster::new();
    cluster.define("widgets", "Widget");
    cluster.define("gadgets", "Widget");
    cluster.undefine("gadgets");
    assert!(cluster.get(Kind::CustomResourceDefinition, "gadgets.example.com").is_none());
}

#[test]
fn a_scale_changes_what_its_kind_says_is_the_number_wanted() {
    let cluster = Cluster::new();
    cluster.define("widgets", "Widget");
    cluster.create_widget(json!({"metadata": {"name": "w"}})).unwrap();
    let (widgets, key) = (cluster.widgets().unwrap(), Key::new("default", "w"));
    let scale_to = |replicas: i64| {
        let compute = |old: &Value| {
            let mut scale = old.clone();
            scale["spec"]["replicas"] = replicas.into();
            Ok(scale)
        };
        cluster.0.change_scale(&widgets, &key, &WriteOptions::default(), compute).now_or_never().unwrap()
    };
    let scaled: Value = serde_json::from_slice(&scale_to(5).unwrap().bytes).unwrap();
    assert_eq!((&scaled["spec"], &scaled["metadata"]["generation"]), (&json!({"size": 5}), &json!(2)));
    says(
        &scale_to(-1).unwrap_err(),
        expect![[
            r#"422 Invalid: Widget.example.com "w" is invalid: .spec.size: Invalid value: -1: should be a non-negative integer"#
        ]],
    );
}
