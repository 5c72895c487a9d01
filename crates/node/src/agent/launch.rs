//! Gathers what a container needs, and puts together how it is started.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use krafla_api::Key;
use krafla_runtime::ClientError;

use super::Shared;
use super::addresses::HOST;
use crate::container::{ContainerId, is_file_name};
use crate::materials::environment::{command_line, variables};
use crate::materials::fields::Facts;
use crate::materials::references::{self, Reference};
use crate::materials::sources::{Missing, Sources, decode};
use crate::materials::volumes::{self, Places};
use crate::pod::{Container, Pod};
use crate::supervisor::protocol::Launch;

/// Why a container can not be started: the reason and message of a waiting container.
pub(crate) struct Problem {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl From<Missing> for Problem {
    fn from(missing: Missing) -> Problem {
        Problem { reason: "CreateContainerConfigError", message: missing.to_string() }
    }
}

/// What everything that a pod's containers need is gathered for.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pod: Arc<Pod>,
    pub(crate) address: Ipv4Addr,
}

impl Context {
    /// Makes all volumes of the pod. Doing it again changes nothing.
    pub(crate) async fn make_volumes(&self) -> Result<(), Problem> {
        if self.pod.spec.volumes.is_empty() {
            return Ok(());
        }
        let sources = self.fetch(references::of_volumes(&self.pod)).await?;
        let (of_pod, of_claims) = (self.volumes_of_pod(), self.shared.config.claims());
        let places = Places { of_pod: &of_pod, of_claims: &of_claims };
        let not_mounted = |message: String| Problem { reason: "ContainerCreating", message };
        let volumes = volumes::desired(&self.pod, places, &self.facts(), &sources)
            .map_err(|missing| not_mounted(format!("a volume can not be made: {missing}")))?;
        let write = move || {
            for volume in &volumes {
                volumes::write(volume)
                    .map_err(|error| format!("volume {:?} can not be made: {error}", volume.name))?;
            }
            Ok(())
        };
        let outcome = tokio::task::spawn_blocking(write).await;
        outcome.unwrap_or_else(|error| Err(error.to_string())).map_err(not_mounted)
    }

    /// How to start one of the pod's containers.
    pub(crate) async fn launch(&self, id: ContainerId, backoff_seconds: u32) -> Result<Launch, Problem> {
        let container =
            self.pod.all_containers().find(|container| container.name == id.name).ok_or_else(|| Problem {
                reason: "CreateContainerError",
                message: format!("the pod has no container {:?}", id.name),
            })?;
        let sources = self.fetch(references::of_environment(container)).await?;
        let variables = variables(&self.pod, container, &self.facts(), &sources)?;
        let argv = command_line(container, &variables);
        let env = self.environment(container, variables);
        let working_dir = match container.working_dir.as_str() {
            "" => self.shared.config.workdir.clone(),
            named => self.shared.config.workdir.join(named),
        };
        let grace_seconds = self.pod.grace_seconds();
        Ok(Launch { id, argv, env: env.into_iter().collect(), working_dir, backoff_seconds, grace_seconds })
    }

    /// What the process inherits from krafla, what it is told of its pod, and what the manifest says, in this order.
    fn environment(
        &self,
        container: &Container,
        variables: BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let mut environment: BTreeMap<_, _> = self.shared.config.env.iter().cloned().collect();
        environment.insert("HOSTNAME".to_owned(), self.pod.hostname().to_owned());
        for mount in &container.volume_mounts {
            if let Some(path) = self.volume_path(&mount.name) {
                let path = path.join(&mount.sub_path);
                environment.insert(volume_variable(&mount.name), path.display().to_string());
            }
        }
        environment.extend(variables);
        environment
    }

    fn volume_path(&self, name: &str) -> Option<PathBuf> {
        let volume = self.pod.spec.volumes.iter().find(|volume| volume.name == name)?;
        if let Some(host) = &volume.host_path {
            return Some(PathBuf::from(&host.path));
        }
        if let Some(claim) = &volume.persistent_volume_claim {
            return Some(
                self.shared.config.claims().join(&self.pod.metadata.namespace).join(&claim.claim_name),
            );
        }
        is_file_name(name).then(|| self.volumes_of_pod().join(name))
    }

    fn volumes_of_pod(&self) -> PathBuf {
        self.shared.config.pods().join(&*self.pod.metadata.uid.0).join("volumes")
    }

    fn facts(&self) -> Facts {
        Facts {
            node_name: self.shared.config.name.clone(),
            host_ip: HOST.to_string(),
            pod_ip: self.address.to_string(),
            allocatable: self.shared.capacity.clone(),
        }
    }

    async fn fetch(&self, references: BTreeSet<Reference>) -> Result<Sources, Problem> {
        let mut sources = Sources::default();
        for (kind, name) in references {
            let key = Key::new(&self.pod.metadata.namespace, &name);
            let data = match self.shared.client.get(kind, &key).await {
                Ok(json) => Some(decode(kind, &json).map_err(|error| error.to_string())),
                Err(ClientError::NotFound(_)) => None,
                Err(error) => Some(Err(error.to_string())),
            };
            let data = data.transpose().map_err(|error| Problem {
                reason: "CreateContainerConfigError",
                message: format!("{} {name:?} can not be read: {error}", kind.info().singular),
            })?;
            sources.insert((kind, name), data);
        }
        Ok(sources)
    }
}

/// `KRAFLA_VOLUME_DATA_1` for `data-1`.
fn volume_variable(name: &str) -> String {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    format!("KRAFLA_VOLUME_{}", letters.collect::<String>())
}
