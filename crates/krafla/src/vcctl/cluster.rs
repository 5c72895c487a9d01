//! The cluster that a tool works with: which one it is, and objects of it as JSON.

use std::ffi::OsString;
use std::path::PathBuf;

use http::Uri;
use krafla_api::Kind;
use krafla_client::{Access, AccessError, Credentials, HttpsClient, Limits, Request};
use krafla_cluster::ClientError;
use serde_json::Value;

use super::flags::Values;
use super::job::{each, text};
use crate::bus_command;

/// The server where nothing names one.
const DEFAULT_SERVER: &str = "http://localhost:8080";

/// A cluster.
pub(super) struct Cluster {
    client: HttpsClient,
}

impl Cluster {
    /// The cluster that the flags name, or else the one of the environment, as kubectl finds it.
    pub(super) fn connect(values: &Values) -> Result<Cluster, String> {
        let mut access = access(values.text("kubeconfig")).map_err(|error| error.to_string())?;
        let master = values.text("master");
        if !master.is_empty() {
            access.server = server(master)?;
        }
        let client = HttpsClient::new(access, Limits::default()).map_err(|error| error.to_string())?;
        Ok(Cluster { client: client.writing_as("vcctl") })
    }

    /// One object.
    pub(super) async fn get(&self, kind: Kind, namespace: &str, name: &str) -> Result<Value, String> {
        self.ask(Request::get(object_path(kind, namespace, name)?)).await
    }

    /// All objects of a kind in a namespace, or in all if it is empty.
    pub(super) async fn list(&self, kind: Kind, namespace: &str) -> Result<Vec<Value>, String> {
        let listed = self.ask(Request::get(krafla_client::collection_path(kind, namespace))).await?;
        Ok(items(listed, "items").into_iter().map(|object| of_kind(kind, object)).collect())
    }

    /// The rows of a kind as the server prints them for kubectl, each with its metadata.
    pub(super) async fn rows(&self, kind: Kind, namespace: &str, labels: &str) -> Result<Vec<Row>, String> {
        const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
        let path = krafla_client::collection_path(kind, namespace);
        let query = format!("{path}?includeObject=Metadata&labelSelector={}", krafla_client::encoded(labels));
        let table = self.ask(Request::get(query).accepting(TABLE)).await?;
        let columns = each(&table["columnDefinitions"]);
        let columns: Vec<String> = columns.map(|column| text(&column["name"]).to_owned()).collect();
        let rows = items(table, "rows").into_iter();
        Ok(rows.map(|row| Row { columns: columns.clone(), row }).collect())
    }

    /// Makes an object in a namespace, of this kind whatever it says that it is, and returns it as it was stored.
    pub(super) async fn create(&self, kind: Kind, namespace: &str, object: Value) -> Result<Value, String> {
        let path = krafla_client::collection_path(kind, namespace);
        self.ask(Request::post(path, of_kind(kind, object))).await
    }

    /// Deletes an object.
    pub(super) async fn delete(&self, kind: Kind, namespace: &str, name: &str) -> Result<(), String> {
        self.ask(Request::delete(object_path(kind, namespace, name)?)).await.map(drop)
    }

    /// Changes fields of an object.
    pub(super) async fn patch(&self, kind: Kind, name: &str, patch: Value) -> Result<(), String> {
        self.ask(Request::merge_patch(object_path(kind, "", name)?, patch)).await.map(drop)
    }

    /// Asks the controllers to do something with an object.
    pub(super) async fn command(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        action: &str,
    ) -> Result<(), String> {
        let target = self.get(kind, namespace, name).await?;
        let (namespace, command) =
            bus_command::command(kind, namespace, name, &target["metadata"]["uid"], action);
        self.create(Kind::Command, &namespace, command).await.map(drop)
    }

    async fn ask(&self, request: Request) -> Result<Value, String> {
        let body = self.client.ask(&request).await.map_err(|error| message(&error))?;
        serde_json::from_slice(&body)
            .map_err(|error| format!("the answer of the server is not JSON: {error}"))
    }
}

/// One row of a table.
pub(super) struct Row {
    columns: Vec<String>,
    row: Value,
}

impl Row {
    /// The value in a column.
    pub(super) fn cell(&self, column: &str) -> String {
        let index = self.columns.iter().position(|name| name == column);
        match index.and_then(|index| self.row["cells"].get(index)) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }

    pub(super) fn metadata(&self) -> &Value {
        &self.row["object"]["metadata"]
    }
}

/// An object that says of which kind it is.
fn of_kind(kind: Kind, mut object: Value) -> Value {
    let info = kind.info();
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), info.api_version().into());
        fields.insert("kind".to_owned(), info.kind.into());
    }
    object
}

/// The elements of the list in a field.
fn items(mut value: Value, field: &str) -> Vec<Value> {
    match value.get_mut(field).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn object_path(kind: Kind, namespace: &str, name: &str) -> Result<String, String> {
    let wrong = match name {
        "." | ".." => Some(format!("may not be '{name}'")),
        name => ['/', '%'].into_iter().find(|&c| name.contains(c)).map(|c| format!("may not contain '{c}'")),
    };
    match wrong {
        Some(wrong) => Err(format!("invalid resource name {name:?}: [{wrong}]")),
        None => Ok(krafla_client::object_path(kind, &krafla_api::Key::new(namespace, name))),
    }
}

/// What the server said, and nothing around it.
fn message(error: &ClientError) -> String {
    error.message().to_owned()
}

/// Where the cluster is: the kubeconfig that is named, those of `KUBECONFIG`, the one of the home directory, the cluster of
/// this pod, or the default server.
fn access(kubeconfig: &str) -> Result<Access, AccessError> {
    if !kubeconfig.is_empty() {
        return Access::of_file(&PathBuf::from(kubeconfig)).or_else(or_default);
    }
    let of_home = || std::env::home_dir().map(|home| home.join(".kube/config").into_os_string());
    let files: Option<OsString> =
        std::env::var_os("KUBECONFIG").filter(|files| !files.is_empty()).or_else(of_home);
    if let Some(files) = files {
        match Access::of_list(&files) {
            Err(AccessError::Missing(_)) => {}
            found => return found.or_else(or_default),
        }
    }
    Access::of_this_pod().or_else(|_| default_access())
}

/// A kubeconfig that names no cluster stands for the default server.
fn or_default(error: AccessError) -> Result<Access, AccessError> {
    match error {
        AccessError::NoContext { .. } => default_access(),
        other => Err(other),
    }
}

fn default_access() -> Result<Access, AccessError> {
    let named = std::env::var("KUBERNETES_MASTER").ok().filter(|server| !server.is_empty());
    let named = named.as_deref().unwrap_or(DEFAULT_SERVER);
    let server = server(named).map_err(AccessError::Missing)?;
    Ok(Access {
        server,
        authorities: Vec::new(),
        server_name: None,
        skips_verification: false,
        proxy: None,
        credentials: Credentials::default(),
        context: String::new(),
        namespace: "default".to_owned(),
        origin: "the default server".to_owned(),
    })
}

/// An address; without a scheme it is of HTTP.
fn server(address: &str) -> Result<Uri, String> {
    let full = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let wrong = || format!("host must be a URL or a host:port pair: {address:?}");
    let uri: Uri = full.parse().map_err(|_| wrong())?;
    if uri.host().is_none_or(str::is_empty) { Err(wrong()) } else { Ok(uri) }
}
