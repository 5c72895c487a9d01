//! OpenAPI documents of what is served now.

use super::Context;
use super::accept::Accept;
use super::body::{self, Reply};
use crate::registry::{Resource, Table};
use crate::schema::openapi::{self, Served, Subresource};

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
    if Accept::negotiate(accept).is_err() {
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
