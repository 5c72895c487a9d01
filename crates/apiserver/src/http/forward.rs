//! `kubectl port-forward`: connections to ports of a pod, many over one connection.
//!
//! ```text
//!   SPDY       a pair of streams for each connection: `data`, and `error` for what went wrong
//!   WebSocket  the same SPDY inside of binary messages (kubectl since 1.31), or two channels for each port, as for `exec`
//! ```

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use http::HeaderMap;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use krafla_api::Key;
use krafla_schema::object;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use super::body::Reply;
use super::channels::{self, Protocol};
use super::exec::{self, Upgrading};
use super::query::Query;
use super::spdy::{self, Frame, Headers, Reader, Replies};
use super::stopped;
use crate::status::Status;

const FORWARD: &str = "portforward.k8s.io";
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
/// How many connections one client may have open.
const CONNECTIONS_MAX: usize = 1000;
/// How many ports a client may name at once.
const PORTS_MAX: usize = 100;
/// How many pieces wait for a side that reads slowly, and how long one is.
const PIECES_WAITING_MAX: usize = 16;
const PIECE_BYTES: usize = 32 << 10;
const CONNECTING: Duration = Duration::from_secs(10);

/// A request to reach ports of a pod.
pub(super) struct Forward<'a> {
    pub(super) pod: &'a Key,
    /// The pod as it is stored.
    pub(super) object: &'a Value,
    pub(super) query: &'a Query,
    pub(super) headers: &'a HeaderMap,
    pub(super) upgrade: Option<OnUpgrade>,
}

/// How connections come over the client's one.
enum Way {
    Spdy,
    Tunnel,
    Channels(Protocol, Vec<u16>),
}

impl Forward<'_> {
    /// Answers, and connects as soon as the answer is out.
    pub(super) fn answer(self, mut stopping: watch::Receiver<bool>) -> Result<Reply, Status> {
        if object::text_at(self.object, "spec.nodeName").is_empty() {
            return Err(Status::bad_request(format!("pod {} does not have a host assigned", self.pod.name)));
        }
        let (way, reply) = self.agree()?;
        let target = Target::read(self.pod, self.object)?;
        let Some(upgrade) = self.upgrade else {
            return Err(Status::bad_request("this connection can not be upgraded: use HTTP/1.1"));
        };
        tokio::spawn(async move {
            let serve = async {
                match upgrade.await {
                    Ok(socket) => serve(socket, way, target).await,
                    Err(error) => tracing::debug!(%error, "a client left before it was connected"),
                }
            };
            tokio::select! {
                () = serve => {}
                () = stopped(&mut stopping) => {}
            }
        });
        Ok(reply)
    }

    fn agree(&self) -> Result<(Way, Reply), Status> {
        if Upgrading::read(self.headers)? == Upgrading::Spdy {
            let offered = exec::offered_streams(self.headers);
            if !offered.iter().any(|name| name == FORWARD) {
                return Err(exec::no_stream_protocol(&offered, FORWARD));
            }
            return Ok((Way::Spdy, exec::spdy_reply(FORWARD)));
        }
        let offered = exec::offered(self.headers, http::header::SEC_WEBSOCKET_PROTOCOL.as_str());
        if offered.iter().any(|name| name == TUNNEL) {
            return Ok((Way::Tunnel, exec::websocket_reply(self.headers, TUNNEL)?));
        }
        let known = [Protocol::V4, Protocol::V4Base64];
        let protocol = match offered.as_slice() {
            [] => Some(Protocol::Unnamed),
            names => names.iter().find_map(|name| known.into_iter().find(|protocol| protocol.name() == name)),
        };
        let protocol = protocol.ok_or_else(|| {
            let why = format!(
                "none of the protocols {:?} is known: offer {TUNNEL} or v4.channel.k8s.io",
                offered.join(", ")
            );
            Status::bad_request(why)
        })?;
        let ports = ports(self.query)?;
        Ok((Way::Channels(protocol, ports), exec::websocket_reply(self.headers, protocol.name())?))
    }
}

