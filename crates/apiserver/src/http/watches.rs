//! Watches over HTTP: one line of JSON per event, for as long as both sides want.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use krafla_schema::encode;
use krafla_schema::json::stored;
use krafla_schema::object;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::accept::{Accept, Encoding, Form};
use super::body::{self, Reply};
use super::query::Query;
use super::websocket::Upgrade;
use super::{Context, list_options, show, stopped};
use crate::codec;
use crate::ops::{Watch, WatchEvent, WatchOptions};
use crate::registry::Resource;
use crate::selector::Filter;
use crate::status::Status;
use crate::store::{Entry, EventType};
use crate::table::{self, Include};

/// How long a watch lasts that does not say.
const DURATION: Duration = Duration::from_secs(45 * 60);
/// The longest time that a watch can ask for: clocks do not count to the end of all numbers.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// How much is gathered before it is sent. Clients that do not read hold as much, each of them.
const CHUNK_BYTES: usize = 16 * 1024;
/// How often a watcher that wants to know hears that nothing happened.
const BOOKMARKS_EVERY: Duration = Duration::from_secs(60);
/// How long before its end a watch sends a last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// Answers with a watch.
pub(super) fn watch(
    context: &Context,
    resource: &Arc<Resource>,
    filter: Filter,
    accept: &Accept,
    query: &Query,
    upgrade: Upgrade,
) -> Result<Reply, Status> {
    if accept.encoding == Encoding::Yaml {
        return Err(Status::not_acceptable(
            "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
        ));
    }
    let options = WatchOptions {
        filter,
        revision: list_options::revision(query)?,
        send_initial: query.flag("sendInitialEvents"),
        is_from_now: query.choice("sendInitialEvents") == Some(false),
    };
    let has_bookmarks = query.flag("allowWatchBookmarks");
    let asked = query.number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
    let duration = asked.filter(|seconds| *seconds > 0).map_or(DURATION, duration_asked);
    let mut printer = Printer::new(context, resource.clone(), accept, query)?;
    // The messages of a WebSocket are texts.
    printer.is_protobuf &= !upgrade.is_asked();
    match context.api.watch_shown(resource, options) {
        Ok(watch) => {
            let media_type = printer.media_type();
            send(upgrade, media_type, lines(context, watch, printer, duration, has_bookmarks))
        }
        // The client asked well, but the history is gone: it is told in the stream, where it looks for it.
        Err(status) if status.code == 410 => {
            let (media_type, line) = (printer.media_type(), printer.error(&status));
            send(upgrade, media_type, futures_util::stream::once(async { line }))
        }
        Err(status) => Err(status),
    }
}

fn duration_asked(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(DURATION_MAX)
}

/// Sends events as the client wants to follow them.
fn send(
    upgrade: Upgrade,
    media_type: &'static str,
    lines: impl Stream<Item = Bytes> + Send + 'static,
) -> Result<Reply, Status> {
    if upgrade.is_asked() { upgrade.lines(lines) } else { Ok(body::stream(media_type, lines)) }
}

/// A watch on its way to a client.
struct Session {
    watch: Watch,
    printer: Printer,
    end: Instant,
    next_bookmark: Option<Instant>,
    has_bookmarks: bool,
    stopping: tokio::sync::watch::Receiver<bool>,
    /// A line that did not fit into the last chunk.
    next_line: Option<Bytes>,
    is_over: bool,
}

/// What woke the session up.
enum Woken {
    Event(Result<WatchEvent, Status>),
    Bookmark,
    End,
}

fn lines(
    context: &Context,
    watch: Watch,
    printer: Printer,
    duration: Duration,
    has_bookmarks: bool,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let now = Instant::now();
    let session = Session {
        watch,
        printer,
        end: now + duration,
        next_bookmark: has_bookmarks
            .then(|| now + BOOKMARKS_EVERY.min(duration.saturating_sub(LAST_BOOKMARK))),
        has_bookmarks,
        stopping: context.stopping.clone(),
        next_line: None,
        is_over: false,
    };
    futures_util::stream::unfold(session, |mut session| async move {
        let chunk = session.next_chunk().await?;
        Some((chunk, session))
    })
}

impl Session {
    /// Waits for something to say, and says all that there is to say at that moment. `None` ends the stream.
    async fn next_chunk(&mut self) -> Option<Bytes> {
        let first = self.first_line().await?;
        // A large line is shared by all watches that send it, so it must not be copied.
        if first.len() >= CHUNK_BYTES {
            return Some(first);
        }
        let mut chunk = BytesMut::from(&*first);
        while chunk.len() < CHUNK_BYTES && !self.is_over {
            let Some(event) = self.watch.try_next() else { break };
            let Some(line) = self.line(event) else { continue };
            if line.len() >= CHUNK_BYTES {
                self.next_line = Some(line);
                break;
            }
            chunk.extend_from_slice(&line);
        }
        Some(chunk.freeze())
    }

