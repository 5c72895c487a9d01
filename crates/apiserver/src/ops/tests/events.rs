//! Events through both of their groups.

use super::*;

fn new_group(cluster: &Cluster) -> Arc<Resource> {
    cluster.0.registry().find("events.k8s.io", "v1", "events").expect("served")
}

fn create_through_new_group(cluster: &Cluster) {
    let event = json!({
        "metadata": {"name": "e"}, "eventTime": "2020-01-01T00:00:00.000000Z", "type": "Normal",
        "reportingController": "c", "reportingInstance": "c-1", "action": "Do", "reason": "Done", "note": "well",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    });
    let options = WriteOptions { manager: Some("me".into()), ..WriteOptions::default() };
    let resource = new_group(cluster);
    let created = cluster.0.create(&resource, "default", event, &options);
    created.now_or_never().expect("ready at once").expect("a good event");
}

#[test]
fn an_event_of_the_new_group_is_stored_as_one_of_the_old() {
    let cluster = Cluster::new();
    create_through_new_group(&cluster);
    let mut stored = cluster.get(Kind::Event, "e").expect("one object for both groups");
    stored["metadata"] = Value::Null;
    expect![[r#"{"action":"Do","apiVersion":"v1","eventTime":"2020-01-01T00:00:00.000000Z","firstTimestamp":null,"involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"kind":"Event","lastTimestamp":null,"message":"well","metadata":null,"reason":"Done","reportingComponent":"c","reportingInstance":"c-1","source":{},"type":"Normal"}"#]]
        .assert_eq(&stored.to_string());
}

#[test]
fn each_group_selects_events_by_its_own_names() {
    let cluster = Cluster::new();
    create_through_new_group(&cluster);
    let n_found = |resource: &Resource, selector: &str| {
        let filter = Filter { fields: FieldSelector::parse(selector, resource)?, ..Filter::default() };
        let listing = cluster.0.list(resource, &ListOptions { filter, ..ListOptions::default() })?;
        Ok::<usize, Status>(listing.items.len())
    };
    let (core, new) = (cluster.resource(Kind::Event), new_group(&cluster));
    assert_eq!(n_found(&core, "involvedObject.name=p,reportingComponent=c"), Ok(1));
    assert_eq!(n_found(&new, "regarding.name=p,reportingController=c"), Ok(1));
    assert_eq!(n_found(&new, "regarding.name=q"), Ok(0));
    says(
        &n_found(&new, "involvedObject.name=p").unwrap_err(),
        expect!["400 BadRequest: field label not supported: involvedObject.name"],
    );
}

#[test]
fn a_patch_speaks_the_words_of_its_group() {
    let cluster = Cluster::new();
    create_through_new_group(&cluster);
    let patch = |patch: Value| {
        let (patch, options) = (Patch::Merge(patch), WriteOptions::default());
        let key = key(Kind::Event, "e");
        let resource = new_group(&cluster);
        let patched = cluster.0.patch(&resource, &key, Part::Main, &patch, &options);
        patched.now_or_never().expect("ready at once")
    };
    let series = json!({"count": 2, "lastObservedTime": "2020-01-01T00:00:01.000000Z"});
    patch(json!({"series": series})).unwrap();
    assert_eq!(cluster.get(Kind::Event, "e").unwrap()["series"], series);
    says(
        &patch(json!({"note": "other"})).unwrap_err(),
        expect![[
            r#"422 Invalid: Event "e" is invalid: message: Invalid value: "other": field is immutable"#
        ]],
    );
    cluster.patch(Kind::Event, "e", Part::Main, json!({"message": "other"})).unwrap();
    assert_eq!(cluster.get(Kind::Event, "e").unwrap()["message"], "other");
}

#[test]
fn who_writes_through_one_group_takes_fields_from_who_wrote_through_the_other() {
    let cluster = Cluster::new();
    create_through_new_group(&cluster);
    let managers = |event: &Value| -> Vec<String> {
        let entries = event["metadata"]["managedFields"].as_array().unwrap().iter();
        let shown = entries.map(|entry| {
            let fields: Vec<&str> = entry["fieldsV1"]
                .as_object()
                .unwrap()
                .keys()
                .map(|key| key.trim_start_matches("f:"))
                .collect();
            format!("{} {}: {}", entry["manager"], entry["apiVersion"], fields.join(" "))
        });
        shown.collect()
    };
    let before = cluster.get(Kind::Event, "e").unwrap();
    expect![[r#"
        [
            "\"me\" \"events.k8s.io/v1\": action eventTime note reason regarding reportingController reportingInstance type",
        ]
    "#]]
    .assert_debug_eq(&managers(&before));
    let patch = Patch::Merge(json!({"message": "better"}));
    let options = WriteOptions { manager: Some("other".into()), ..WriteOptions::default() };
    let (core, key) = (cluster.resource(Kind::Event), key(Kind::Event, "e"));
    cluster.0.patch(&core, &key, Part::Main, &patch, &options).now_or_never().unwrap().unwrap();
    let after = cluster.get(Kind::Event, "e").unwrap();
    expect![[r#"
        [
            "\"me\" \"events.k8s.io/v1\": action eventTime reason regarding reportingController reportingInstance type",
            "\"other\" \"v1\": message",
        ]
    "#]]
    .assert_debug_eq(&managers(&after));
    // An apply through the new group meets the owner of the message there, by the name that it has there.
    let object = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "best",
        "metadata": {"name": "e", "namespace": "default"}});
    let applied = Applied { object, is_forced: false };
    let (new, options) = (new_group(&cluster), WriteOptions { manager: Some("third".into()), ..options });
    let applied = cluster.0.apply(&new, &key, Part::Main, &applied, &options);
    says(
        &applied.now_or_never().unwrap().unwrap_err(),
        expect![[r#"409 Conflict: Apply failed with 1 conflict: conflict with "other" using v1: .message"#]],
    );
}
