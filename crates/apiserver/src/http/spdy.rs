//! SPDY/3.1, as far as Kubernetes' clients speak it: streams with headers, data and ends on one connection.
//!
//! kubectl before 1.30 speaks it for `exec` and `attach`, and every kubectl for `port-forward`, since 1.30 inside of a
//! WebSocket. Those clients have no flow control, so there is none here.
//!
//! ```text
//!   control  1 version:15 type:16   flags:8 length:24   payload
//!   data     0 stream:31            flags:8 length:24   payload
//! ```

use std::collections::BTreeMap;
use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest frame that is taken.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// The longest block of headers, and the most of them, that are taken.
const HEADERS_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: u32 = 64;
/// How far back compressed data may refer to.
const WINDOW_BYTES: usize = 32 << 10;

const CONTROL: u32 = 1 << 31;
const STREAM_MASK: u32 = CONTROL - 1;
const VERSION: u32 = 3;
const SYN_STREAM: u32 = 1;
const SYN_REPLY: u32 = 2;
const RST_STREAM: u32 = 3;
const PING: u32 = 6;
const GOAWAY: u32 = 7;
const FLAG_FIN: u8 = 1;

/// Headers of a stream. Their names are in lower case.
pub(super) type Headers = BTreeMap<String, String>;

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A new stream.
    Open { stream: u32, headers: Headers },
    /// Data of a stream; the last of them may be empty.
    Data { stream: u32, data: Bytes, is_last: bool },
    /// A stream that its client gives up.
    Reset { stream: u32 },
    /// A question whether anybody is there.
    Ping { id: u32 },
    /// No more streams.
    GoAway,
    /// Something that needs no answer.
    Other,
}

/// Reads frames.
pub(super) struct Reader<R> {
    source: R,
    headers: HeaderReader,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(source: R) -> Reader<R> {
        Reader { source, headers: HeaderReader::new() }
    }

    /// The next frame; none at the end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Frame>> {
        let mut head = [0; 8];
        if self.source.read(head.get_mut(..1).unwrap_or_default()).await? == 0 {
            return Ok(None);
        }
        self.source.read_exact(head.get_mut(1..).unwrap_or_default()).await?;
        let mut head = &head[..];
        let (first, second) = (head.get_u32(), head.get_u32());
        let (flags, length) = ((second >> 24) as u8, (second & 0x00ff_ffff) as usize);
        if length > FRAME_BYTES_MAX {
            return Err(broken("a frame is too long"));
        }
        let mut payload = BytesMut::zeroed(length);
        self.source.read_exact(&mut payload).await?;
        let payload = payload.freeze();
        if first & CONTROL == 0 {
            let is_last = flags & FLAG_FIN != 0;
            return Ok(Some(Frame::Data { stream: first & STREAM_MASK, data: payload, is_last }));
        }
        self.control(first & 0xffff, payload).map(Some)
    }

    /// Reads to the end, whatever comes.
    pub(super) async fn drain(mut self) {
        let _ = tokio::io::copy(&mut self.source, &mut tokio::io::sink()).await;
    }

    fn control(&mut self, kind: u32, mut payload: Bytes) -> io::Result<Frame> {
        let short = |_| broken("a frame is too short");
        Ok(match kind {
            SYN_STREAM => {
                let stream = payload.try_get_u32().map_err(short)? & STREAM_MASK;
                // The stream that it belongs to, its priority and its slot say nothing here.
                payload.try_get_u32().map_err(short)?;
                payload.try_get_u16().map_err(short)?;
                Frame::Open { stream, headers: self.headers.read(&payload)? }
            }
            // Nothing was opened that could be answered, but what is compressed depends on what was before.
            SYN_REPLY | 8 => {
                payload.try_get_u32().map_err(short)?;
                self.headers.read(&payload)?;
                Frame::Other
            }
            RST_STREAM => Frame::Reset { stream: payload.try_get_u32().map_err(short)? & STREAM_MASK },
            PING => Frame::Ping { id: payload.try_get_u32().map_err(short)? },
            GOAWAY => Frame::GoAway,
            _ => Frame::Other,
        })
    }
}