fn ports(query: &Query) -> Result<Vec<u16>, Status> {
    let texts = query.all("ports").flat_map(|ports| ports.split(','));
    let wrong = |text: &str| Status::bad_request(format!("port {text:?} must be between 1 and 65535"));
    let ports: Result<Vec<u16>, Status> = texts
        .map(|text| text.trim().parse().ok().filter(|port| *port != 0).ok_or_else(|| wrong(text)))
        .collect();
    let ports = ports?;
    if ports.is_empty() || ports.len() > PORTS_MAX {
        return Err(Status::bad_request(format!(
            "query parameter \"ports\" must name 1 to {PORTS_MAX} ports"
        )));
    }
    Ok(ports)
}

/// The pod that connections lead to.
#[derive(Clone, Debug)]
struct Target {
    name: String,
    uid: String,
    address: IpAddr,
}

impl Target {
    fn read(pod: &Key, object: &Value) -> Result<Target, Status> {
        let address = object::text_at(object, "status.podIP");
        let (phase, name) = (object::text_at(object, "status.phase"), pod.name.to_string());
        match address.parse() {
            Ok(address) if phase == "Running" => {
                Ok(Target { name, uid: object::uid(object).to_owned(), address })
            }
            _ => Err(Status::bad_request(format!(
                "unable to forward port because pod is not running. Current status={phase}"
            ))),
        }
    }

    /// Connects to a port. A server of a pod may listen on the pod's address, or on that of the machine alone.
    async fn connect(&self, port: u16) -> Result<TcpStream, String> {
        let connect = async {
            match TcpStream::connect((self.address, port)).await {
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.map_err(|_| error)
                }
                outcome => outcome,
            }
        };
        let connected = tokio::time::timeout(CONNECTING, connect).await;
        let connected = connected
            .map_err(|_| "timed out".to_owned())
            .and_then(|outcome| outcome.map_err(|error| error.to_string()));
        connected.map_err(|why| {
            let Target { name, uid, address } = self;
            format!("error forwarding port {port} to pod {name}, uid {uid}: {address}:{port}: {why}")
        })
    }
}

async fn serve(socket: Upgraded, way: Way, target: Target) {
    match way {
        Way::Spdy => serve_spdy(TokioIo::new(socket), target).await,
        Way::Tunnel => serve_tunnel(socket, target).await,
        Way::Channels(protocol, ports) => serve_channels(socket, protocol, &ports, target).await,
    }
}

/// SPDY inside of binary messages: their bounds mean nothing.
async fn serve_tunnel(socket: Upgraded, target: Target) {
    let (mut sink, mut source) = channels::accept(socket).await.split();
    let (ours, inner) = tokio::io::duplex(PIECE_BYTES);
    let (mut read, mut write) = tokio::io::split(ours);
    let take_in = async {
        while let Some(Ok(message)) = source.next().await {
            match message {
                Message::Binary(data) if write.write_all(&data).await.is_ok() => {}
                Message::Binary(_) | Message::Close(_) => break,
                _ => {}
            }
        }
        let _ = write.shutdown().await;
    };
    let pass_on = async {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        while read.read_buf(&mut piece).await.is_ok_and(|n_bytes| n_bytes > 0) {
            if sink.send(Message::Binary(piece.split().freeze())).await.is_err() {
                return;
            }
        }
        let _ = sink.close().await;
    };
    tokio::join!(take_in, pass_on, serve_spdy(inner, target));
}

/// Something that a connection to a port has to say.
enum Part<'a> {
    Data(&'a [u8]),
    /// No more data.
    End,
    /// It has ended: well if there is nothing to say.
    Error(String),
}

/// Connects to a port and passes on both ways until both sides have ended.
async fn pipe<T>(
    target: Target,
    port: u16,
    mut input: mpsc::Receiver<Bytes>,
    output: mpsc::Sender<T>,
    write: impl Fn(Part<'_>) -> Option<T>,
) {
    // A client that is gone does not miss what is said to it.
    let say = |part: Part<'_>| {
        let (written, output) = (write(part), output.clone());
        async move {
            if let Some(written) = written {
                let _ = output.send(written).await;
            }
        }
    };
    let connection = match target.connect(port).await {
        Ok(connection) => connection,
        Err(why) => return say(Part::Error(why)).await,
    };
    let (mut read, mut sink) = connection.into_split();
    let take_in = async {
        while let Some(data) = input.recv().await {
            if sink.write_all(&data).await.is_err() {
                return;
            }
        }
        let _ = sink.shutdown().await;
    };
    let pass_on = async {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        while read.read_buf(&mut piece).await.is_ok_and(|n_bytes| n_bytes > 0) {
            say(Part::Data(&piece.split())).await;
        }
        say(Part::End).await;
    };
    // What the pod's side has closed nobody needs to write to any more.
    tokio::select! {
        () = pass_on => {}
        () = async { take_in.await; std::future::pending().await } => {}
    }
    say(Part::Error(String::new())).await;
}

