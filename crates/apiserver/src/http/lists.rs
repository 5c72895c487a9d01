//! Lists, and deletions of whole lists, over HTTP.

use std::sync::Arc;

use krafla_admission::rbac::User;

use super::accept::Accept;
use super::body::Reply;
use super::path::ResourcePath;
use super::query::Query;
use super::websocket::Upgrade;
use super::{Context, delete_options, list_options, objects, show, watches};
use crate::registry::Resource;
use crate::selector::{FieldSelector, Filter, LabelSelector};
use crate::status::Status;

/// Answers with a list, or with a watch if that is asked for.
pub(super) async fn list_or_watch(
    context: &Context,
    resource: &Arc<Resource>,
    path: &ResourcePath,
    accept: &Accept,
    query: &Query,
    upgrade: Upgrade,
) -> Result<Reply, Status> {
    let filter = filter(resource, path, query)?;
    if path.is_watch || query.flag("watch") {
        return watches::watch(context, resource, filter, accept, query, upgrade);
    }
    let listing = context.api.list_shown(resource, &list_options::list(filter, query)?).await?;
    show::listing(resource, listing, accept, query, context.env.now())
}

/// How a list is to be deleted.
pub(super) struct How<'a> {
    pub accept: &'a Accept,
    pub content_type: &'a str,
    pub body: &'a [u8],
    pub query: &'a Query,
}

/// Deletes everything in a list.
pub(super) async fn delete(
    context: &Context,
    resource: &Arc<Resource>,
    path: &ResourcePath,
    how: &How<'_>,
    user: Arc<User>,
) -> Result<Reply, Status> {
    let How { accept, content_type, body, query } = how;
    let filter = filter(resource, path, query)?;
    let options = list_options::list(filter, query)?;
    let mut how = delete_options::decode(content_type, body, query)?;
    how.user = Some(user);
    objects::warn_of_dependents(resource, &how);
    let deleted = context.api.delete_collection(resource, &options, &how).await;
    let shown =
        deleted.and_then(|deleted| show::listing(resource, deleted, accept, query, context.env.now()));
    objects::warn(shown, &how.warnings.list())
}

/// Which objects are meant.
fn filter(resource: &Resource, path: &ResourcePath, query: &Query) -> Result<Filter, Status> {
    list_options::check_numbers(query)?;
    let labels = LabelSelector::parse(query.text("labelSelector"))?;
    FieldSelector::check_form(query.text("fieldSelector"))?;
    list_options::check_together(query)?;
    let mut fields = FieldSelector::parse(query.text("fieldSelector"), resource)?;
    if !path.name.is_empty() {
        if !fields.is_empty() && fields.name() != Some(&path.name) {
            let message = "fieldSelector metadata.name doesn't match requested name";
            return Err(Status::bad_request(message));
        }
        fields = FieldSelector::of_name(&path.name);
    }
    let namespace = (!path.namespace.is_empty()).then(|| path.namespace.clone());
    Ok(Filter { namespace, labels, fields })
}