    async fn first_line(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.next_line.take() {
                return Some(line);
            }
            if self.is_over {
                return None;
            }
            self.next_line = match self.wait().await {
                Woken::Event(event) => self.line(event),
                Woken::Bookmark => {
                    self.plan_next_bookmark();
                    Some(self.printer.bookmark(self.watch.revision(), false))
                }
                Woken::End => {
                    self.is_over = true;
                    None
                }
            };
        }
    }

    async fn wait(&mut self) -> Woken {
        let bookmark_at = self.next_bookmark;
        let bookmark = async {
            match bookmark_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            event = self.watch.next() => Woken::Event(event),
            () = bookmark => Woken::Bookmark,
            () = tokio::time::sleep_until(self.end) => Woken::End,
            () = stopped(&mut self.stopping) => Woken::End,
        }
    }

    /// A bookmark every minute, and one just before the end.
    fn plan_next_bookmark(&mut self) {
        let now = Instant::now();
        let last = self.end - LAST_BOOKMARK;
        self.next_bookmark = if now >= last { None } else { Some((now + BOOKMARKS_EVERY).min(last)) };
    }

    fn line(&mut self, event: Result<WatchEvent, Status>) -> Option<Bytes> {
        match event {
            Ok(WatchEvent::InitialEnd(revision)) => {
                self.has_bookmarks.then(|| self.printer.bookmark(revision, true))
            }
            Ok(event) => Some(self.printer.line(&event)),
            Err(status) => {
                self.is_over = true;
                Some(self.printer.error(&status))
            }
        }
    }
}

/// How events are written.
struct Printer {
    resource: Arc<Resource>,
    form: Form,
    include: Include,
    env: Arc<dyn crate::env::Env>,
    /// Columns are described in the first table only.
    has_shown_columns: bool,
    /// Whether events are messages, each with its length before it, and not lines.
    is_protobuf: bool,
}

impl Printer {
    fn new(
        context: &Context,
        resource: Arc<Resource>,
        accept: &Accept,
        query: &Query,
    ) -> Result<Printer, Status> {
        let include = show::include(query)?;
        let form = match accept.form {
            Form::PartialList(version) => Form::Partial(version),
            ref form => form.clone(),
        };
        let is_protobuf = accept.encoding == Encoding::Protobuf;
        let env = context.env.clone();
        Ok(Printer { resource, form, include, env, has_shown_columns: false, is_protobuf })
    }

    fn media_type(&self) -> &'static str {
        if self.is_protobuf { "application/vnd.kubernetes.protobuf;stream=watch" } else { "application/json" }
    }

    /// One event with an object as it is shown.
    fn event(&self, event_type: &str, shown: &Value) -> Bytes {
        if self.is_protobuf {
            return encode::frame(event_type, &encode::sealed(shown).unwrap_or_default()).into();
        }
        format!("{{\"type\":\"{event_type}\",\"object\":{shown}}}\n").into()
    }

    fn error(&self, status: &Status) -> Bytes {
        self.event("ERROR", &status.to_json())
    }

    fn line(&mut self, event: &WatchEvent) -> Bytes {
        let is_as_stored =
            self.form == Form::Object && self.resource.is_shown_as_stored() && !self.is_protobuf;
        match event {
            // The line is made once and shared by all who watch this.
            WatchEvent::Stored(event) if is_as_stored => event.line().clone(),
            WatchEvent::Stored(event) => self.entry_line(event.event_type, &event.entry, None),
            WatchEvent::Added(entry) => self.entry_line(EventType::Added, entry, None),
            WatchEvent::Deleted(entry, revision) => {
                self.entry_line(EventType::Deleted, entry, Some(*revision))
            }
            WatchEvent::InitialEnd(revision) => self.bookmark(*revision, true),
        }
    }

    fn entry_line(&mut self, event_type: EventType, entry: &Entry, revision: Option<u64>) -> Bytes {
        let bytes = show::in_version(&self.resource, entry.bytes.clone());
        if self.form == Form::Object && revision.is_none() && !self.is_protobuf {
            return crate::store::watch_line(event_type, &bytes);
        }
        let mut object: Value = stored(&bytes).unwrap_or_default();
        if let Some(revision) = revision {
            object::set_meta(&mut object, "resourceVersion", revision.to_string());
        }
        let shown = self.shown(&object);
        self.event(event_type.as_str(), &shown)
    }

    fn shown(&mut self, object: &Value) -> Value {
        match &self.form {
            Form::Object => object.clone(),
            Form::Partial(version) | Form::PartialList(version) => table::partial(object, version),
            Form::Table(version) => {
                let row = table::row(&self.resource.columns, object, self.include, version, self.env.now());
                let columns =
                    if self.has_shown_columns { Value::Null } else { self.resource.columns.to_json() };
                self.has_shown_columns = true;
                json!({
                    "kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"),
                    "metadata": {"resourceVersion": object::meta(object, "resourceVersion")},
                    "columnDefinitions": columns, "rows": [row],
                })
            }
        }
    }

    /// Nothing more happened up to this revision; or, that was all that was there at the beginning.
    fn bookmark(&mut self, revision: u64, is_initial_end: bool) -> Bytes {
        let names = &self.resource.names;
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if is_initial_end {
            object::set(&mut metadata, "annotations", json!({"k8s.io/initial-events-end": "true"}));
        }
        let mut object =
            json!({"kind": names.kind.as_ref(), "apiVersion": names.api_version(), "metadata": metadata});
        add_converted(self.resource.storage.as_str(), &mut object);
        codec::complete(&self.resource, &mut object);
        let shown = self.shown(&object);
        self.event("BOOKMARK", &shown)
    }
}

/// Adds what upstream's conversion makes of an object without fields.
fn add_converted(storage: &str, object: &mut Value) {
    match storage {
        "deployments.apps" | "replicasets.apps" | "statefulsets.apps" => {
            object::part(object, "spec").insert("replicas".into(), 0.into());
        }
        "daemonsets.apps" => {
            let metadata = object::metadata(object);
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            object::set(annotations, "deprecated.daemonset.template.generation", json!("0"));
        }
        _ => {}
    }
}
