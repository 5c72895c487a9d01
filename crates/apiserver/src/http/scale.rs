//! The `scale` subresource over HTTP.

use serde_json::Value;

use super::body::{self, Reply};
use super::objects::ObjectRequest;
use super::write_options::WriteKind;
use crate::codec;
use crate::ops::WriteOptions;
use crate::patch::Patch;
use crate::registry::scale::Scale;
use crate::schema;
use crate::status::Status;

/// What a scale is, whatever it is the scale of.
const SCALE: [&str; 3] = ["autoscaling", "v1", "Scale"];

impl ObjectRequest<'_> {
    fn paths(&self) -> Result<&Scale, Status> {
        self.resource.scale.as_ref().ok_or_else(Status::unknown_resource)
    }

    fn show_scale(&self, bytes: &[u8]) -> Result<Reply, Status> {
        let object = serde_json::from_slice(bytes).map_err(|error| Status::internal(&error.to_string()))?;
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
        self.change_scale(&options, |_| Ok(scale.clone())).await
    }

    /// PATCH.
    pub(super) async fn patch_scale(&self) -> Result<Reply, Status> {
        let options = self.write_options(WriteKind::Patch)?;
        let media_type = codec::media_type(&self.content_type);
        let (patch, _) =
            Patch::decode(&media_type, &self.body).ok_or_else(Status::unsupported_patch_type)??;
        let [group, version, kind] = SCALE;
        let of = schema::builtin().kind(group, version, kind);
        self.change_scale(&options, |old| patch.apply(old, of)).await
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
