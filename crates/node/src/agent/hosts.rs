//! The names by which pods find each other: hosts files, which stand in place of `/etc/hosts` in pods that see something of their own.
//!
//! On a cluster a name server answers for headless Services and for pods with a subdomain. Here the same names stand in one file for all
//! pods of a namespace. It is rewritten in its place when something changes, so that all of them see it at once. A pod finds its own
//! name there too; only one whose host name others may have as well, or that has names for others (`hostAliases`), has a file of its
//! own. In that stands all that is in the other too, so where there are many such pods this costs as much as their number squared.
//!
//! **Invariant:** nothing is read, computed or written for pods that see what the machine sees, as most do under `krafla run`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use krafla_api::batch::{COMPLETION_INDEX, JOB_NAME};
use krafla_api::{Key, Uid};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::pods::Pods;
use super::services::Service;
use crate::container::is_file_name;
use crate::pod::Pod;

/// How long the files rest after they were brought up to date: so many times as long as that took, and at least so long.
const REST_FACTOR: u32 = 10;
const REST_LEAST: Duration = Duration::from_millis(20);

/// The hosts files.
pub(crate) struct Hosts {
    directory: PathBuf,
    state: Mutex<State>,
    /// Locked while files are written, so that the newest content is the last written.
    written: Mutex<Written>,
    /// Where the API server is, if it is where its name leads.
    server: OnceLock<Option<IpAddr>>,
    news: Notify,
}

#[derive(Default)]
struct State {
    /// The pods that have a view of their own: those for whom files are kept.
    readers: BTreeMap<Uid, Arc<Pod>>,
    /// Headless Services with a selector.
    services: BTreeMap<Key, Service>,
}

/// What stands in the files (as a hash: it is long), and which pods stand there with their own names.
#[derive(Default)]
struct Written {
    files: BTreeMap<String, u64>,
    pods: BTreeSet<Uid>,
    server: Option<IpAddr>,
}

impl Written {
    /// Whether a pod stands in its file, and the server does. It may be known before the file is kept for it.
    fn has(&self, file: &str, pod: &Uid, server: Option<IpAddr>) -> bool {
        self.files.contains_key(file) && self.pods.contains(pod) && self.server == server
    }
}

/// The same, before it is written.
#[derive(Default)]
struct Desired {
    files: BTreeMap<String, String>,
    pods: BTreeSet<Uid>,
    server: Option<IpAddr>,
}

/// A pod that is there, and its address.
pub(crate) type Present = (Arc<Pod>, Ipv4Addr);

impl Hosts {
    pub(crate) fn new(directory: PathBuf) -> Hosts {
        Hosts {
            directory,
            state: Mutex::default(),
            written: Mutex::default(),
            server: OnceLock::new(),
            news: Notify::new(),
        }
    }

    /// A pod has come or has changed.
    pub(crate) fn changed(&self, pod: &Arc<Pod>) {
        if has_view(pod) && is_file_name(&pod.metadata.namespace) && is_file_name(&pod.metadata.uid.0) {
            self.state.lock().readers.insert(pod.metadata.uid.clone(), pod.clone());
        }
        self.tell();
    }

    /// A pod is no more.
    pub(crate) fn gone(&self, pod: &Pod) {
        self.state.lock().readers.remove(&pod.metadata.uid);
        // The last reader's file goes too.
        self.news.notify_one();
    }

    /// Something has changed that may stand in the files.
    pub(crate) fn tell(&self) {
        if !self.state.lock().readers.is_empty() {
            self.news.notify_one();
        }
    }

    /// All Services there are.
    pub(crate) fn set_services(&self, services: BTreeMap<Key, Service>) {
        self.state.lock().services = services;
        self.tell();
    }

    /// A Service has come, has changed, or is no more or of no interest.
    pub(crate) fn set_service(&self, key: Key, service: Option<Service>) {
        let services = &mut self.state.lock().services;
        match service {
            Some(service) => drop(services.insert(key, service)),
            None => drop(services.remove(&key)),
        }
        self.news.notify_one();
    }

