//! Flags for admission, with the names of Volcano's webhook manager.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use krafla_admission::Settings;
use krafla_admission::pod::ResourceGroup;

use super::go_bool;
use crate::resource_groups;

/// The one gate that is about admission.
const GATES_PODS: &str = "SchedulingGatesQueueAdmission";

/// Defaults and rules of `krafla up`.
#[derive(Debug, Args)]
pub(crate) struct Admission {
    /// Read resource groups from a file in Volcano's format
    ///
    /// A resource group adds fields to pods of a namespace or with an annotation. The file is read once, at start.
    /// docs/admission.md describes it.
    #[arg(long, value_name = "FILE")]
    admission_conf: Option<PathBuf>,
    /// Limit the depth of the queue tree
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    max_queue_depth: u16,
    /// Refuse changes to the resources of the queue root
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
    enable_root_queue_protection: bool,
    /// Refuse to delete a queue with running pods
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_parser = go_bool
    )]
    enable_queue_allocated_pods_check: bool,
    /// Set feature gates: SchedulingGatesQueueAdmission=true
    ///
    /// SchedulingGatesQueueAdmission adds a scheduling gate to pods with the annotation
    /// scheduling.volcano.sh/queue-allocation-gate: "true".
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',', value_parser = gate)]
    feature_gates: Vec<(String, bool)>,
    /// Schedule pods with this schedulerName as gangs; repeatable
    ///
    /// Jobs without a schedulerName get the first name.
    #[arg(long, value_name = "NAME", default_value = "volcano", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    scheduler_name: Vec<String>,
}

impl Admission {
    /// The file of resource groups.
    pub(crate) fn resource_groups_file(&self) -> Option<&Path> {
        self.admission_conf.as_deref()
    }

    /// What was set, with what stands in the file.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let resource_groups = match &self.admission_conf {
            Some(file) => resource_groups::read(file)?,
            None => Vec::new(),
        };
        Ok(self.settings_with(resource_groups))
    }

    /// What was set, with these resource groups.
    pub(crate) fn settings_with(&self, resource_groups: Vec<ResourceGroup>) -> Settings {
        let gates: BTreeMap<&str, bool> =
            self.feature_gates.iter().map(|(name, is_on)| (name.as_str(), *is_on)).collect();
        Settings {
            scheduler_names: self.scheduler_name.clone(),
            queue_depth_max: self.max_queue_depth.into(),
            protects_root_queue: self.enable_root_queue_protection,
            checks_allocated_pods: self.enable_queue_allocated_pods_check,
            gates_pods: gates.get(GATES_PODS).copied().unwrap_or(false),
            resource_groups,
        }
    }
}

/// A gate and whether it is on: `SchedulingGatesQueueAdmission=true`.
fn gate(text: &str) -> Result<(String, bool), String> {
    let (name, is_on) = text.split_once('=').ok_or("want NAME=true or NAME=false")?;
    if name != GATES_PODS {
        return Err(format!("there is one gate, {GATES_PODS}"));
    }
    Ok((name.to_owned(), go_bool(is_on)?))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn settings(flags: &[&str]) -> Result<Settings, String> {
        let words = ["krafla", "up"].iter().chain(flags);
        let parsed = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
        match parsed.command {
            Command::Up(up) => up.admission.settings().map_err(|error| format!("{error:#}")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_set_is_as_volcano_has_it() {
        assert_eq!(settings(&[]), Ok(Settings::default()));
    }

    #[test]
    fn volcanos_flags_for_its_webhooks_say_what_they_say_there() {
        let flags = [
            "--max-queue-depth=3",
            "--enable-root-queue-protection=false",
            "--enable-queue-allocated-pods-check",
            "--feature-gates=SchedulingGatesQueueAdmission=true",
            "--scheduler-name=alpha",
            "--scheduler-name=volcano",
        ];
        let expected = Settings {
            scheduler_names: vec!["alpha".to_owned(), "volcano".to_owned()],
            queue_depth_max: 3,
            protects_root_queue: false,
            checks_allocated_pods: true,
            gates_pods: true,
            resource_groups: Vec::new(),
        };
        assert_eq!(settings(&flags), Ok(expected));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_reason() {
        for (flag, why) in [
            ("--max-queue-depth=0", "0 is not in 1.."),
            ("--enable-root-queue-protection=perhaps", "want true or false"),
            ("--feature-gates=CSIStorage=true", "there is one gate, SchedulingGatesQueueAdmission"),
            ("--feature-gates=SchedulingGatesQueueAdmission", "want NAME=true or NAME=false"),
            ("--scheduler-name=", "a value is required"),
            ("--admission-conf=/no/such/file", "cannot read the resource groups of /no/such/file"),
        ] {
            let refusal = settings(&[flag]).unwrap_err();
            assert!(refusal.contains(why), "{flag}: {refusal}");
        }
    }
}
