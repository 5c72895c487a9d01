//! Asks a pod: connects to a port, or sends an HTTP request and looks at the beginning of the answer.

use std::net::SocketAddr;
use std::time::Duration;

use krafla_plan::Probe;
use krafla_plan::probe::HttpGet;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Take,
};
use tokio::net::TcpStream;

/// How long a pod may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// How much of an answer is looked at.
const ANSWER_BYTES_MAX: u64 = 10 << 10;

/// Asks a pod. An error says what was wrong, for people.
pub(crate) async fn ask(probe: &Probe) -> Result<(), String> {
    let address = SocketAddr::new(probe.address, probe.port);
    let work = async {
        match &probe.http_get {
            Some(get) => http_get(&address.to_string(), get).await,
            None => {
                TcpStream::connect(address).await.map(drop).map_err(|error| format!("{address}: {error}"))
            }
        }
    };
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("{address}: no answer within {} s", PATIENCE.as_secs())),
    }
}

/// What a server answered, as far as a probe reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status code.
    pub code: u16,
    /// Where it sends whoever asks, if it does.
    pub location: Option<String>,
}

/// Sends a request to `host:port`. An answer from 200 to 399 is a good one; what comes after its first line is not read.
async fn http_get(address: &str, get: &HttpGet) -> Result<(), String> {
    let stream = TcpStream::connect(address).await.map_err(|error| format!("{address}: {error}"))?;
    http_get_over(stream, address, get).await
}

/// The same over a connection that is there already.
async fn http_get_over(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    address: &str,
    get: &HttpGet,
) -> Result<(), String> {
    let mut answer = send(stream, address, get).await.map_err(|error| format!("{address}: {error}"))?;
    match code(&mut answer, address).await? {
        200..400 => Ok(()),
        code => Err(format!("HTTP probe failed with statuscode: {code}")),
    }
}

/// Sends a request to `host:port` over a connection that is there already, and reads as much of the answer as there is to
/// know where it leads.
pub async fn answer_over(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    address: &str,
    get: &HttpGet,
) -> Result<Answer, String> {
    let unread = |error| format!("{address}: {error}");
    let mut answer = send(stream, address, get).await.map_err(unread)?;
    let code = code(&mut answer, address).await?;
    let is_elsewhere = (300..400).contains(&code);
    let location = if is_elsewhere { location(&mut answer).await.map_err(unread)? } else { None };
    Ok(Answer { code, location })
}

/// Sends a request. What is read of the answer is bounded.
async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    address: &str,
    get: &HttpGet,
) -> std::io::Result<Take<BufReader<S>>> {
    stream.write_all(request(address, get).as_bytes()).await?;
    stream.flush().await?;
    Ok(BufReader::new(stream).take(ANSWER_BYTES_MAX))
}

/// The status code, from the first line of an answer.
async fn code(answer: &mut (impl AsyncBufRead + Unpin), address: &str) -> Result<u16, String> {
    let line = next_line(answer).await.map_err(|error| format!("{address}: {error}"))?;
    let code =
        line.strip_prefix("HTTP/").and_then(|rest| rest.split(' ').nth(1)).and_then(|code| code.parse().ok());
    code.ok_or_else(|| format!("{address} does not speak HTTP"))
}

/// Where the headers of an answer lead.
async fn location(answer: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Option<String>> {
    loop {
        let line = next_line(answer).await?;
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("location") => {
                return Ok(Some(value.trim().to_owned()));
            }
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

async fn next_line(answer: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<String> {
    let mut line = Vec::new();
    answer.read_until(b'\n', &mut line).await?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn request(address: &str, get: &HttpGet) -> String {
    // A blank or a line end would be the end of the path or of the header, and the beginning of something else.
    let path = get.path.replace(|c: char| c.is_control() || c == ' ', "%20");
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut headers = format!("GET {slash}{path} HTTP/1.1\r\nConnection: close\r\n");
    let has = |name: &str| get.headers.iter().any(|(of_probe, _)| of_probe.eq_ignore_ascii_case(name));
    for (name, value) in [("Host", address), ("User-Agent", "kube-probe/krafla"), ("Accept", "*/*")] {
        if !has(name) {
            headers += &format!("{name}: {value}\r\n");
        }
    }
    for (name, value) in &get.headers {
        let clean = |text: &str| text.replace(['\r', '\n'], " ");
        headers += &format!("{}: {}\r\n", clean(name), clean(value));
    }
    headers + "\r\n"
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn probe(address: SocketAddr, http_get: Option<HttpGet>) -> Probe {
        Probe { pod: "p1".into(), address: address.ip(), port: address.port(), http_get }
    }

    #[tokio::test]
    async fn a_server_is_well_if_it_says_so() {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\n", Ok(())),
            ("HTTP/1.0 302 Found\r\n\r\n", Ok(())),
            ("HTTP/1.1 503 Busy\r\n\r\n", Err("HTTP probe failed with statuscode: 503".to_owned())),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let serve = async {
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream = BufReader::new(stream);
                let mut request = String::new();
                while !request.ends_with("\r\n\r\n") {
                    stream.read_line(&mut request).await.unwrap();
                }
                stream.write_all(answer.as_bytes()).await.unwrap();
                request
            };
            let headers = vec![("X-Who".to_owned(), "me\r\nEvil: 1".to_owned())];
            let get = HttpGet { path: "health y\r\n".to_owned(), headers };
            let probe = probe(address, Some(get));
            let (request, outcome) = tokio::join!(serve, ask(&probe));
            assert_eq!(outcome, expected);
            assert!(request.starts_with("GET /health%20y%20%20 HTTP/1.1\r\n"), "{request}");
            assert!(request.contains("X-Who: me  Evil: 1\r\n"), "{request}");
        }
    }

    #[tokio::test]
    async fn a_port_at_which_somebody_listens_is_open_and_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(ask(&probe(address, None)).await, Ok(()));
        // Nobody can listen at port 0.
        let nowhere = SocketAddr::new(address.ip(), 0);
        let refused = ask(&probe(nowhere, None)).await.unwrap_err();
        assert!(refused.starts_with("127.0.0.1:0: "), "{refused}");
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_or_never_ends_is_not_waited_for() {
        let get = HttpGet { path: "/".to_owned(), headers: Vec::new() };
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap();
        let outcome = ask(&probe(address, Some(get.clone()))).await;
        assert_eq!(outcome, Err(format!("{address}: no answer within 1 s")));

        let (client, mut server) = tokio::io::duplex(4 << 10);
        let endless = async {
            let mut n_sent = 0;
            while server.write_all(&[b'x'; 1024]).await.is_ok() {
                n_sent += 1024;
            }
            n_sent
        };
        let (n_sent, outcome) = tokio::join!(endless, http_get_over(client, "endless", &get));
        assert_eq!(outcome, Err("endless does not speak HTTP".to_owned()));
        assert!(
            n_sent < 2 * ANSWER_BYTES_MAX + (16 << 10),
            "{n_sent} bytes were read of an answer without end"
        );
    }
}