    /// Where the API server is. Programs that look for it by its name do so at the port of HTTPS.
    pub(crate) fn set_server(&self, server: Option<IpAddr>) {
        if self.server.set(server).is_ok() {
            self.tell();
        }
    }

    /// Keeps the files up to date, until the future is dropped. What changes at the same time is written together.
    pub(crate) async fn run(&self, pods: &Pods) {
        loop {
            self.news.notified().await;
            let begun_at = Instant::now();
            if let Err(error) = self.update(pods) {
                tracing::warn!(%error, "cannot write hosts files");
            }
            tokio::time::sleep(begun_at.elapsed().saturating_mul(REST_FACTOR).max(REST_LEAST)).await;
        }
    }

    /// Removes files that nobody reads: the last pod went while no node was running.
    pub(crate) fn remove_orphans(&self) {
        let files: BTreeSet<_> = self.state.lock().readers.values().map(|pod| file_of(pod)).collect();
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        for entry in
            entries.filter(|entry| !entry.file_name().to_str().is_some_and(|name| files.contains(name)))
        {
            if let Err(error) = fs::remove_file(entry.path()) {
                tracing::warn!(%error, "cannot remove the hosts file of deleted pods");
            }
        }
    }

    /// The file of a pod that is about to start, in which it stands itself.
    pub(crate) fn file_of(&self, pod: &Arc<Pod>, pods: &Pods) -> io::Result<PathBuf> {
        let file = file_of(pod);
        let (pod_uid, server) = (&pod.metadata.uid, self.server.get().copied().flatten());
        if !self.written.lock().has(&file, pod_uid, server) {
            self.changed(pod);
            self.update(pods)?;
        }
        Ok(self.directory.join(file))
    }

    /// Writes what is not as it should be.
    fn update(&self, pods: &Pods) -> io::Result<()> {
        let mut written = self.written.lock();
        let desired = self.desired(pods);
        let old: Vec<String> =
            written.files.keys().filter(|name| !desired.files.contains_key(*name)).cloned().collect();
        for name in old {
            let removed = fs::remove_file(self.directory.join(&name));
            removed
                .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
            written.files.remove(&name);
        }
        for (name, text) in desired.files {
            let hash = hash_of(&text);
            if written.files.get(&name) != Some(&hash) {
                fs::create_dir_all(&self.directory)?;
                write_in_place(&self.directory.join(&name), text.as_bytes())?;
                written.files.insert(name, hash);
            }
        }
        (written.pods, written.server) = (desired.pods, desired.server);
        Ok(())
    }

    fn desired(&self, pods: &Pods) -> Desired {
        let state = self.state.lock();
        if state.readers.is_empty() {
            return Desired::default();
        }
        let machine = fs::read_to_string("/etc/hosts").unwrap_or_default();
        let server = self.server.get().copied().flatten();
        // Nobody answers any more where a pod was that has ended.
        let pods: Vec<_> =
            pods.present().into_iter().filter(|(pod, _)| !pod.status.phase.is_finished()).collect();
        let names = Names { machine: &machine, server, services: &state.services, pods: &pods };
        let mut of_namespace: BTreeMap<&str, String> = BTreeMap::new();
        let mut desired = Desired { server, ..Desired::default() };
        for pod in state.readers.values() {
            let shared = of_namespace
                .entry(&pod.metadata.namespace)
                .or_insert_with(|| names.of_namespace(&pod.metadata.namespace));
            desired.files.entry(file_of(pod)).or_insert_with(|| names.of_pod(pod, shared));
        }
        desired.pods = names.pods.iter().map(|(pod, _)| pod.metadata.uid.clone()).collect();
        desired
    }
}

/// Whether a pod's containers see something else than the machine does.
pub(super) fn has_view(pod: &Pod) -> bool {
    pod.has_names() || pod.all_containers().any(|container| !container.volume_mounts.is_empty())
}

/// Whether only this pod may find itself under its host name, or only it knows some names.
fn has_own_file(pod: &Pod) -> bool {
    let is_for_all = pod.hostname() == pod.metadata.name || is_named_by_index(pod);
    !is_for_all || pod.kernel_hostname() != pod.hostname() || !pod.spec.host_aliases.is_empty()
}

