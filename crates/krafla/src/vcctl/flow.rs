//! Job flows and job templates: `vcctl jobflow` and `vcctl jobtemplate`.

use std::path::Path;

use krafla_api::{Kind, Time};
use krafla_schema::yaml_out;
use serde_json::{Value, json};

use super::Printed;
use super::cluster::Cluster;
use super::commands::Manifest;
use super::flags::Values;
use super::job::{object, text};
use super::table::{Column, NOTHING_FOUND, Width, age, table};
use crate::manifest;

impl Manifest {
    fn kind(self) -> Kind {
        match self {
            Manifest::JobFlow => Kind::JobFlow,
            Manifest::JobTemplate => Kind::JobTemplate,
        }
    }

    /// The kind in messages.
    fn name(self) -> &'static str {
        match self {
            Manifest::JobFlow => "jobflow",
            Manifest::JobTemplate => "job template",
        }
    }
}

/// Creates every object of a file. One that the server refuses does not keep the others out.
pub(super) async fn create(
    cluster: &Cluster,
    values: &Values,
    of: Manifest,
    printed: &mut Printed,
) -> Result<(), String> {
    let kind = of.kind().info().kind;
    for document in documents(values.text("file"))? {
        let mut object = document?;
        // Defaults of fields below `spec` need one.
        if let Some(fields) = object.as_object_mut() {
            fields.entry("spec").or_insert_with(|| json!({}));
        }
        let namespace = namespace(&object);
        match cluster.create(of.kind(), &namespace, object).await {
            Ok(created) => {
                printed
                    .line(format_args!("Created {kind}: {namespace}/{}", text(&created["metadata"]["name"])));
            }
            Err(error) => printed.failure(format_args!("Failed to create {kind}: {error}")),
        }
    }
    Ok(())
}

/// Deletes the objects of a file, or the one that the flags name.
pub(super) async fn delete(
    cluster: &Cluster,
    values: &Values,
    of: Manifest,
    printed: &mut Printed,
) -> Result<(), String> {
    let kind = of.kind().info().kind;
    if values.text("file").is_empty() {
        let (name, namespace) = (values.text("name"), values.text("namespace"));
        if name.is_empty() {
            return Err(format!("{} name must be specified", of.name()));
        }
        cluster.get(of.kind(), namespace, name).await?;
        cluster.delete(of.kind(), namespace, name).await?;
        printed.line(format_args!("Deleted {kind}: {namespace}/{name}"));
        return Ok(());
    }
    for document in documents(values.text("file"))? {
        let object = document?;
        let (namespace, name) = (namespace(&object), text(&object["metadata"]["name"]));
        match cluster.delete(of.kind(), &namespace, name).await {
            Ok(()) => printed.line(format_args!("Deleted {kind}: {namespace}/{name}")),
            Err(error) => printed.failure(format_args!("Failed to delete {kind}: {error}")),
        }
    }
    Ok(())
}

fn namespace(object: &Value) -> String {
    match text(&object["metadata"]["namespace"]) {
        "" => "default".to_owned(),
        namespace => namespace.to_owned(),
    }
}

/// The documents of a file, each read when it is its turn: those before one that cannot be read count.
fn documents(file: &str) -> Result<impl Iterator<Item = Result<Value, String>>, String> {
    if file.is_empty() {
        return Err("--file must be specified".to_owned());
    }
    let text =
        manifest::read_text(Path::new(file)).map_err(|error| format!("cannot read {file}: {error:#}"))?;
    let file = file.to_owned();
    Ok(manifest::documents(&text)
        .into_iter()
        .map(move |(n_lines_before, document)| object(&file, n_lines_before, &document)))
}

/// One object as a table.
pub(super) async fn get(
    cluster: &Cluster,
    values: &Values,
    of: Manifest,
    now: Time,
) -> Result<String, String> {
    let name = values.text("name");
    if name.is_empty() {
        return Err(format!("name is mandatory to get the particular {} details", of.name()));
    }
    let object = cluster.get(of.kind(), values.text("namespace"), name).await?;
    Ok(rows(&[object], of, now))
}

/// All objects of a namespace, or of all namespaces.
pub(super) async fn list(
    cluster: &Cluster,
    values: &Values,
    of: Manifest,
    now: Time,
) -> Result<String, String> {
    let namespace = if values.is_on("all-namespaces") { "" } else { values.text("namespace") };
    let objects = cluster.list(of.kind(), namespace).await?;
    if objects.is_empty() { Ok(NOTHING_FOUND.to_owned()) } else { Ok(rows(&objects, of, now)) }
}

fn rows(objects: &[Value], of: Manifest, now: Time) -> String {
    const COLUMNS: [Column; 4] = [
        Column { header: "Name", width: Width::Longest(4) },
        Column { header: "Namespace", width: Width::Longest(4) },
        Column { header: "Phase", width: Width::Longest(4) },
        Column { header: "Age", width: Width::Longest(4) },
    ];
    let row = |object: &Value| {
        let metadata = &object["metadata"];
        let created = serde_json::from_value(metadata["creationTimestamp"].clone()).ok();
        let mut row = vec![text(&metadata["name"]).to_owned(), text(&metadata["namespace"]).to_owned()];
        if of == Manifest::JobFlow {
            row.extend([text(&object["status"]["state"]["phase"]).to_owned(), age(created, now, false)]);
        }
        row
    };
    let rows: Vec<Vec<String>> = objects.iter().map(row).collect();
    let columns = if of == Manifest::JobFlow { &COLUMNS[..] } else { &COLUMNS[..2] };
    table(columns, &rows, &rows)
}

/// Objects in full: the one that is named, or all of a namespace.
pub(super) async fn describe(cluster: &Cluster, values: &Values, of: Manifest) -> Result<String, String> {
    let (name, namespace) = (values.text("name"), values.text("namespace"));
    let objects = match name {
        "" => cluster.list(of.kind(), namespace).await?,
        name => vec![cluster.get(of.kind(), namespace, name).await?],
    };
    let (print, between): (fn(&Value) -> String, &str) = match values.text("format") {
        "yaml" => (yaml_out::write, "---\n"),
        "json" => (|object| format!("{object:#}\n"), "\n\n"),
        other => return Err(format!("--format {other:?} is not supported: must be yaml or json")),
    };
    let objects = objects.into_iter().map(|mut object| {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        print(&object)
    });
    Ok(objects.collect::<Vec<_>>().join(between))
}
