//! Flags for access to the API server, with the names of kube-apiserver.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::{Args, ValueEnum};
use krafla_apiserver::{AuditConfig, AuthorizationMode, parse_token_file};

use super::go_bool;
use crate::cluster;
use crate::run::BadInput;

/// Who may use the API server, and what for.
#[derive(Debug, Args)]
pub(crate) struct Access {
    /// Authorize requests by RBAC, or allow all
    ///
    /// RBAC: by Roles and their bindings, as on a Kubernetes cluster. AlwaysAllow: every service account and user with a
    /// token may do everything. The kubeconfig that krafla writes has the group system:masters, which may do everything in both modes.
    #[arg(long, value_name = "MODE", value_enum, default_value = "RBAC", ignore_case = true)]
    pub(crate) authorization_mode: Mode,
    /// Accept requests without a token; they may read health and version
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_parser = go_bool
    )]
    anonymous_auth: bool,
    /// Read users and tokens: lines of TOKEN,USER,UID,"GROUP,GROUP"
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// Log every request to this file as a line of JSON; `-` is stdout
    ///
    /// The lines are events of audit.k8s.io/v1 at the level Metadata: user, verb, object and response code. Bodies are not logged.
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// Start a new audit log after this many megabytes; 0 means 100
    #[arg(long, value_name = "MB", default_value_t = 0)]
    audit_log_maxsize: u64,
    /// Keep this many old audit logs; 0 keeps all
    #[arg(long, value_name = "N", default_value_t = 0)]
    audit_log_maxbackup: usize,
}

/// How requests are authorised.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Mode {
    /// By Roles and their bindings
    #[value(name = "RBAC")]
    Rbac,
    /// Every user may do everything
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
}

impl From<Mode> for AuthorizationMode {
    fn from(mode: Mode) -> AuthorizationMode {
        match mode {
            Mode::Rbac => AuthorizationMode::Rbac,
            Mode::AlwaysAllow => AuthorizationMode::AlwaysAllow,
        }
    }
}

impl Access {
    /// Reads the files that the flags name.
    pub(crate) fn read(&self) -> Result<cluster::Access> {
        let users = match &self.token_auth_file {
            None => Vec::new(),
            Some(path) => {
                let what = || format!("--token-auth-file: cannot read {}", path.display());
                let text = std::fs::read_to_string(path).with_context(what).map_err(BadInput)?;
                parse_token_file(&text)
                    .map_err(|why| BadInput(anyhow!("--token-auth-file: {}: {why}", path.display())))?
            }
        };
        let audit = self.audit_log_path.clone().map(|path| AuditConfig {
            path,
            megabytes_max: self.audit_log_maxsize,
            backups_max: self.audit_log_maxbackup,
        });
        Ok(cluster::Access { anonymous: self.anonymous_auth, users, audit })
    }
}