/// Whether a pod of a subdomain has the host name of its index of a Job: no other pod has that, and there may be thousands.
fn is_named_by_index(pod: &Pod) -> bool {
    let [job, index] = [JOB_NAME, COMPLETION_INDEX].map(|label| pod.metadata.labels.get(label));
    let name = job.zip(index).map(|(job, index)| format!("{job}-{index}"));
    !pod.spec.subdomain.is_empty() && name.as_deref() == Some(pod.hostname())
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The name of a pod's file. A namespace contains no dot.
fn file_of(pod: &Pod) -> String {
    let (namespace, uid) = (&pod.metadata.namespace, &pod.metadata.uid);
    if has_own_file(pod) { format!("{namespace}.{uid}") } else { namespace.clone() }
}

/// Not by renaming: who has mounted the file would go on seeing the old one.
fn write_in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().create(true).write(true).truncate(false).open(path)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

/// All that names are made of.
struct Names<'a> {
    machine: &'a str,
    server: Option<IpAddr>,
    services: &'a BTreeMap<Key, Service>,
    pods: &'a [Present],
}

impl Names<'_> {
    /// What all pods of a namespace know: what the machine knows already, then each pod by all its names, then Services with the
    /// addresses of their pods. Of other namespaces they know what is named with its namespace.
    fn of_namespace(&self, namespace: &str) -> String {
        let mut text = format!("{}\n\n# Pods and services of {namespace}\n", self.machine.trim_end());
        // Writing to a string can not fail.
        let staying: BTreeSet<_> = self.pods.iter().filter(|(pod, _)| stays(pod)).map(own_name).collect();
        // One that is being deleted leaves its name to the one that is there in its place.
        let is_replaced = |present: &Present| !stays(&present.0) && staying.contains(&own_name(present));
        for (pod, address) in self.pods.iter().filter(|present| !is_replaced(present)) {
            let (hostname, subdomain) = (pod.hostname(), &pod.spec.subdomain);
            let is_near = pod.metadata.namespace == namespace;
            if !subdomain.is_empty() {
                let long = names(&format!("{hostname}.{subdomain}"), &pod.metadata.namespace, is_near);
                let bare = if is_near { hostname } else { "" };
                let _ = writeln!(text, "{}", format!("{address}\t{long}\t{bare}").trim_end());
            } else if is_near && has_view(pod) && !has_own_file(pod) {
                let _ = writeln!(text, "{address}\t{hostname}");
            }
        }
        for (key, service) in self.services {
            let members = self.pods.iter().filter(|(pod, _)| service.has(key, pod));
            self.add_service(&mut text, namespace, (&key.namespace, &key.name), members);
        }
        for ((of, subdomain), members) in self.subdomains() {
            self.add_service(&mut text, namespace, (of, subdomain), members.into_iter());
        }
        if let Some(server) = self.server {
            let _ = writeln!(text, "{server}\t{}", names("kubernetes", "default", namespace == "default"));
        }
        text
    }

    /// What a pod knows: the same, and before it its own name and what it alone has names for.
    fn of_pod(&self, pod: &Pod, shared: &str) -> String {
        if !has_own_file(pod) {
            return shared.to_owned();
        }
        let mut text = String::new();
        let own = self.pods.iter().find(|(known, _)| known.metadata.uid == pod.metadata.uid);
        if let Some((_, address)) = own {
            let _ = writeln!(text, "# This pod\n{address}\t{}", own_names(pod));
        }
        if !pod.spec.host_aliases.is_empty() {
            let _ = writeln!(text, "# Entries added by HostAliases.");
        }
        for alias in &pod.spec.host_aliases {
            let _ = writeln!(text, "{}\t{}", alias.ip, alias.hostnames.join("\t"));
        }
        text + "\n" + shared
    }

    /// Pods by the subdomain that they name, where there is no Service of that name: here they need none to be found.
    fn subdomains(&self) -> BTreeMap<(&str, &str), Vec<&Present>> {
        let mut subdomains: BTreeMap<(&str, &str), Vec<&Present>> = BTreeMap::new();
        for present in self.pods {
            let (namespace, subdomain) = (&*present.0.metadata.namespace, &*present.0.spec.subdomain);
            if !subdomain.is_empty() && !self.services.contains_key(&Key::new(namespace, subdomain)) {
                subdomains.entry((namespace, subdomain)).or_default().push(present);
            }
        }
        subdomains
    }

    fn add_service<'b>(
        &self,
        text: &mut String,
        namespace: &str,
        (of, name): (&str, &str),
        members: impl Iterator<Item = &'b Present>,
    ) {
        let names = names(name, of, of == namespace);
        for (_, address) in members {
            let _ = writeln!(text, "{address}\t{names}");
        }
    }
}

