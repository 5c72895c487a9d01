//! Changes of objects as the API server sends them. Watches that end or break are begun anew.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use krafla_client::{HttpsClient, Request};
use krafla_cluster::ClientError;
use serde::Deserialize;
use serde_json::value::RawValue;

/// How long to wait before a watch that broke is begun anew.
const RETRY: Duration = Duration::from_millis(500);
/// How long the server keeps a watch.
const SECONDS: u32 = 290;

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It was created or changed.
    Put(Bytes),
    /// It is gone; this is how it last was.
    Deleted(Bytes),
    /// The watch begins anew with all objects. Those that are gone meanwhile are not reported.
    Anew,
}

/// Changes of the objects at a path after a revision. An error that will not pass ends the changes.
pub(crate) fn changes(
    client: HttpsClient,
    path: String,
    query: String,
    accept: Option<&'static str>,
    revision: String,
) -> BoxStream<'static, Result<Change, ClientError>> {
    let watch = Watch { client, path, query, accept, revision, lines: None, has_ended: false };
    stream::unfold(watch, |mut watch| async move {
        if watch.has_ended {
            return None;
        }
        let change = watch.next().await;
        watch.has_ended = change.is_err();
        Some((change, watch))
    })
    .boxed()
}

struct Watch {
    client: HttpsClient,
    path: String,
    query: String,
    accept: Option<&'static str>,
    /// Empty to begin with all objects.
    revision: String,
    lines: Option<BoxStream<'static, Result<Bytes, ClientError>>>,
    has_ended: bool,
}

impl Watch {
    async fn next(&mut self) -> Result<Change, ClientError> {
        loop {
            let Some(lines) = &mut self.lines else {
                match self.client.lines(&self.request()).await {
                    Ok(lines) => self.lines = Some(lines),
                    Err(ClientError::Expired(_)) => return Ok(self.begin_anew()),
                    Err(ClientError::Unknown(_) | ClientError::Busy { .. }) => {
                        tokio::time::sleep(RETRY).await
                    }
                    Err(error) => return Err(error),
                }
                continue;
            };
            match lines.next().await {
                Some(Ok(line)) => match Line::read(&line) {
                    Line::Change(change, revision) => {
                        self.revision = revision;
                        return Ok(change);
                    }
                    Line::Bookmark(revision) => self.revision = revision,
                    Line::Lost => return Ok(self.begin_anew()),
                },
                Some(Err(_)) => {
                    tokio::time::sleep(RETRY).await;
                    self.lines = None;
                }
                None => self.lines = None,
            }
        }
    }

    fn request(&self) -> Request {
        let request = Request::get(format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={SECONDS}{}",
            self.path, self.revision, self.query
        ));
        match self.accept {
            Some(accept) => request.accepting(accept),
            None => request,
        }
    }

    fn begin_anew(&mut self) -> Change {
        self.lines = None;
        self.revision.clear();
        Change::Anew
    }
}

/// A line of a watch.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// A change, and its revision.
    Change(Change, String),
    /// Nothing happened up to this revision.
    Bookmark(String),
    /// The watch cannot go on from where it was.
    Lost,
}

impl Line {
    fn read(line: &[u8]) -> Line {
        #[derive(Deserialize)]
        struct Frame<'a> {
            #[serde(rename = "type")]
            event_type: &'a str,
            #[serde(borrow)]
            object: &'a RawValue,
        }
        let Ok(Frame { event_type, object }) = serde_json::from_slice::<Frame<'_>>(line) else {
            return Line::Lost;
        };
        let object = object.get();
        let revision = revision(object);
        let bytes = || Bytes::copy_from_slice(object.as_bytes());
        match event_type {
            "ADDED" | "MODIFIED" => Line::Change(Change::Put(bytes()), revision),
            "DELETED" => Line::Change(Change::Deleted(bytes()), revision),
            "BOOKMARK" => Line::Bookmark(revision),
            _ => Line::Lost,
        }
    }
}

/// The revision of an object, or of the object in the row of a table.
fn revision(json: &str) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Head {
        metadata: Metadata,
        rows: Vec<Row>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Row {
        object: RowObject,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct RowObject {
        metadata: Metadata,
    }
    let head: Head = serde_json::from_str(json).unwrap_or_default();
    let of_row = head.rows.into_iter().next().map(|row| row.object.metadata.resource_version);
    of_row.filter(|revision| !revision.is_empty()).unwrap_or(head.metadata.resource_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_objects_or_tables() {
        let put = br#"{"type":"ADDED","object":{"metadata":{"resourceVersion":"5"}}}"#;
        let object = Bytes::from_static(br#"{"metadata":{"resourceVersion":"5"}}"#);
        assert_eq!(Line::read(put), Line::Change(Change::Put(object), "5".to_owned()));
        let table = r#"{"metadata":{"resourceVersion":""},"rows":[{"cells":[],"object":{"metadata":{"resourceVersion":"7"}}}]}"#;
        assert_eq!(revision(table), "7");
        let bookmark = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#;
        assert_eq!(Line::read(bookmark), Line::Bookmark("9".to_owned()));
        assert_eq!(Line::read(br#"{"type":"ERROR","object":{"code":410}}"#), Line::Lost);
        assert_eq!(Line::read(b"<html>"), Line::Lost);
    }
}
