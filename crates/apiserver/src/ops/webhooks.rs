//! Where policies that change objects, and webhooks, come into a write: after the cluster's own rules, each time.

use krafla_admission::rbac::User;
use serde_json::Value;

use super::{Api, DeleteOptions, Part, WriteOptions};
use crate::admit::webhooks::{Call, Connection};
use crate::admit::{Operation, Request, Warnings};
use crate::registry::Resource;
use crate::status::Status;

impl Api {
    /// A write as the cluster's own rules see it.
    pub(super) fn request<'a>(
        &'a self,
        resource: &'a Resource,
        part: Part,
        options: &'a WriteOptions,
        old: Option<&'a Value>,
    ) -> Request<'a> {
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let WriteOptions { dry_run: is_dry_run, warnings, user, .. } = options;
        let (subresource, is_dry_run, user) = (part.subresource(), *is_dry_run, user.as_deref());
        Request { api: self, resource, operation, old, subresource, is_dry_run, warnings, user }
    }

    /// Has the mutating policies and then the mutating webhooks change an object. Policies that ask for it look again at
    /// what webhooks have changed. Says whether the object has changed.
    pub(super) async fn mutate_by_others(
        &self,
        resource: &Resource,
        part: Part,
        options: &WriteOptions,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<bool, Status> {
        let request = self.request(resource, part, options, old);
        let (is_changed, again) = self.admission().mutate_by_policies(&request, object)?;
        let call = self.call(resource, part, options, old);
        if !call.mutate(self.admission().caller(), object).await? {
            return Ok(is_changed);
        }
        again.mutate(&request, object)?;
        Ok(true)
    }

    /// Asks the validating webhooks about an object that is about to be stored.
    pub(super) async fn validate_by_webhooks(
        &self,
        resource: &Resource,
        part: Part,
        options: &WriteOptions,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        self.call(resource, part, options, old).validate(self.admission().caller(), object).await
    }

    /// Asks all webhooks about an object that is about to go. A mutating one can refuse, but there is nothing to change.
    pub(super) async fn ask_about_deletion(
        &self,
        resource: &Resource,
        old: &Value,
        options: &DeleteOptions,
    ) -> Result<(), Status> {
        let DeleteOptions { dry_run: is_dry_run, warnings, .. } = options;
        let (operation, subresource) = (Operation::Delete, "");
        let is_dry_run = *is_dry_run;
        let (old_object, configured) = (Some(old), self.admission().webhooks());
        let call = Call {
            api: self,
            resource,
            subresource,
            operation,
            old: old_object,
            is_dry_run,
            warnings,
            configured,
            user: options.user.as_deref(),
            connection: None,
        };
        let caller = self.admission().caller();
        call.mutate(caller, &mut old.clone()).await?;
        call.validate(caller, old).await
    }

    /// Asks all webhooks whether a client may connect to an object. `options` is what it asks of the connection.
    pub async fn ask_about_connection(
        &self,
        resource: &Resource,
        subresource: &str,
        connection: Connection<'_>,
        options: &Value,
        user: Option<&User>,
    ) -> Result<(), Status> {
        let warnings = Warnings::default();
        let call = Call {
            api: self,
            resource,
            subresource,
            operation: Operation::Create,
            old: None,
            is_dry_run: false,
            warnings: &warnings,
            configured: self.admission().webhooks(),
            connection: Some(connection),
            user,
        };
        let caller = self.admission().caller();
        call.mutate(caller, &mut options.clone()).await?;
        call.validate(caller, options).await
    }

    fn call<'a>(
        &'a self,
        resource: &'a Resource,
        part: Part,
        options: &'a WriteOptions,
        old: Option<&'a Value>,
    ) -> Call<'a> {
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let WriteOptions { dry_run: is_dry_run, warnings, user, .. } = options;
        let (subresource, is_dry_run, user) = (part.subresource(), *is_dry_run, user.as_deref());
        let configured = self.admission().webhooks();
        let connection = None;
        Call {
            api: self,
            resource,
            subresource,
            operation,
            old,
            is_dry_run,
            warnings,
            configured,
            connection,
            user,
        }
    }
}