/// What a pod calls itself. One that has its name with its domain has it without, too.
fn own_names(pod: &Pod) -> String {
    let (known, short) = (pod.kernel_hostname(), pod.hostname());
    let has_both = pod.spec.hostname_override.is_none() && known != short;
    if has_both { format!("{known}\t{short}") } else { known.into_owned() }
}

fn stays(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}

/// What a pod of a subdomain is called.
fn own_name((pod, _): &Present) -> (&str, &str, &str) {
    (&pod.metadata.namespace, &pod.spec.subdomain, pod.hostname())
}

/// The names under which cluster DNS and its search path know something. The first is the canonical one; the last is for those who are
/// in the same namespace.
fn names(short: &str, namespace: &str, is_near: bool) -> String {
    let mut names =
        format!("{short}.{namespace}.svc.cluster.local {short}.{namespace}.svc {short}.{namespace}");
    if is_near {
        names.push(' ');
        names.push_str(short);
    }
    names
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use futures_util::FutureExt;
    use krafla_api::Time;
    use serde_json::{Value, json};

    use super::super::addresses::Addresses;
    use super::super::services;
    use super::*;
    use crate::status::Phase;

    fn pod(namespace: &str, name: &str, spec: Value) -> Arc<Pod> {
        let metadata = json!({
            "name": name, "namespace": namespace, "uid": format!("uid-{name}"), "labels": {"app": "db"}
        });
        Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap())
    }

    fn ready(pod: &Arc<Pod>) -> Arc<Pod> {
        let mut pod = Pod::clone(pod);
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        pod.status = serde_json::from_value(status).unwrap();
        Arc::new(pod)
    }

    fn service(namespace: &str, name: &str, spec: Value) -> (Key, Service) {
        let service = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
        let (key, service) = services::read(service.to_string().as_bytes()).unwrap();
        (key, service.unwrap())
    }

    fn check(
        pods: &[Arc<Pod>],
        services: impl IntoIterator<Item = (Key, Service)>,
        namespace: &str,
        expected: Expect,
    ) {
        let addresses = (1..).map(|last| Ipv4Addr::new(127, 64, 0, last));
        let pods: Vec<_> = pods.iter().cloned().zip(addresses).collect();
        let (machine, services) = ("127.0.0.1\tlocalhost\n", services.into_iter().collect());
        let names = Names { machine, server: None, services: &services, pods: &pods };
        expected.assert_eq(&names.of_namespace(namespace));
    }

    #[test]
    fn pods_of_a_subdomain_know_each_other_by_their_names_on_a_cluster() {
        let worker = pod("default", "mpi-worker-0", json!({"subdomain": "mpi"}));
        check(
            std::slice::from_ref(&worker),
            [],
            "default",
            expect![[r#"
            127.0.0.1	localhost

            # Pods and services of default
            127.64.0.1	mpi-worker-0.mpi.default.svc.cluster.local mpi-worker-0.mpi.default.svc mpi-worker-0.mpi.default mpi-worker-0.mpi	mpi-worker-0
            127.64.0.1	mpi.default.svc.cluster.local mpi.default.svc mpi.default mpi
        "#]],
        );
        check(
            &[worker],
            [],
            "other",
            expect![[r#"
            127.0.0.1	localhost

            # Pods and services of other
            127.64.0.1	mpi-worker-0.mpi.default.svc.cluster.local mpi-worker-0.mpi.default.svc mpi-worker-0.mpi.default
            127.64.0.1	mpi.default.svc.cluster.local mpi.default.svc mpi.default
        "#]],
        );
    }

    #[test]
    fn a_headless_service_has_the_addresses_of_its_ready_pods() {
        let (waits, serves) = (pod("default", "a", json!({})), ready(&pod("default", "b", json!({}))));
        let elsewhere = ready(&pod("other", "c", json!({})));
        let pods = [waits, serves, elsewhere];
        let selector = json!({"app": "db"});
        let only_ready = service("default", "db", json!({"clusterIP": "None", "selector": selector}));
        check(
            &pods,
            [only_ready],
            "default",
            expect![[r#"
            127.0.0.1	localhost

            # Pods and services of default
            127.64.0.2	db.default.svc.cluster.local db.default.svc db.default db
        "#]],
        );
        let all = json!({"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": true});
        check(
            &pods,
            [service("default", "db", all)],
            "other",
            expect![[r#"
            127.0.0.1	localhost

            # Pods and services of other
            127.64.0.1	db.default.svc.cluster.local db.default.svc db.default
            127.64.0.2	db.default.svc.cluster.local db.default.svc db.default
        "#]],
        );
    }

    #[test]
    fn a_pod_with_a_view_finds_itself() {
        let mounts = json!([{"name": "v", "mountPath": "/v"}]);
        let with_view =
            pod("default", "a", json!({"containers": [{"name": "main", "volumeMounts": mounts}]}));
        let plain = pod("default", "b", json!({"containers": [{"name": "main"}]}));
        check(
            &[with_view, plain],
            [],
            "default",
            expect![[r#"
            127.0.0.1	localhost

            # Pods and services of default
            127.64.0.1	a
        "#]],
        );
    }

    #[test]
    fn a_pod_that_has_names_of_its_own_has_a_file_of_its_own() {
        let aliases = json!([{"ip": "10.0.0.1", "hostnames": ["db", "db.example"]}]);
        let pod = pod("default", "a", json!({"hostname": "leader", "hostAliases": aliases}));
        let pods = [(pod.clone(), Ipv4Addr::new(127, 64, 0, 1))];
        let names = Names { machine: "", server: None, services: &BTreeMap::new(), pods: &pods };
        assert_eq!(file_of(&pod), "default.uid-a");
        expect![[r#"
            # This pod
            127.64.0.1	leader
            # Entries added by HostAliases.
            10.0.0.1	db	db.example

            shared
        "#]]
        .assert_eq(&names.of_pod(&pod, "shared\n"));
    }

    #[test]
    fn the_name_that_the_kernel_says_leads_to_the_pod_itself() {
        let own = |spec: Value| {
            let pod = pod("default", "a", spec);
            let pods = [(pod.clone(), Ipv4Addr::new(127, 64, 0, 1))];
            let names = Names { machine: "", server: None, services: &BTreeMap::new(), pods: &pods };
            let text = names.of_pod(&pod, "");
            (pod.kernel_hostname().into_owned(), text.lines().nth(1).unwrap_or_default().to_owned())
        };
        let line = |name: &str, line: &str| (name.to_owned(), line.to_owned());
        assert_eq!(
            own(json!({"hostnameOverride": "my.machine", "hostname": "h", "subdomain": "s"})),
            line("my.machine", "127.64.0.1\tmy.machine")
        );
        let full = "h.s.default.svc.cluster.local";
        assert_eq!(
            own(json!({"setHostnameAsFQDN": true, "hostname": "h", "subdomain": "s"})),
            line(full, &format!("127.64.0.1\t{full}\th"))
        );
        assert_eq!(own(json!({"setHostnameAsFQDN": true, "hostname": "h"})), line("h", "127.64.0.1\th"));
    }

    #[test]
    fn pods_of_an_indexed_job_share_one_file_in_which_each_finds_itself() {
        let of_index = |name: &str, is_deleted: bool| {
            let mut pod = Pod::clone(&pod("default", name, json!({"hostname": "job-0", "subdomain": "job"})));
            let labels = [(JOB_NAME, "job"), (COMPLETION_INDEX, "0")];
            pod.metadata.labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            pod.metadata.deletion_timestamp = is_deleted.then(|| Time::from_nanos(0));
            Arc::new(pod)
        };
        let (old, new) = (of_index("job-0-a", true), of_index("job-0-b", false));
        assert_eq!(file_of(&new), "default");
        check(
            &[old, new],
            [],
            "default",
            expect![[r#"
            127.0.0.1	localhost

            # Pods and services of default
            127.64.0.2	job-0.job.default.svc.cluster.local job-0.job.default.svc job-0.job.default job-0.job	job-0
            127.64.0.1	job.default.svc.cluster.local job.default.svc job.default job
            127.64.0.2	job.default.svc.cluster.local job.default.svc job.default job
        "#]],
        );
    }

    #[test]
    fn a_pod_that_starts_finds_the_server_though_its_file_was_written_before_that_was_known() {
        let directory = tempfile::tempdir().unwrap();
        let hosts = Hosts::new(directory.path().to_owned());
        let pods = Pods::new(Addresses::default());
        let here = pod("default", "here", json!({"subdomain": "s"}));
        pods.insert(here.clone());
        hosts.file_of(&here, &pods).unwrap();
        let told = || hosts.news.notified().now_or_never().is_some();
        assert!(told() && !told());
        hosts.set_server(Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert!(told(), "those that run already find it too");
        let file = fs::read_to_string(hosts.file_of(&here, &pods).unwrap()).unwrap();
        assert!(file.contains("127.0.0.1\tkubernetes.default.svc.cluster.local"), "{file}");
    }

    #[test]
    fn the_file_of_pods_that_went_is_removed_and_plain_pods_have_none() {
        let directory = tempfile::tempdir().unwrap();
        let hosts = Hosts::new(directory.path().to_owned());
        let pods = Pods::new(Addresses::default());
        let (here, plain) = (pod("default", "here", json!({"subdomain": "s"})), pod("plain", "p", json!({})));
        for pod in [&here, &plain] {
            pods.insert(pod.clone());
            hosts.changed(pod);
        }
        let stays = hosts.file_of(&here, &pods).unwrap();
        let orphan = directory.path().join("gone");
        fs::write(&orphan, "").unwrap();
        hosts.remove_orphans();
        let left: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [stays]);

        hosts.gone(&here);
        hosts.update(&pods).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }

    #[test]
    fn a_pod_that_was_known_before_its_file_was_asked_for_has_one() {
        let directory = tempfile::tempdir().unwrap();
        let hosts = Hosts::new(directory.path().to_owned());
        let pods = Pods::new(Addresses::default());
        let here = pod("default", "here", json!({"hostname": "leader"}));
        let there = pod("other", "there", json!({"subdomain": "s"}));
        pods.insert(there.clone());
        hosts.changed(&there);
        pods.insert(here.clone());
        // Somebody else's news, before this one's are told.
        hosts.update(&pods).unwrap();
        let file = fs::read_to_string(hosts.file_of(&here, &pods).unwrap()).unwrap();
        assert!(file.contains("leader"), "{file}");
    }

    #[test]
    fn a_pod_that_has_ended_is_not_found_any_more() {
        let directory = tempfile::tempdir().unwrap();
        let hosts = Hosts::new(directory.path().to_owned());
        let pods = Pods::new(Addresses::default());
        let worker = pod("default", "worker", json!({"subdomain": "job"}));
        let mut ended = Pod::clone(&pod("default", "ended", json!({"subdomain": "job"})));
        ended.status.phase = Phase::Succeeded;
        for pod in [&worker, &Arc::new(ended)] {
            pods.insert(pod.clone());
            hosts.changed(pod);
        }
        let file = fs::read_to_string(hosts.file_of(&worker, &pods).unwrap()).unwrap();
        assert!(file.contains("worker.job") && !file.contains("ended"), "{file}");
        assert_eq!(file.matches("job.default.svc ").count(), 2, "itself and the subdomain: {file}");
    }

    #[test]
    fn a_file_keeps_its_identity_when_it_changes() {
        use std::os::unix::fs::MetadataExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hosts");
        write_in_place(&path, b"a long first version").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        write_in_place(&path, b"short").unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), fs::metadata(&path).unwrap().ino()),
            ("short", inode)
        );
    }
}
