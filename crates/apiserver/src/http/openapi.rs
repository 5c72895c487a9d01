//! OpenAPI documents of what is served now.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT, ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use krafla_schema::openapi::{self, Served, Subresource};
use parking_lot::Mutex;

use super::Context;
use super::accept::{Accept, Offers};
use super::body::{self, Reply};
use crate::registry::{Resource, Table};

/// `/openapi/v3`.
pub(super) fn index(context: &Context) -> Reply {
    let table = context.api.registry().table();
    let mut documents = Vec::new();
    for (group, versions) in table.groups() {
        for version in versions {
            let path = openapi::path_of(group, &version.name);
            documents.push((path, openapi::hash(&served(&table, group, &version.name))));
        }
    }
    documents.push(("version".to_owned(), openapi::hash(&[])));
    let index = openapi::index(documents.iter().map(|(path, hash)| (path.as_str(), hash.clone())));
    body::text(200, index.to_string())
}

/// `/openapi/v3/apis/GROUP/VERSION`.
pub(super) fn document(context: &Context, path: &str, accept: Option<&str>) -> Reply {
    let offers = Offers { protobuf: false, tables: false, streams: false };
    if Accept::negotiate(accept, offers).is_err() {
        return empty(406);
    }
    let table = context.api.registry().table();
    let found = table.groups().find_map(|(group, versions)| {
        let version = versions.iter().find(|version| openapi::path_of(group, &version.name) == path)?;
        Some(openapi::document(&served(&table, group, &version.name)))
    });
    match found {
        Some(document) => body::json(200, document.to_string().into()),
        None => empty(404),
    }
}

/// How long the document of everything is kept after it was made. It is as large as all others together, and asked for by
/// few.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The document of everything, as it was last sent.
#[derive(Clone, Default)]
pub(super) struct Cache(Arc<Mutex<Option<Made>>>);

/// One made document.
#[derive(Clone)]
struct Made {
    hash: String,
    format: Format,
    bytes: Bytes,
}

/// In which form the document of everything is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Protobuf,
}

impl Format {
    /// What clients accept, and nothing if they accept neither.
    fn negotiate(accept: &str) -> Option<Format> {
        let accept = if accept.trim().is_empty() { "*/*" } else { accept };
        accept.split(',').find_map(|wish| match wish.split(';').next().unwrap_or_default().trim() {
            "application/json" | "application/*" | "*/*" => Some(Format::Json),
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
            | "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" => Some(Format::Protobuf),
            _ => None,
        })
    }

    fn content_type(self) -> &'static str {
        match self {
            Format::Json => "application/json",
            Format::Protobuf => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        }
    }
}

impl Cache {
    /// The document, made anew only if what it shows has changed or nobody has asked for it of late.
    fn get(&self, hash: &str, format: Format, make: impl FnOnce() -> Bytes) -> Bytes {
        let mut made = self.0.lock();
        if let Some(made) = made.as_ref().filter(|made| made.hash == hash && made.format == format) {
            return made.bytes.clone();
        }
        let bytes = make();
        *made = Some(Made { hash: hash.to_owned(), format, bytes: bytes.clone() });
        let kept = Arc::clone(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT_FOR).await;
            *kept.lock() = None;
        });
        bytes
    }
}

/// `/openapi/v2`.
pub(super) fn all(context: &Context, headers: &HeaderMap) -> Reply {
    let accept = super::header(headers, ACCEPT.as_str()).unwrap_or_default();
    let Some(format) = Format::negotiate(&accept) else { return empty(406) };
    let table = context.api.registry().table();
    let kinds = table.groups().flat_map(|(group, versions)| {
        versions.iter().flat_map(|version| served(&table, group, &version.name)).collect::<Vec<_>>()
    });
    let kinds: Vec<Served<'_>> = kinds.collect();
    let hash = openapi::hash(&kinds);
    let tag = format!("\"{hash}\"");
    let known = super::header(headers, IF_NONE_MATCH.as_str()).unwrap_or_default();
    let mut reply = if known.split(',').any(|known| known.trim() == tag) {
        empty(304)
    } else {
        let bytes = context.openapi.get(&hash, format, || {
            let document = openapi::v2::document(&kinds);
            match format {
                Format::Json => document.to_string().into(),
                Format::Protobuf => openapi::gnostic::encode(&document).into(),
            }
        });
        body::full(200, format.content_type(), bytes)
    };
    reply.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        reply.headers_mut().insert(ETAG, tag);
    }
    reply
}

fn empty(code: u16) -> Reply {
    let mut reply = body::text(code, "");
    reply.headers_mut().remove(http::header::CONTENT_TYPE);
    reply
}

fn served<'a>(table: &'a Table, group: &str, version: &str) -> Vec<Served<'a>> {
    let versions = table.versions(group).iter().filter(|candidate| *candidate.name == *version);
    versions.flat_map(|version| version.resources.values()).map(|resource| shown(resource)).collect()
}

fn shown(resource: &Resource) -> Served<'_> {
    let names = &resource.names;
    let gvk = [&*names.group, &*names.version, &*names.kind];
    let subresources = resource.subresources.iter().map(|subresource| Subresource {
        name: subresource.name,
        gvk: subresource.body.unwrap_or(gvk),
        verbs: subresource.verbs,
    });
    Served {
        gvk,
        plural: &names.plural,
        is_namespaced: resource.is_namespaced(),
        verbs: resource.verbs,
        subresources: subresources.collect(),
        custom_schema: resource.custom.as_ref().map(|schema| &schema.document),
    }
}