/// The two streams of a connection, of which the second may not be there yet.
#[derive(Default)]
struct Pair {
    data: Option<u32>,
    error: Option<u32>,
}

async fn serve_spdy(socket: impl AsyncRead + AsyncWrite + Send + Unpin, target: Target) {
    let (source, mut sink) = tokio::io::split(socket);
    let (frames, mut waiting) = mpsc::channel::<Bytes>(PIECES_WAITING_MAX);
    let write = async {
        while let Some(frame) = waiting.recv().await {
            if sink.write_all(&frame).await.is_err() || sink.flush().await.is_err() {
                return;
            }
        }
    };
    let connections = Connections {
        target,
        frames,
        replies: Replies::default(),
        pairs: BTreeMap::new(),
        inputs: BTreeMap::new(),
        tasks: JoinSet::new(),
    };
    tokio::select! {
        () = connections.run(Reader::new(source)) => {}
        () = write => {}
    }
}

/// The connections of a client.
struct Connections {
    target: Target,
    frames: mpsc::Sender<Bytes>,
    replies: Replies,
    /// Connections of which one stream is there.
    pairs: BTreeMap<String, Pair>,
    /// Where data of streams go.
    inputs: BTreeMap<u32, mpsc::Sender<Bytes>>,
    tasks: JoinSet<()>,
}

impl Connections {
    /// Returns when the client is gone. Its connections end with it.
    async fn run<S: AsyncRead + Unpin>(mut self, mut reader: Reader<S>) {
        while let Ok(Some(frame)) = reader.next().await {
            match frame {
                Frame::Open { stream, headers } => self.open(stream, &headers).await,
                Frame::Data { stream, data, is_last } => {
                    if let Some(input) = self.inputs.get(&stream).filter(|_| !data.is_empty()) {
                        // A connection that has ended takes nothing more.
                        let _ = input.send(data).await;
                    }
                    if is_last {
                        self.inputs.remove(&stream);
                    }
                }
                Frame::Reset { stream } => drop(self.inputs.remove(&stream)),
                Frame::Ping { id } => {
                    let _ = self.frames.send(spdy::ping(id)).await;
                }
                Frame::GoAway | Frame::Other => {}
            }
        }
    }

    async fn open(&mut self, stream: u32, headers: &Headers) {
        while self.tasks.try_join_next().is_some() {}
        let header = |name: &str| headers.get(name).map(String::as_str).unwrap_or_default();
        let port = header("port").parse::<u16>().ok().filter(|port| *port != 0);
        let (Some(port), kind @ ("data" | "error")) = (port, header("streamtype")) else {
            return drop(self.frames.send(spdy::reset(stream)).await);
        };
        if self.tasks.len() >= CONNECTIONS_MAX || self.pairs.len() >= CONNECTIONS_MAX {
            return drop(self.frames.send(spdy::reset(stream)).await);
        }
        let _ = self.frames.send(self.replies.accept(stream)).await;
        let request = header("requestid").to_owned();
        let pair = self.pairs.entry(request.clone()).or_default();
        let slot = if kind == "data" { &mut pair.data } else { &mut pair.error };
        *slot = Some(stream);
        if let Pair { data: Some(data), error: Some(error) } = *pair {
            self.pairs.remove(&request);
            self.connect(port, data, error);
        }
    }

    fn connect(&mut self, port: u16, data: u32, error: u32) {
        let (input, received) = mpsc::channel(PIECES_WAITING_MAX);
        self.inputs.insert(data, input);
        let (target, frames) = (self.target.clone(), self.frames.clone());
        self.tasks.spawn(async move {
            let write = |part: Part<'_>| {
                Some(match part {
                    Part::Data(bytes) => spdy::data(data, bytes, false),
                    Part::End => spdy::data(data, b"", true),
                    Part::Error(why) => spdy::data(error, why.as_bytes(), true),
                })
            };
            pipe(target, port, received, frames, write).await;
        });
    }
}