fn broken(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Reads blocks of headers. All blocks of a connection are compressed as one.
struct HeaderReader {
    state: Box<DecompressorOxide>,
    /// The last of what was read, around which the position runs.
    window: Vec<u8>,
    position: usize,
    has_begun: bool,
}

impl HeaderReader {
    fn new() -> HeaderReader {
        let mut window = dictionary();
        let position = window.len();
        window.resize(WINDOW_BYTES, 0);
        HeaderReader { state: Box::default(), window, position, has_begun: false }
    }

    fn read(&mut self, mut block: &[u8]) -> io::Result<Headers> {
        if !self.has_begun {
            // What is compressed begins with how, and with which dictionary: there is one.
            let flags = block.get(1).copied().ok_or_else(|| broken("headers are too short"))?;
            let n_bytes = if flags & 0x20 != 0 { 6 } else { 2 };
            block = block.get(n_bytes..).ok_or_else(|| broken("headers are too short"))?;
            self.has_begun = true;
        }
        let plain = self.inflate(block)?;
        parse_headers(plain.into())
    }

    fn inflate(&mut self, mut block: &[u8]) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        loop {
            let from = self.position;
            let (status, n_read, n_written) =
                decompress(&mut self.state, block, &mut self.window, from, TINFL_FLAG_HAS_MORE_INPUT);
            plain
                .extend_from_slice(self.window.get(from..from.saturating_add(n_written)).unwrap_or_default());
            self.position = from.saturating_add(n_written) % WINDOW_BYTES;
            block = block.get(n_read..).unwrap_or_default();
            if plain.len() > HEADERS_BYTES_MAX {
                return Err(broken("headers are too long"));
            }
            match status {
                TINFLStatus::HasMoreOutput => {}
                TINFLStatus::NeedsMoreInput if block.is_empty() => return Ok(plain),
                _ => return Err(broken("headers cannot be decompressed")),
            }
        }
    }
}

fn parse_headers(mut plain: Bytes) -> io::Result<Headers> {
    let short = |_| broken("headers are too short");
    let n_headers = plain.try_get_u32().map_err(short)?;
    if n_headers > HEADERS_MAX {
        return Err(broken("too many headers"));
    }
    let mut text = || -> io::Result<String> {
        let n_bytes = plain.try_get_u32().map_err(short)? as usize;
        if n_bytes > plain.remaining() {
            return Err(broken("headers are too short"));
        }
        String::from_utf8(plain.split_to(n_bytes).into()).map_err(|_| broken("a header is not a text"))
    };
    (0..n_headers).map(|_| Ok((text()?.to_ascii_lowercase(), text()?))).collect()
}

/// What blocks of headers may refer to from the beginning: the dictionary of SPDY/3.
fn dictionary() -> Vec<u8> {
    const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language \
        accept-ranges age allow authorization cache-control connection content-base content-encoding \
        content-language content-length content-location content-md5 content-range content-type date etag expect \
        expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified \
        location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te \
        trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get status 200_OK \
        version HTTP/1.1 url public set-cookie keep-alive origin";
    const TEXT: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505\
        203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized\
        403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable\
        Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT\
        chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,\
        text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
    let mut dictionary = Vec::with_capacity(WINDOW_BYTES);
    for word in WORDS.split_whitespace().map(|word| word.replace('_', " ")) {
        dictionary.put_u32(word.len() as u32);
        dictionary.extend_from_slice(word.as_bytes());
    }
    dictionary.extend_from_slice(TEXT.as_bytes());
    dictionary
}

/// Makes the answers to new streams. Their headers are one stream of compressed data, which is not compressed.
#[derive(Default)]
pub(super) struct Replies {
    has_begun: bool,
}

impl Replies {
    /// Tells a client that its stream is open.
    pub(super) fn accept(&mut self, stream: u32) -> Bytes {
        /// No headers, in a part that is not compressed; then an empty part, on which readers look at what they have.
        const NO_HEADERS: &[u8] = &[0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        let begin: &[u8] = if self.has_begun { &[] } else { &[0x78, 0x01] };
        self.has_begun = true;
        let mut payload = BytesMut::new();
        payload.put_u32(stream);
        payload.extend_from_slice(begin);
        payload.extend_from_slice(NO_HEADERS);
        control(SYN_REPLY, &payload)
    }
}

/// Data of a stream.
pub(super) fn data(stream: u32, data: &[u8], is_last: bool) -> Bytes {
    frame(stream & STREAM_MASK, if is_last { FLAG_FIN } else { 0 }, data)
}

/// The answer to a question whether anybody is there.
pub(super) fn ping(id: u32) -> Bytes {
    control(PING, &id.to_be_bytes())
}

/// Gives up a stream, because it cannot be had.
pub(super) fn reset(stream: u32) -> Bytes {
    const REFUSED_STREAM: u32 = 3;
    let mut payload = BytesMut::new();
    payload.put_u32(stream);
    payload.put_u32(REFUSED_STREAM);
    control(RST_STREAM, &payload)
}

fn control(kind: u32, payload: &[u8]) -> Bytes {
    frame(CONTROL | VERSION << 16 | kind, 0, payload)
}

fn frame(first: u32, flags: u8, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(payload.len().saturating_add(8));
    frame.put_u32(first);
    frame.put_u32(u32::from(flags) << 24 | (payload.len() as u32 & 0x00ff_ffff));
    frame.extend_from_slice(payload);
    frame.freeze()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A frame by which a client opens a stream. What begins a connection's headers is only there once.
    pub(in super::super) fn open(stream: u32, headers: &[(&str, &str)], is_first: bool) -> Bytes {
        let mut plain = BytesMut::new();
        plain.put_u32(headers.len() as u32);
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.put_u32(text.len() as u32);
            plain.extend_from_slice(text.as_bytes());
        }
        let n_bytes = plain.len() as u16;
        let mut payload = BytesMut::new();
        payload.put_u32(stream);
        payload.extend_from_slice(&[0; 6]);
        payload.extend_from_slice(if is_first { &[0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2] } else { &[] });
        payload.put_u8(0);
        payload.put_u16_le(n_bytes);
        payload.put_u16_le(!n_bytes);
        payload.extend_from_slice(&plain);
        payload.extend_from_slice(&[0, 0, 0, 0xff, 0xff]);
        control(SYN_STREAM, &payload)
    }

