//! Gathers what a container needs, and puts together how it is started.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Key, Kind};
use krafla_cluster::ClientError;

use super::Shared;
use super::addresses::HOST;
use super::pods::View;
use crate::container::ContainerId;
use crate::decide::NO_VOLUMES;
use crate::materials::environment::{command_line, expand_all, variables};
use crate::materials::fields::Facts;
use crate::materials::references::{self, Reference};
use crate::materials::sources::{Data, Missing, Sources, decode, decode_text};
use crate::materials::volumes::{self, Content, Desired, Places};
use crate::pod::{Container, Pod};
use crate::supervisor::cgroup::Limits;
use crate::supervisor::protocol::{Launch, Surroundings};
use crate::tree::memory_of;

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
    /// Changes when something changes that volumes are made of.
    pub(crate) volumes_version: u64,
}

impl Context {
    pub(crate) fn of(shared: Arc<Shared>, view: &View) -> Context {
        Context {
            shared,
            pod: view.pod.clone(),
            address: view.address,
            volumes_version: view.volumes_version,
        }
    }

    /// Makes all volumes of the pod. Doing it again changes nothing.
    pub(crate) async fn make_volumes(&self) -> Result<(), Problem> {
        if self.pod.spec.volumes.is_empty() {
            return Ok(());
        }
        let volumes: Result<Vec<_>, _> = self.desired_volumes().await?.into_iter().collect();
        write(volumes.map_err(lacks)?).await
    }

    /// Brings the files of all volumes up to date. Those of a volume that can not be made any more stay as they are.
    pub(crate) async fn refresh_volumes(&self) -> Result<(), Problem> {
        if self.pod.spec.volumes.is_empty() {
            return Ok(());
        }
        let mut files = Vec::new();
        for volume in self.desired_volumes().await? {
            match volume {
                Ok(volume) if matches!(volume.content, Content::Files(_)) => files.push(volume),
                Ok(_) => {}
                Err(missing) => tracing::info!(pod = %self.pod.key(), %missing, "a volume is not up to date"),
            }
        }
        write(files).await
    }

    /// When the tokens of a pod whose volumes are made now must be renewed, if it has any.
    pub(crate) fn renew_after(&self) -> Option<Duration> {
        self.shared.access.as_ref()?;
        references::tokens_of_volumes(&self.pod).map(references::renewed_after).min()
    }

    async fn desired_volumes(&self) -> Result<Vec<Result<Desired, Missing>>, Problem> {
        let mut sources = self.fetch(references::of_volumes(&self.pod), decode).await?;
        let (of_pod, of_claims) = (self.volumes_of_pod(), self.find_claims().await?);
        let in_memory = memory_of(&self.pod.metadata.uid);
        let places = Places { of_pod: &of_pod, of_claims: &of_claims, in_memory: in_memory.as_deref() };
        let no_token = |why| not_mounted(format!("no token for the pod: {why}"));
        self.add_tokens(&mut sources).map_err(no_token)?;
        Ok(volumes::desired(&self.pod, places, &self.facts(), &sources))
    }

