//! Probes of a running pod: one server in this test answers all of them, and changes its mind when told to.

use std::convert::Infallible;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;

use crate::support::Up;

/// What is asked of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Over HTTP, by the startup probe.
    HasStarted,
    /// Over gRPC, by the liveness probe.
    IsAlive,
}

/// What the server answers.
#[derive(Default)]
struct Health {
    has_started: AtomicBool,
    is_alive: AtomicBool,
}

impl Health {
    /// The answer to one question, and which question that was.
    fn answer(&self, path: &str) -> (Asked, Response<Frames>) {
        let frames = |frames: Vec<Frame<Bytes>>| {
            let frames: Vec<_> = frames.into_iter().map(Ok).collect();
            StreamBody::new(stream::iter(frames))
        };
        if path == "/grpc.health.v1.Health/Check" {
            // A message of two bytes: field 1, SERVING or NOT_SERVING.
            let state = if self.is_alive.load(Ordering::SeqCst) { 1 } else { 2 };
            let message = Frame::data(Bytes::from(vec![0, 0, 0, 0, 2, 0x08, state]));
            let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
            let trailers = Frame::trailers([status].into_iter().collect());
            return (Asked::IsAlive, Response::new(frames(vec![message, trailers])));
        }
        let mut response = Response::new(frames(Vec::new()));
        if path != "/started" || !self.has_started.load(Ordering::SeqCst) {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        (Asked::HasStarted, response)
    }
}

type Frames = StreamBody<stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

/// Starts the server, on all addresses of this machine; tells its port and, one by one, what it is asked.
fn serve(health: Arc<Health>) -> (u16, Receiver<Asked>) {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    let (sender, asked) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(accept(listener, health, sender));
    });
    (port, asked)
}

async fn accept(listener: TcpListener, health: Arc<Health>, sender: Sender<Asked>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((connection, _)) = listener.accept().await {
        let (health, sender) = (health.clone(), sender.clone());
        let answer = service_fn(move |request: Request<Incoming>| {
            let (asked, response) = health.answer(request.uri().path());
            // Nobody listens any more when the test is over.
            let _ = sender.send(asked);
            std::future::ready(Ok::<_, Infallible>(response))
        });
        tokio::spawn(async move {
            auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(connection), answer)
                .await
                .map_err(|error| error.to_string())
        });
    }
}

fn next(asked: &Receiver<Asked>) -> Asked {
    asked.recv_timeout(Duration::from_secs(60)).expect("the probe asks again and again")
}

#[test]
fn a_pod_has_started_is_ready_and_starts_anew_as_http_tcp_and_grpc_say() {
    let health = Arc::new(Health::default());
    let (port, asked) = serve(health.clone());
    // Nobody listens to this port at the pod's address, and as long as it is held here nobody else will.
    let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let door = held.local_addr().unwrap().port();
    health.is_alive.store(true, Ordering::SeqCst);
    let up = Up::start();
    up.apply(&format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  containers:
    - name: main
      image: any
      command: [sleep, '1000']
      ports: [{{name: health, containerPort: {port}}}]
      startupProbe: {{httpGet: {{path: /started, port: health}}, periodSeconds: 1, timeoutSeconds: 60, failureThreshold: 1000}}
      readinessProbe: {{tcpSocket: {{port: {door}}}, periodSeconds: 1, timeoutSeconds: 60}}
      livenessProbe: {{grpc: {{port: {port}}}, periodSeconds: 1, timeoutSeconds: 60, failureThreshold: 1}}
"
    ));
    let of_main = |field: &str| up.field("pod/p", &format!("{{.status.containerStatuses[0].{field}}}"));
    let is_ready = || up.field("pod/p", "{.status.conditions[?(@.type==\"Ready\")].status}");

    up.wait_for("pod/p", "{.status.phase}", "Running");
    assert_eq!([next(&asked), next(&asked)], [Asked::HasStarted; 2], "the others wait for the first");
    assert_eq!((of_main("started").as_str(), is_ready().as_str()), ("false", "False"));

    health.has_started.store(true, Ordering::SeqCst);
    up.wait_for("pod/p", "{.status.containerStatuses[0].started}", "true");
    assert_eq!(is_ready(), "False", "nobody listens at its door");

    let address: Ipv4Addr = up.field("pod/p", "{.status.podIP}").parse().unwrap();
    let open_door = TcpListener::bind((address, door)).unwrap();
    up.kubectl_ok(&["wait", "pod/p", "--for=condition=Ready", "--timeout=60s"]);
    assert_eq!(of_main("restartCount"), "0");

    while next(&asked) != Asked::IsAlive {}
    health.is_alive.store(false, Ordering::SeqCst);
    up.wait_for("pod/p", "{.status.containerStatuses[0].restartCount}", "1");
    assert_eq!(of_main("lastState.terminated.exitCode"), "143", "it was asked to end");
    drop(open_door);
}