/// Two channels for each port: data, and what went wrong. Each begins with the number of the port.
async fn serve_channels(socket: Upgraded, protocol: Protocol, ports: &[u16], target: Target) {
    let (mut sink, mut source) = channels::accept(socket).await.split();
    let (messages, mut waiting) = mpsc::channel::<Message>(PIECES_WAITING_MAX);
    let write = async {
        while let Some(message) = waiting.recv().await {
            if sink.send(message).await.is_err() {
                return;
            }
        }
        let _ = sink.close().await;
    };
    let mut inputs = BTreeMap::new();
    let mut tasks = JoinSet::new();
    for (data, port) in (0_u8..).step_by(2).zip(ports.iter().copied()) {
        let (input, received) = mpsc::channel(PIECES_WAITING_MAX);
        inputs.insert(data, input);
        let (target, messages) = (target.clone(), messages.clone());
        tasks.spawn(async move {
            let error = data.saturating_add(1);
            for channel in [data, error] {
                let _ = messages.send(protocol.message(channel, &port.to_le_bytes())).await;
            }
            let write = |part: Part<'_>| match &part {
                Part::Data(bytes) => Some(protocol.message(data, bytes)),
                Part::Error(why) if !why.is_empty() => Some(protocol.message(error, why.as_bytes())),
                Part::End | Part::Error(_) => None,
            };
            pipe(target, port, received, messages, write).await;
        });
    }
    drop(messages);
    let take_in = async {
        while let Some(Ok(message)) = source.next().await {
            if matches!(message, Message::Close(_)) {
                break;
            }
            if let Some((channel, data)) = protocol.read(message)
                && let Some(input) = inputs.get(&channel)
            {
                let _ = input.send(data).await;
            }
        }
    };
    tokio::select! {
        () = take_in => {}
        () = write => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn target() -> Target {
        Target { name: "p".to_owned(), uid: "u".to_owned(), address: Ipv4Addr::LOCALHOST.into() }
    }

    /// What a client is sent about its stream `data` and its stream `error`.
    async fn talk(port: u16, input: &[u8]) -> (Vec<u8>, String) {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let talk = async {
            let port = port.to_string();
            let headers = |kind| [("streamType", kind), ("port", port.as_str()), ("requestID", "0")];
            client.write_all(&spdy::tests::open(1, &headers("error"), true)).await.unwrap();
            client.write_all(&spdy::tests::open(3, &headers("data"), false)).await.unwrap();
            client.write_all(&spdy::data(3, input, true)).await.unwrap();
            let mut sent = Vec::new();
            let is_end = |frame: &Frame| matches!(frame, Frame::Data { stream: 1, is_last: true, .. });
            while !spdy::tests::frames(&sent).await.iter().any(is_end) {
                assert!(client.read_buf(&mut sent).await.unwrap() > 0, "the server has left");
            }
            spdy::tests::frames(&sent).await
        };
        let frames = tokio::select! {
            frames = talk => frames,
            () = serve_spdy(server, target()) => panic!("the server has left"),
        };
        let of = |wanted: u32| -> Vec<u8> {
            let data = frames.iter().filter_map(|frame| match frame {
                Frame::Data { stream, data, .. } if *stream == wanted => Some(data.to_vec()),
                _ => None,
            });
            data.flatten().collect()
        };
        (of(3), String::from_utf8(of(1)).unwrap())
    }

    #[tokio::test]
    async fn a_connection_is_passed_on_both_ways() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = async {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            connection.read_to_end(&mut heard).await.unwrap();
            connection.write_all(&heard.to_ascii_uppercase()).await.unwrap();
        };
        let (said, ()) = tokio::join!(talk(port, b"hello"), server);
        assert_eq!(said, (b"HELLO".to_vec(), String::new()));
    }

    #[tokio::test]
    async fn where_nobody_listens_the_client_is_told() {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().port();
        let (data, error) = talk(free, b"").await;
        assert_eq!(data, b"");
        let expected =
            format!("error forwarding port {free} to pod p, uid u: 127.0.0.1:{free}: Connection refused");
        assert!(error.starts_with(&expected), "{error}");
    }

    #[test]
    fn ports_are_named_in_the_query() {
        let read = |query: &str| ports(&Query::parse(query)).map_err(|status| status.message);
        assert_eq!(read("ports=80,81&ports=82"), Ok(vec![80, 81, 82]));
        assert_eq!(read("ports=0"), Err("port \"0\" must be between 1 and 65535".to_owned()));
        assert!(read("").is_err());
    }
}