    /// The directories of the claims that the pod's volumes name, by the claims' names; not of those that do not exist.
    async fn find_claims(&self) -> Result<BTreeMap<String, PathBuf>, Problem> {
        let mut found = BTreeMap::new();
        for claim in self.pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref())
        {
            let key = Key::new(&self.pod.metadata.namespace, &claim.claim_name);
            let directory = self.shared.claims.find(self.shared.client.as_ref(), &key).await;
            let unknown = |error: ClientError| not_mounted(error.to_string());
            found.extend(directory.map_err(unknown)?.map(|directory| (claim.claim_name.clone(), directory)));
        }
        Ok(found)
    }

    /// Adds the tokens of the pod's account that its volumes ask for.
    fn add_tokens(&self, sources: &mut Sources) -> Result<(), String> {
        let Some(access) = &self.shared.access else { return Ok(()) };
        for wanted in references::tokens_of_volumes(&self.pod) {
            sources.insert_token(wanted.clone(), access.token(&self.pod, wanted)?);
        }
        Ok(())
    }

    /// How to start one of the pod's containers.
    pub(crate) async fn launch(&self, id: ContainerId, backoff_seconds: u32) -> Result<Launch, Problem> {
        let container =
            self.pod.all_containers().find(|container| container.name == id.name).ok_or_else(|| Problem {
                reason: "CreateContainerError",
                message: format!("the pod has no container {:?}", id.name),
            })?;
        let sources = self.fetch(references::of_environment(container), decode_text).await?;
        let facts = Facts { way_to_server: self.way_to_server().await, ..self.facts() };
        let variables = variables(&self.pod, container, &facts, &sources)?;
        let container = &*with_sub_paths(container, &variables)?;
        let mut argv = command_line(container, &variables);
        if argv.is_empty() && self.pod.is_ephemeral(&id.name) && (container.stdin || container.tty) {
            // Whoever adds a container to talk to it expects what its image would run.
            argv.push("sh".to_owned());
        }
        let working_dir = match container.working_dir.as_str() {
            "" => self.shared.config.workdir.clone(),
            named => self.shared.config.workdir.join(named),
        };
        let sandbox = self.sandbox(container, &working_dir).await?;
        let own = rustix::process::geteuid().as_raw();
        let holds = sandbox.as_ref().is_some_and(|sandbox| sandbox.identity.is_some());
        if let Some(message) = self.pod.refuses_root(container, own, holds) {
            return Err(Problem { reason: "CreateContainerConfigError", message });
        }
        // Its real place may be covered where the container sees something else.
        let message_at = sandbox.as_ref().and_then(|sandbox| sandbox.message_at.clone());
        let message = message_at.unwrap_or_else(|| id.message_path(&self.shared.config.root));
        let mut env = self.environment(container, &message);
        env.extend(variables);
        Ok(Launch {
            sandbox,
            id,
            argv,
            env: env.into_iter().collect(),
            working_dir,
            limits: limits(container),
            stdin: container.stdin,
            stop_signal: container.lifecycle.stop_signal.clone(),
            tty: container.tty,
            explains_by_log: container.termination_message_policy == "FallbackToLogsOnError",
            open_files: self.shared.config.open_files,
            address: Some(self.address),
            backoff_seconds,
            grace_seconds: self.pod.grace_seconds(),
        })
    }

    /// Remembers what a container is started with, if that may be something else when it is looked up again.
    pub(super) fn remember(&self, launch: &Launch) {
        let container = self.pod.all_containers().find(|container| container.name == launch.id.name);
        if container.is_some_and(references::may_change) {
            self.shared.pods.remember(&launch.id, launch.clone().into());
        }
    }

    /// What a container sees: as it was started, also if that would be started differently by now.
    pub(crate) async fn surroundings(&self, id: &ContainerId) -> Result<Arc<Surroundings>, Problem> {
        match self.shared.pods.surroundings(id) {
            Some(seen) => Ok(seen),
            None => Ok(Arc::new(self.launch(id.clone(), 0).await?.into())),
        }
    }

    /// What programs in pods look for to find Services and the API server.
    async fn way_to_server(&self) -> BTreeMap<String, String> {
        let is_linked = self.pod.spec.enable_service_links != Some(false);
        let links = &self.shared.links;
        let mut found =
            if is_linked { links.variables(&self.pod.metadata.namespace) } else { BTreeMap::new() };
        let Some(access) = &self.shared.access else { return found };
        let address = access.address().await;
        self.shared.hosts.set_server(access.address_by_name());
        let port = address.port().to_string();
        let variables = [
            ("KUBERNETES_SERVICE_HOST", address.ip().to_string()),
            ("KUBERNETES_SERVICE_PORT", port.clone()),
            ("KUBERNETES_SERVICE_PORT_HTTPS", port),
        ];
        found.extend(variables.map(|(name, value)| (name.to_owned(), value)));
        found
    }

    /// What the process inherits from krafla, and then what it is told of its pod. What the manifest says comes
    /// after it.
    fn environment(&self, container: &Container, message: &Path) -> BTreeMap<String, String> {
        let mut environment: BTreeMap<_, _> = self.shared.config.env.iter().cloned().collect();
        environment.insert("HOSTNAME".to_owned(), self.pod.kernel_hostname().into_owned());
        environment.insert("KRAFLA_TERMINATION_MESSAGE".to_owned(), message.display().to_string());
        for mount in &container.volume_mounts {
            if let Some(path) = self.source_of(mount) {
                environment.insert(volume_variable(&mount.name), path.display().to_string());
            }
        }
        environment
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.shared.config.pods().join(&*self.pod.metadata.uid.0)
    }

    pub(super) fn volumes_of_pod(&self) -> PathBuf {
        self.directory().join("volumes")
    }

    fn facts(&self) -> Facts {
        Facts {
            node_name: self.shared.config.name.clone(),
            host_ip: HOST.to_string(),
            pod_ip: self.address.to_string(),
            allocatable: self.shared.capacity.clone(),
            way_to_server: BTreeMap::new(),
        }
    }

    async fn fetch(
        &self,
        references: BTreeSet<Reference>,
        decode: fn(Kind, &[u8]) -> serde_json::Result<Data>,
    ) -> Result<Sources, Problem> {
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
                message: format!("cannot read {} {name:?}: {error}", kind.info().singular),
            })?;
            sources.insert((kind, name), data);
        }
        Ok(sources)
    }
}

