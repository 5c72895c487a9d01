//! The `scale` subresource over HTTP.

use krafla_schema::json::{Node, stored};
use krafla_schema::{self, decode};
use serde_json::Value;

use super::body::{self, Reply};
use super::objects::ObjectRequest;
use super::write_options::WriteKind;
use crate::codec;
use crate::ops::{WriteOptions, check_name, unreadable};
use crate::patch::Patch;
use crate::registry::scale::Scale;
use crate::status::Status;

/// What a scale is, whatever it is the scale of.
const SCALE: [&str; 3] = ["autoscaling", "v1", "Scale"];

impl ObjectRequest<'_> {
    fn paths(&self) -> Result<&Scale, Status> {
        self.resource.scale.as_ref().ok_or_else(Status::unknown_resource)
    }

    fn show_scale(&self, bytes: &[u8]) -> Result<Reply, Status> {
        let object = stored(bytes).map_err(|error| Status::internal(&error))?;
        let scale = self.paths()?.shown(&object)?;
        Ok(body::value(200, &scale, self.accept.encoding))
    }

    /// GET.
    pub(super) async fn get_scale(&self) -> Result<Reply, Status> {
        let entry = self.context.api.get_shown(&self.resource, &self.key()).await?;
        self.show_scale(&entry.bytes)
    }

    /// PUT.
    pub(super) async fn update_scale(&self) -> Result<Reply, Status> {
        let options = self.write_options(WriteKind::Update)?;
        let scale = codec::decode_any(SCALE, &self.content_type, &self.body)?;
        let scale = self.typed(&scale).map_err(|why| Status::bad_request(cannot_be_handled(&scale, &why)))?;
        self.check_meant(&scale)?;
        self.change_scale(&options, |_| Ok(scale.clone())).await
    }

    /// PATCH.
    pub(super) async fn patch_scale(&self) -> Result<Reply, Status> {
        let options = self.write_options(WriteKind::Patch)?;
        let media_type = codec::media_type(&self.content_type);
        let (patch, _) =
            Patch::decode(&media_type, &self.body).ok_or_else(Status::unsupported_patch_type)??;
        let [group, version, kind] = SCALE;
        let of = krafla_schema::builtin().kind(group, version, kind);
        let patched = |old: &Value| {
            let new = patch.apply(old, of)?;
            let scale = self.typed(&new).map_err(|why| unreadable(&patch, &new, why))?;
            self.check_meant(&scale)?;
            Ok(scale)
        };
        self.change_scale(&options, patched).await
    }

    /// A scale in the form of its type.
    fn typed(&self, scale: &Value) -> Result<Value, String> {
        let text = |name: &str| scale[name].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if !matches!(api_version, "" | "autoscaling/v1") || !matches!(kind, "" | "Scale") {
            return Err(codec::not_registered(if kind.is_empty() { "Scale" } else { kind }, api_version));
        }
        let [group, version, kind] = SCALE;
        let of = krafla_schema::builtin().kind(group, version, kind).ok_or("no type is known for a scale")?;
        decode::decode(&Node::from(scale), of).map(|decoded| decoded.object)
    }

    /// A scale must be that of the object of the path.
    fn check_meant(&self, scale: &Value) -> Result<(), Status> {
        let key = self.key();
        check_name(scale, &key)?;
        let namespace = krafla_schema::object::namespace(scale);
        if !namespace.is_empty() && *namespace != *key.namespace {
            let message =
                "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(message));
        }
        Ok(())
    }

    async fn change_scale(
        &self,
        options: &WriteOptions,
        compute: impl Fn(&Value) -> Result<Value, Status>,
    ) -> Result<Reply, Status> {
        let answer = self.context.api.change_scale(&self.resource, &self.key(), options, compute).await?;
        self.show_scale(&answer.bytes)
    }
}

fn cannot_be_handled(scale: &Value, why: &str) -> String {
    let text = |name: &str| scale[name].as_str().filter(|text| !text.is_empty());
    let version = text("apiVersion").and_then(|version| version.rsplit('/').next()).unwrap_or("v1");
    let kind = text("kind").unwrap_or("Scale");
    format!("{kind} in version \"{version}\" cannot be handled as a Scale: {why}")
}
