//! What a container sees differently from the rest of the machine: its volumes, and its peers' names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use krafla_api::Key;
use rustix::process::geteuid;

use super::launch::{Context, Problem, volume_variable};
use crate::container::is_file_name;
use crate::materials::volumes::Places;
use crate::pod::{Container, Pod, Volume, VolumeMount};
use crate::supervisor::stage::{Identity, Mount, Sandbox};
use crate::tree::memory_of;
use crate::within;

/// How the names of volumes begin that the server gives to pods by itself.
const ACCESS_VOLUME: &str = "kube-api-access-";

/// Where programs look for the names of others.
const HOSTS: &str = "/etc/hosts";

/// Where a container may write why it ended, if its manifest does not say.
const MESSAGE_AT: &str = "/dev/termination-log";

/// What stands in every warning of a container that runs without its mounts.
pub const NO_MOUNTS: &str = "because mounts are not possible";

impl Context {
    /// None if there is nothing to see, for a plain process starts faster, or if this machine does not allow
    /// it.
    pub(super) async fn sandbox(
        &self,
        container: &Container,
        working_dir: &Path,
    ) -> Result<Option<Sandbox>, Problem> {
        if !needs_sandbox(&self.pod, container)
            || self.shared.isolation.check(&self.shared.config).await.is_err()
        {
            return Ok(None);
        }
        let mut mounts = Vec::new();
        for mount in &container.volume_mounts {
            mounts.push(self.mount(mount).await?);
        }
        if !mounts.iter().any(|mount| mount.target == Path::new(HOSTS)) {
            let hosts = self.shared.hosts.file_of(&self.pod, &self.shared.pods);
            let source =
                hosts.map_err(|error| problem(format!("no hosts file for its peers' names: {error}")))?;
            let (part, target) = (PathBuf::new(), HOSTS.into());
            mounts.push(Mount { source, part, target, read_only: false, is_optional: false });
        }
        let scratch = self.directory().join("stage");
        make_directory(&scratch).await?;
        let message_at = match container.termination_message_path.as_str() {
            "" => PathBuf::from(MESSAGE_AT),
            path => PathBuf::from(path),
        };
        let is_taken = mounts.iter().any(|mount| mount.target == message_at);
        Ok(Some(Sandbox {
            mounts,
            message_at: Some(message_at).filter(|path| path.is_absolute() && !is_taken),
            hostname: self.pod.kernel_hostname().into_owned(),
            working_dir: working_dir.to_owned(),
            workdir: self.shared.config.workdir.clone(),
            scratch,
            cgroup: None,
            tty: false,
            identity: identity(&self.pod, container),
            open_files: None,
        }))
    }

    /// What a container does not see although its manifest says so, and where it is instead; none if it sees
    /// everything.
    pub(super) async fn shortcoming(&self, container: &str) -> Option<String> {
        let container = self.pod.all_containers().find(|known| known.name == container)?;
        if !needs_sandbox(&self.pod, container) {
            return None;
        }
        let why = self.shared.isolation.check(&self.shared.config).await.err()?;
        // What nobody asked for is not missed.
        let asked_for = container.volume_mounts.iter().filter(|mount| !mount.name.starts_with(ACCESS_VOLUME));
        let volumes = asked_for.map(|mount| {
            format!(
                "volume {:?} is not at {} but at ${}",
                mount.name,
                mount.mount_path,
                volume_variable(&mount.name)
            )
        });
        let spec = &self.pod.spec;
        let names = [
            (!spec.subdomain.is_empty(), "the host names of its peers are unknown"),
            (self.pod.asks_for_hostname(), "its host name is the machine's"),
            (!spec.host_aliases.is_empty(), "its hostAliases are unknown"),
        ];
        let names =
            names.iter().filter(|(is_asked_for, _)| *is_asked_for).map(|(_, lack)| (*lack).to_owned());
        let lacks: Vec<_> = volumes.chain(names).collect();
        if lacks.is_empty() {
            return None;
        }
        Some(format!("container {}: {}, {NO_MOUNTS}: {why}", container.name, lacks.join(", ")))
    }

    async fn mount(&self, mount: &VolumeMount) -> Result<Mount, Problem> {
        let volume = self.pod.spec.volumes.iter().find(|volume| volume.name == mount.name);
        let (Some(volume), Some(source)) = (volume, self.volume_of(mount)) else {
            return Err(problem(format!(
                "volumeMounts name volume {:?}, which the pod does not have",
                mount.name
            )));
        };
        let part = PathBuf::from(&mount.sub_path);
        if !mount.sub_path.is_empty() {
            // A part of a volume that is missing is made, as a kubelet does.
            let (volume, part) = (source.clone(), part.clone());
            let made = tokio::task::spawn_blocking(move || within::make(&volume, &part)).await;
            let made = made.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            made.map_err(|error| problem(format!("volume {:?}: {error}", mount.name)))?;
        }
        let read_only = mount.read_only || is_read_only(volume);
        // A path that is not absolute is meant from the root directory, as with a kubelet.
        let target = Path::new("/").join(&mount.mount_path);
        Ok(Mount { source, part, target, read_only, is_optional: false })
    }

    /// What is to be seen at a mountPath.
    pub(super) fn source_of(&self, mount: &VolumeMount) -> Option<PathBuf> {
        let volume = self.volume_of(mount)?;
        Some(if mount.sub_path.is_empty() { volume } else { volume.join(&mount.sub_path) })
    }

    /// Where a volume is of which a part may be mounted.
    fn volume_of(&self, mount: &VolumeMount) -> Option<PathBuf> {
        let volume = self.pod.spec.volumes.iter().find(|volume| volume.name == mount.name)?;
        let path = if let Some(host) = &volume.host_path {
            PathBuf::from(&host.path)
        } else if let Some(claim) = &volume.persistent_volume_claim {
            self.shared.claims.directory(&Key::new(&self.pod.metadata.namespace, &claim.claim_name))?
        } else if is_file_name(&mount.name) {
            let (of_pod, in_memory) = (self.volumes_of_pod(), memory_of(&self.pod.metadata.uid));
            let of_claims = BTreeMap::new();
            let places = Places { of_pod: &of_pod, of_claims: &of_claims, in_memory: in_memory.as_deref() };
            places.own(volume)
        } else {
            return None;
        };
        Some(path)
    }
}

fn needs_sandbox(pod: &Pod, container: &Container) -> bool {
    pod.has_names() || !container.volume_mounts.is_empty() || identity(pod, container).is_some()
}

/// Who a container is, if it asks to be somebody else and we can make it so.
fn identity(pod: &Pod, container: &Container) -> Option<Identity> {
    pod.identity(container).filter(|_| geteuid().is_root())
}

/// Volumes that are made of other objects are not for the container to change.
fn is_read_only(volume: &Volume) -> bool {
    let is_read_only_claim = volume.persistent_volume_claim.as_ref().is_some_and(|claim| claim.read_only);
    is_read_only_claim
        || volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.downward_api.is_some()
        || volume.projected.is_some()
}

async fn make_directory(path: &Path) -> Result<(), Problem> {
    tokio::fs::create_dir_all(path).await.map_err(|error| problem(format!("cannot create {path:?}: {error}")))
}

fn problem(message: String) -> Problem {
    Problem { reason: "CreateContainerError", message }
}