fn not_mounted(message: String) -> Problem {
    Problem { reason: NO_VOLUMES, message }
}

fn lacks(missing: Missing) -> Problem {
    not_mounted(format!("cannot create a volume: {missing}"))
}

/// Writes volumes, up to the first that can not be.
async fn write(volumes: Vec<Desired>) -> Result<(), Problem> {
    let write = move || {
        volumes.iter().try_for_each(|volume| {
            volumes::write(volume).map_err(|error| format!("cannot create volume {:?}: {error}", volume.name))
        })
    };
    let outcome = tokio::task::spawn_blocking(write).await;
    outcome.unwrap_or_else(|error| Err(error.to_string())).map_err(not_mounted)
}

/// A container in whose mounts each `subPathExpr` has become a `subPath`, which stays in its volume.
fn with_sub_paths<'a>(
    container: &'a Container,
    variables: &BTreeMap<String, String>,
) -> Result<Cow<'a, Container>, Problem> {
    let mut container = Cow::Borrowed(container);
    for index in 0..container.volume_mounts.len() {
        let Some(mount) = container.volume_mounts.get(index) else { continue };
        let (field, sub_path) = match mount.sub_path_expr.as_str() {
            "" => ("subPath", mount.sub_path.clone()),
            expression => {
                let undefined = |name| Problem {
                    reason: "CreateContainerConfigError",
                    message: format!(
                        "subPathExpr {expression:?} of volume {:?}: the container has no variable {name:?}",
                        mount.name
                    ),
                };
                ("subPathExpr", expand_all(expression, variables).map_err(undefined)?)
            }
        };
        let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(&sub_path).components().all(stays) {
            let message = format!("{field} {sub_path:?} leads out of volume {:?}", mount.name);
            return Err(Problem { reason: "CreateContainerConfigError", message });
        }
        if sub_path != mount.sub_path
            && let Some(mount) = container.to_mut().volume_mounts.get_mut(index)
        {
            mount.sub_path = sub_path;
        }
    }
    Ok(container)
}

fn limits(container: &Container) -> Limits {
    let limit = |name: &str| container.resources.limits.get(name).filter(|limit| !limit.is_zero());
    let whole = |amount: i64| u64::try_from(amount).ok();
    Limits {
        memory_bytes: limit("memory").and_then(|limit| whole(limit.value())),
        cpu_milli: limit("cpu").and_then(|limit| whole(limit.milli_value())),
    }
}

/// `KRAFLA_VOLUME_DATA_1` for `data-1`.
pub(super) fn volume_variable(name: &str) -> String {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    format!("KRAFLA_VOLUME_{}", letters.collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_of_a_volume_may_be_named_by_variables_and_stays_in_it() {
        let of = |mount: serde_json::Value| {
            let container = serde_json::from_value(json!({"name": "main", "volumeMounts": [mount]})).unwrap();
            let variables = [("POD", "p"), ("UP", "../up"), ("ROOT", "/etc")];
            let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            match with_sub_paths(&container, &variables) {
                Ok(container) => container.volume_mounts[0].sub_path.clone(),
                Err(problem) => format!("{}: {}", problem.reason, problem.message),
            }
        };
        assert_eq!(of(json!({"name": "v"})), "");
        assert_eq!(of(json!({"name": "v", "subPath": "a/$(POD)"})), "a/$(POD)");
        assert_eq!(of(json!({"name": "v", "subPath": "./data"})), "./data");
        assert_eq!(of(json!({"name": "v", "subPathExpr": "a/$(POD)/$$(POD)"})), "a/p/$(POD)");
        assert_eq!(
            of(json!({"name": "v", "subPathExpr": "a/$(NONE)"})),
            "CreateContainerConfigError: subPathExpr \"a/$(NONE)\" of volume \"v\": the container has no variable \"NONE\""
        );
        assert_eq!(
            of(json!({"name": "v", "subPathExpr": "a/$(UP)"})),
            "CreateContainerConfigError: subPathExpr \"a/../up\" leads out of volume \"v\""
        );
        for out in [json!({"name": "v", "subPathExpr": "$(ROOT)"}), json!({"name": "v", "subPath": "../x"})] {
            assert!(of(out).ends_with("leads out of volume \"v\""));
        }
    }
}
