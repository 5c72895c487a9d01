//! Changing how many replicas an object wants, through its `Scale`.

use krafla_api::Key;
use krafla_schema::field::FieldError;
use krafla_schema::object;
use serde_json::Value;

use super::ownership::Ownership;
use super::{Answer, Api, Part, WriteOptions};
use crate::registry::Resource;
use crate::registry::scale::Scale;
use crate::status::{Qualified, Status};

impl Api {
    /// Replaces the `Scale` of an object by what `compute` makes of it. The answer is the object.
    pub async fn change_scale(
        &self,
        resource: &Resource,
        key: &Key,
        options: &WriteOptions,
        compute: impl Fn(&Value) -> Result<Value, Status>,
    ) -> Result<Answer, Status> {
        let paths = resource.scale.as_ref().ok_or_else(Status::unknown_resource)?;
        let changed = |old: &Value| {
            let scale = compute(&paths.of(old))?;
            check(resource, paths, &key.name, &scale)?;
            let mut new = old.clone();
            paths.set(&mut new, &scale);
            Ok(new)
        };
        self.change(resource, key, Part::Scale, Ownership::Tracked, options, changed).await
    }
}

fn check(resource: &Resource, paths: &Scale, name: &str, scale: &Value) -> Result<(), Status> {
    let replicas = object::at(scale, "/spec/replicas");
    if replicas.as_i64().unwrap_or(0) >= 0 {
        return Ok(());
    }
    Err(if resource.is_custom {
        let why = "should be a non-negative integer";
        let error = FieldError::invalid(paths.wanted.as_str(), replicas.clone(), why);
        Status::invalid(&resource.qualified_kind(), name, &[error])
    } else {
        let why = "must be greater than or equal to 0";
        let error = FieldError::invalid("spec.replicas", replicas.clone(), why);
        Status::invalid(&Qualified { group: "autoscaling", what: "Scale" }, name, &[error])
    })
}
