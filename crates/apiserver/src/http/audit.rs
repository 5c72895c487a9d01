//! The audit log: one line for every request, as `audit.k8s.io/v1` has it.
//!
//! Requests hand their lines to a thread and go on. If the disk is slower than requests come for so long that the queue is
//! full, lines are dropped and counted: a full disk must not stop a cluster.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use krafla_admission::rbac::{Decision, User};
use krafla_api::Time;
use krafla_schema::object;
use serde_json::{Value, json};

use super::request_info::RequestInfo;
use crate::status::Status;
use crate::users;

/// How many lines may wait for the disk.
const WAITING_MAX: usize = 10_000;
/// The default size limit of a file.
const MEGABYTES_DEFAULT: u64 = 100;
const MEGABYTE: u64 = 1024 * 1024;

/// Where the audit log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// The file; `-` for standard output.
    pub path: PathBuf,
    /// After how many megabytes a new file begins; 0 for 100.
    pub megabytes_max: u64,
    /// How many older files are kept; 0 for all.
    pub backups_max: usize,
}

/// The audit log.
pub(super) struct Audit {
    lines: SyncSender<String>,
    n_dropped: AtomicU64,
}

/// What is known of a request beside the request itself.
#[derive(Default)]
pub(super) struct Trace {
    /// Who asks.
    pub user: Option<Arc<User>>,
    /// As whom.
    pub acts_as: Option<Arc<User>>,
    /// What roles say about it.
    pub decision: Option<Decision>,
}

/// A request as it came.
pub(super) struct Received {
    pub id: String,
    pub at: Time,
    pub uri: String,
    pub info: RequestInfo,
    pub user_agent: String,
    pub address: Option<std::net::SocketAddr>,
    /// Whether the answer goes on after its first byte.
    pub is_long_running: bool,
}

impl Audit {
    /// Opens the log.
    pub(super) fn open(config: &AuditConfig) -> io::Result<Audit> {
        let (lines, received) = sync_channel(WAITING_MAX);
        let sink = if config.path == Path::new("-") {
            Sink::Output
        } else {
            Sink::Files(Files::open(config.clone())?)
        };
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || write_all(&received, sink))?;
        Ok(Audit { lines, n_dropped: AtomicU64::new(0) })
    }

    /// Notes an answered request.
    pub(super) fn note(&self, received: &Received, trace: &Trace, answer: Answered<'_>, now: Time) {
        let line = event(received, trace, answer, now).to_string();
        if let Err(TrySendError::Full(_)) = self.lines.try_send(line) {
            let n_dropped = self.n_dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if n_dropped.is_power_of_two() {
                tracing::error!(n_dropped, "the audit log is slower than requests come; events are dropped");
            }
        }
    }
}

/// How a request was answered.
#[derive(Clone, Copy)]
pub(super) struct Answered<'a> {
    pub code: u16,
    /// What was said, if it was no.
    pub status: Option<&'a Status>,
}

/// The event of an answered request, at the level Metadata.
fn event(received: &Received, trace: &Trace, answer: Answered<'_>, now: Time) -> Value {
    let Received { id, at, uri, info, user_agent, address, is_long_running } = received;
    let stage = if *is_long_running { "ResponseStarted" } else { "ResponseComplete" };
    let mut event = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": id, "stage": stage,
        "requestURI": uri, "verb": info.verb,
        "user": trace.user.as_deref().map_or_else(|| json!({}), |user| users::to_json(Some(user))),
        "responseStatus": response_status(answer),
        "requestReceivedTimestamp": at.to_micro_string(), "stageTimestamp": now.to_micro_string(),
    });
    if let Some(user) = &trace.acts_as {
        object::set(&mut event, "impersonatedUser", users::to_json(Some(user)));
    }
    if let Some(address) = address {
        object::set(&mut event, "sourceIPs", json!([address.ip().to_string()]));
    }
    if !user_agent.is_empty() {
        object::set(&mut event, "userAgent", user_agent.as_str());
    }
    if info.is_resource {
        object::set(&mut event, "objectRef", object_ref(info));
    }
    if let Some(Decision { allowed, reason }) = &trace.decision {
        let decision = if *allowed { "allow" } else { "forbid" };
        let annotations =
            json!({"authorization.k8s.io/decision": decision, "authorization.k8s.io/reason": reason});
        object::set(&mut event, "annotations", annotations);
    }
    event
}

fn object_ref(info: &RequestInfo) -> Value {
    let fields = [
        ("resource", &info.resource),
        ("namespace", &info.namespace),
        ("name", &info.name),
        ("apiGroup", &info.group),
        ("apiVersion", &info.version),
        ("subresource", &info.subresource),
    ];
    let fields = fields.into_iter().filter(|(_, text)| !text.is_empty());
    Value::Object(fields.map(|(name, text)| (name.to_owned(), text.as_str().into())).collect())
}

fn response_status(answer: Answered<'_>) -> Value {
    let mut status = answer.status.map_or_else(|| json!({"metadata": {}}), Status::to_json);
    if let Some(fields) = status.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
        fields.insert("code".to_owned(), answer.code.into());
    }
    status
}