    /// The frames in what was sent.
    pub(in super::super) async fn frames(sent: &[u8]) -> Vec<Frame> {
        let (mut reader, mut frames) = (Reader::new(sent), Vec::new());
        // What is cut off will come later.
        while let Ok(Some(frame)) = reader.next().await {
            frames.push(frame);
        }
        frames
    }

    #[test]
    fn the_dictionary_is_the_one_that_its_checksum_names() {
        let (mut low, mut high) = (1_u32, 0_u32);
        for byte in dictionary() {
            low = (low + u32::from(byte)) % 65_521;
            high = (high + low) % 65_521;
        }
        assert_eq!(high << 16 | low, 0xe3c6_a7c2);
    }

    #[tokio::test]
    async fn streams_are_opened_with_headers_that_are_compressed() {
        // As a client in Go sends them: both refer to the dictionary, and the second to the first.
        let compressed = [
            0x80, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x3e, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2, 0x02, 0x25, 0x3a, 0x70, 0x3a, 0x2b, 0x29, 0x4a,
            0x4d, 0xcc, 0x85, 0x16, 0x25, 0xac, 0xa9, 0xa0, 0x80, 0x86, 0x14, 0xcb, 0x45, 0xe0, 0x1c, 0x60,
            0x61, 0x60, 0x61, 0xc0, 0xc0, 0xc0, 0xc0, 0x59, 0x04, 0x89, 0xc6, 0x4c, 0x50, 0xf2, 0x66, 0x34,
            0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x80, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x18, 0x00, 0x00,
            0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc2, 0xaa, 0x19, 0x54, 0x0e, 0x25, 0x12, 0xd6,
            0x0b, 0x00, 0x00, 0x00, 0xff, 0xff,
        ];
        let of_type = |kind: &str| {
            let headers = [("streamtype", kind), ("port", "8080"), ("requestid", "0")];
            headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
        };
        assert_eq!(
            frames(&compressed).await,
            [
                Frame::Open { stream: 1, headers: of_type("error") },
                Frame::Open { stream: 3, headers: of_type("data") },
            ]
        );
        let two = [open(1, &[("streamType", "error")], true), open(3, &[("Port", "80")], false)].concat();
        let header = |name: &str, value: &str| Headers::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(
            frames(&two).await,
            [
                Frame::Open { stream: 1, headers: header("streamtype", "error") },
                Frame::Open { stream: 3, headers: header("port", "80") },
            ]
        );
    }

    #[tokio::test]
    async fn data_ends_pings_and_answers_are_frames() {
        let mut replies = Replies::default();
        let sent = [
            data(1, b"hello", false),
            data(1, b"", true),
            ping(7),
            reset(5),
            replies.accept(1),
            replies.accept(3),
            control(GOAWAY, &[0; 8]),
        ];
        let bytes = |text: &'static [u8]| Bytes::from_static(text);
        assert_eq!(
            frames(&sent.concat()).await,
            [
                Frame::Data { stream: 1, data: bytes(b"hello"), is_last: false },
                Frame::Data { stream: 1, data: bytes(b""), is_last: true },
                Frame::Ping { id: 7 },
                Frame::Reset { stream: 5 },
                Frame::Other,
                Frame::Other,
                Frame::GoAway,
            ]
        );
    }

    #[tokio::test]
    async fn what_is_no_frame_is_refused() {
        let long = [0, 0, 0, 1, 0, 0xff, 0xff, 0xff];
        let cut = [0, 0, 0, 1, 0, 0, 0, 9, 1];
        let short = control(SYN_STREAM, &[0, 0, 0, 1]);
        for sent in [&long[..], &cut, &short] {
            assert!(Reader::new(sent).next().await.is_err(), "{sent:?}");
        }
    }
}
