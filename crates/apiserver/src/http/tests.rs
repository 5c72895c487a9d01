//! The server on connections within this process.

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::SystemEnv;
use crate::admit::Admission;
use crate::store::Store;
use crate::tokens::Tokens;

/// A server that works on so many requests at once, and waits so long for bodies. It goes on as long as somebody holds
/// the sender.
async fn server(in_flight: usize, body_within: Duration) -> (Arc<Context>, tokio::sync::watch::Sender<bool>) {
    let env = Arc::new(SystemEnv);
    let api = Api::new(Store::in_memory(), env.clone(), Admission::default());
    api.bootstrap().await.unwrap();
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let tokens = Arc::new(Tokens::for_now());
    let context = Context {
        api,
        env,
        credentials: Credentials { token: "secret".to_owned(), tokens, users: Vec::new() },
        allows_anonymous: true,
        audit: None,
        address: String::new(),
        pod_access: None,
        in_flight: Semaphore::new(in_flight),
        turns: Default::default(),
        body_within,
        metrics: Metrics::new(),
        openapi: Default::default(),
        aggregation: aggregation::Aggregation::new(certificates::FrontProxy::make("").unwrap()),
        controllers: None,
        stopping,
    };
    (Arc::new(context), stop)
}

fn connect(server: &Arc<Context>) -> DuplexStream {
    let (client, served) = duplex(64 * 1024);
    let context = server.clone();
    let service = service_fn(move |request| {
        let context = context.clone();
        async move { Ok::<_, std::convert::Infallible>(context.answer(request, &Default::default()).await) }
    });
    tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(served), service));
    client
}

/// The beginning of a request, up to its body.
fn head(method: &str, length: usize) -> String {
    format!(
        "{method} /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\
         Authorization: Bearer secret\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
}

async fn answer(mut stream: DuplexStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn list(server: &Arc<Context>) -> String {
    let mut stream = connect(server);
    stream.write_all(head("GET", 0).as_bytes()).await.unwrap();
    answer(stream).await
}

/// Asks until the answer has a code. Each question gives everybody else a turn.
async fn list_until(server: &Arc<Context>, code: &str) -> String {
    loop {
        let answer = list(server).await;
        if answer.starts_with(&format!("HTTP/1.1 {code}")) {
            return answer;
        }
    }
}

#[tokio::test]
async fn who_comes_when_too_many_are_being_served_is_told_to_come_again() {
    let (server, _stop) = server(1, BODY_WITHIN).await;
    let body = r#"{"metadata":{"name":"a"}}"#;
    let mut slow = connect(&server);
    slow.write_all(head("POST", body.len()).as_bytes()).await.unwrap();
    let refused = list_until(&server, "429").await;
    assert!(refused.contains(r#""reason":"TooManyRequests""#), "{refused}");
    assert!(refused.to_lowercase().contains("retry-after: 1"), "{refused}");
    slow.write_all(body.as_bytes()).await.unwrap();
    assert!(answer(slow).await.starts_with("HTTP/1.1 201"), "who was let in is served");
    assert!(list_until(&server, "200").await.contains(r#""name":"a""#));
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_not_waited_for() {
    let (server, _stop) = server(1, Duration::from_millis(1)).await;
    let mut slow = connect(&server);
    slow.write_all(head("POST", 100).as_bytes()).await.unwrap();
    let refused = answer(slow).await;
    assert!(refused.starts_with("HTTP/1.1 504") && refused.contains(r#""reason":"Timeout""#), "{refused}");
    assert!(list_until(&server, "200").await.contains(r#""items":"#));
}

#[tokio::test]
async fn who_deletes_all_jobs_is_told_that_their_pods_stay() {
    let (server, _stop) = server(1, BODY_WITHIN).await;
    let jobs = head("DELETE", 0).replace("/api/v1", "/apis/batch/v1").replace("configmaps", "jobs");
    let mut stream = connect(&server);
    stream.write_all(jobs.as_bytes()).await.unwrap();
    let deleted = answer(stream).await;
    assert!(deleted.starts_with("HTTP/1.1 200"), "{deleted}");
    assert!(deleted.contains("299 - \"child pods are preserved by default"), "{deleted}");
    let mut stream = connect(&server);
    stream.write_all(jobs.replace("jobs", "jobs?propagationPolicy=Background").as_bytes()).await.unwrap();
    assert!(!answer(stream).await.contains("child pods"));
}

#[tokio::test]
async fn a_watch_may_ask_for_more_time_than_there_is() {
    let (server, _stop) = server(1, BODY_WITHIN).await;
    for seconds in ["9223372036854775807", "9223372036", "1"] {
        let watch =
            head("GET", 0).replace("configmaps", &format!("configmaps?watch=1&timeoutSeconds={seconds}"));
        let mut stream = connect(&server);
        stream.write_all(watch.as_bytes()).await.unwrap();
        let mut begin = [0; 15];
        stream.read_exact(&mut begin).await.unwrap();
        assert_eq!(std::str::from_utf8(&begin), Ok("HTTP/1.1 200 OK"), "{seconds}");
    }
}

#[tokio::test]
async fn a_user_with_many_requests_does_not_keep_others_out() {
    let (server, _stop) = server(IN_FLIGHT_MAX, BODY_WITHIN).await;
    let taken: Vec<_> =
        std::iter::from_fn(|| server.turns.take("krafla:admin", IN_FLIGHT_OF_USER_MAX)).collect();
    let refused = list(&server).await;
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(refused.to_lowercase().contains("retry-after: 1"), "{refused}");
    assert!(server.turns.take("another", IN_FLIGHT_OF_USER_MAX).is_some());
    drop(taken);
    assert!(list(&server).await.starts_with("HTTP/1.1 200"));
}
