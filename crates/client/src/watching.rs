//! What comes on a watch: one JSON document per line, in pieces of any size.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use krafla_api::Kind;
use krafla_cluster::{ClientError, Event, EventType};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::{revision_of, watch_error, with_type};

/// The longest event that is read: far more than a server stores in one object.
const EVENT_BYTES_MAX: usize = 32 << 20;

/// The events of a watch, until the server ends it, or says nothing for `silence_max`.
pub(crate) fn events(
    kind: Kind,
    body: Incoming,
    silence_max: Duration,
) -> BoxStream<'static, Result<Event, ClientError>> {
    lines_of(body, silence_max).map(move |line| line.and_then(|line| event(kind, &line))).boxed()
}

/// The lines of an answer, until it ends, or nothing comes for `silence_max`.
pub(crate) fn lines_of(
    body: Incoming,
    silence_max: Duration,
) -> BoxStream<'static, Result<Bytes, ClientError>> {
    let pieces = body.into_data_stream().map(|piece| piece.map_err(|error| lost(&error)));
    lines(until_silent(pieces.boxed(), silence_max)).boxed()
}

fn lost(error: &hyper::Error) -> ClientError {
    ClientError::Unknown(format!("the watch was cut off: {error}"))
}

type Pieces = BoxStream<'static, Result<Bytes, ClientError>>;

fn until_silent(pieces: Pieces, silence_max: Duration) -> Pieces {
    let pieces = stream::unfold(Some(pieces), move |pieces| async move {
        let mut pieces = pieces?;
        match tokio::time::timeout(silence_max, pieces.next()).await {
            Ok(Some(piece)) => Some((piece, Some(pieces))),
            Ok(None) => None,
            Err(_) => {
                let silent = format!("the watch said nothing for {silence_max:?}");
                Some((Err(ClientError::Unknown(silent)), None))
            }
        }
    });
    pieces.boxed()
}

/// Puts lines together from pieces. What comes after the last end of a line was cut off, and is dropped.
fn lines(pieces: Pieces) -> impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static {
    let start = (pieces, BytesMut::new(), 0);
    stream::unfold(Some(start), |state| async move {
        let (mut pieces, mut rest, mut n_searched) = state?;
        loop {
            let unseen = rest.get(n_searched..).unwrap_or_default();
            if let Some(end) = unseen.iter().position(|byte| *byte == b'\n') {
                let line = rest.split_to(n_searched + end).freeze();
                rest.advance(1);
                return Some((Ok(line), Some((pieces, rest, 0))));
            }
            if rest.len() > EVENT_BYTES_MAX {
                let too_long = format!("an event is larger than {} MiB", EVENT_BYTES_MAX >> 20);
                return Some((Err(ClientError::Unknown(too_long)), None));
            }
            n_searched = rest.len();
            match pieces.next().await? {
                Ok(piece) => rest.extend_from_slice(&piece),
                Err(error) => return Some((Err(error), None)),
            }
        }
    })
}

fn event(kind: Kind, line: &[u8]) -> Result<Event, ClientError> {
    #[derive(Deserialize)]
    struct Frame<'a> {
        #[serde(rename = "type")]
        event_type: &'a str,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let frame: Frame<'_> = serde_json::from_slice(line)
        .map_err(|error| ClientError::Unknown(format!("cannot read an event of the watch: {error}")))?;
    let object = frame.object.get();
    let event_type = match frame.event_type {
        "ADDED" => EventType::Added,
        "MODIFIED" => EventType::Modified,
        "DELETED" => EventType::Deleted,
        "BOOKMARK" => EventType::Bookmark,
        "ERROR" => return Err(watch_error(object)),
        other => return Err(ClientError::Unknown(format!("an event of unknown type {other:?}"))),
    };
    let revision = revision_of(object)?;
    let object = if event_type == EventType::Bookmark { Bytes::new() } else { with_type(kind, object) };
    Ok(Event::new(event_type, revision, object))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events_of(pieces: Vec<&[u8]>) -> Vec<String> {
        let pieces: Vec<_> = pieces.into_iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let events =
            lines(stream::iter(pieces).boxed()).map(|line| line.and_then(|line| event(Kind::Pod, &line)));
        let events = futures_util::FutureExt::now_or_never(events.collect::<Vec<_>>()).unwrap();
        events
            .into_iter()
            .map(|event| match event {
                Ok(event) => format!("{:?} {} {}", event.event_type, event.revision, event.object.len()),
                Err(error) => error.to_string(),
            })
            .collect()
    }

    const WATCH: &str = concat!(
        r#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"5"}}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#,
        "\n",
        r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#,
        "\n",
        r#"{"type":"DELETED","obj"#,
    );

    #[test]
    fn events_are_read_and_what_was_cut_off_is_dropped() {
        assert_eq!(events_of(vec![WATCH.as_bytes()]), ["Added 5 60", "Bookmark 9 0", "expired: too old"]);
    }

    #[tokio::test]
    async fn a_watch_that_falls_silent_ends() {
        let pieces = stream::iter([Ok(Bytes::from_static(b"a"))]).chain(stream::pending()).boxed();
        let mut pieces = until_silent(pieces, Duration::from_millis(1));
        assert_eq!(pieces.next().await.unwrap().unwrap(), "a");
        let silent = pieces.next().await.unwrap().unwrap_err().to_string();
        assert_eq!(silent, "outcome unknown: the watch said nothing for 1ms");
        assert!(pieces.next().await.is_none());
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_pieces_end(mut cuts in prop::collection::vec(0..WATCH.len(), 0..20)) {
            cuts.extend([0, WATCH.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|ends| &WATCH.as_bytes()[ends[0]..ends[1]]).collect();
            prop_assert_eq!(events_of(pieces), events_of(vec![WATCH.as_bytes()]));
        }

        #[test]
        fn nonsense_is_an_error_and_no_panic(line in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = event(Kind::Pod, &line);
        }
    }
}