/// Writes lines until the channel is closed.
fn write_all(lines: &Receiver<String>, mut sink: Sink) {
    let mut has_failed = false;
    while let Ok(line) = lines.recv() {
        let written = match &mut sink {
            Sink::Output => writeln!(io::stdout().lock(), "{line}"),
            Sink::Files(files) => {
                files.write(&line, || jiff::Timestamp::now().strftime("%Y-%m-%dT%H-%M-%S%.3f").to_string())
            }
        };
        match written {
            Ok(()) => has_failed = false,
            Err(error) if !has_failed => {
                tracing::error!(%error, "cannot write the audit log");
                has_failed = true;
            }
            Err(_) => {}
        }
    }
}

enum Sink {
    Output,
    Files(Files),
}

/// A file, and the older ones beside it.
struct Files {
    config: AuditConfig,
    file: File,
    n_bytes: u64,
}

impl Files {
    fn open(config: AuditConfig) -> io::Result<Files> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&config.path)?;
        let n_bytes = file.metadata()?.len();
        Ok(Files { config, file, n_bytes })
    }

    fn write(&mut self, line: &str, now: impl FnOnce() -> String) -> io::Result<()> {
        let n_bytes = u64::try_from(line.len()).unwrap_or(u64::MAX).saturating_add(1);
        let megabytes =
            if self.config.megabytes_max == 0 { MEGABYTES_DEFAULT } else { self.config.megabytes_max };
        let bytes_max = megabytes.saturating_mul(MEGABYTE);
        if self.n_bytes > 0 && self.n_bytes.saturating_add(n_bytes) > bytes_max {
            self.rotate(&now())?;
        }
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
        Ok(())
    }

    /// Puts the file aside under a name with the time, begins another, and removes the oldest.
    fn rotate(&mut self, now: &str) -> io::Result<()> {
        let path = self.config.path.clone();
        std::fs::rename(&path, with_suffix(&path, now))?;
        *self = Files::open(self.config.clone())?;
        if self.config.backups_max > 0 {
            let mut older = backups(&path)?;
            older.sort();
            let n_more = older.len().saturating_sub(self.config.backups_max);
            for oldest in older.into_iter().take(n_more) {
                std::fs::remove_file(oldest)?;
            }
        }
        Ok(())
    }
}

/// `dir/audit-TIME.log` of `dir/audit.log`.
fn with_suffix(path: &Path, time: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().map(|of| format!(".{}", of.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{time}{extension}"))
}

/// The files that were put aside.
fn backups(path: &Path) -> io::Result<Vec<PathBuf>> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stem = format!("{}-", path.file_stem().unwrap_or_default().to_string_lossy());
    let is_backup = |candidate: &Path| {
        let name = candidate.file_stem().unwrap_or_default().to_string_lossy();
        let rest = name.strip_prefix(&stem);
        let is_time = rest.is_some_and(|rest| rest.len() == "2006-01-02T15-04-05.000".len());
        is_time && candidate.extension() == path.extension()
    };
    let entries = std::fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.into_iter().map(|entry| entry.path()).filter(|path| is_backup(path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(dir: &Path, backups_max: usize) -> Files {
        let path = dir.join("audit.log");
        Files::open(AuditConfig { path, megabytes_max: 1, backups_max }).unwrap()
    }

    #[test]
    fn a_file_that_is_full_is_put_aside_and_the_oldest_go() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = files(dir.path(), 1);
        let line = "x".repeat(600 * 1024);
        for second in 0..4 {
            log.write(&line, || format!("2026-01-02T03-04-0{second}.000")).unwrap();
        }
        assert!(dir.path().join("audit-2026-01-02T03-04-03.000.log").exists());
        assert_eq!(backups(&dir.path().join("audit.log")).unwrap().len(), 1);
        assert_eq!(std::fs::metadata(dir.path().join("audit.log")).unwrap().len(), 600 * 1024 + 1);
    }

    #[test]
    fn an_event_says_who_asked_for_what_and_how_it_ended() {
        let query = super::super::query::Query::default();
        let info = RequestInfo::read(&http::Method::GET, "/api/v1/namespaces/n/pods/p/log", &query);
        let now = Time("2026-01-02T03:04:05Z".parse().unwrap());
        let received = Received {
            id: "1".to_owned(),
            at: now,
            uri: "/api/v1/namespaces/n/pods/p/log".to_owned(),
            info,
            user_agent: "kubectl/v1".to_owned(),
            address: Some(([127, 0, 0, 1], 5).into()),
            is_long_running: false,
        };
        let ann = Arc::new(User { name: "ann".to_owned(), ..User::default() });
        let decision = Some(Decision { allowed: false, reason: "why".to_owned() });
        let trace = Trace { user: Some(ann), acts_as: None, decision };
        let status = Status::unauthorized();
        let answer = Answered { code: 401, status: Some(&status) };
        assert_eq!(
            event(&received, &trace, answer, now),
            json!({
                "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "1",
                "stage": "ResponseComplete", "requestURI": "/api/v1/namespaces/n/pods/p/log", "verb": "get",
                "user": {"username": "ann"}, "sourceIPs": ["127.0.0.1"], "userAgent": "kubectl/v1",
                "objectRef": {
                    "resource": "pods", "namespace": "n", "name": "p", "apiVersion": "v1", "subresource": "log",
                },
                "responseStatus": {
                    "metadata": {}, "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
                },
                "requestReceivedTimestamp": "2026-01-02T03:04:05.000000Z",
                "stageTimestamp": "2026-01-02T03:04:05.000000Z",
                "annotations": {
                    "authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": "why",
                },
            })
        );
    }
}
