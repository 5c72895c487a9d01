//! Connections through a proxy: `proxy-url` of a kubeconfig, or else HTTPS_PROXY, HTTP_PROXY and NO_PROXY.

use std::io;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The longest answer of a proxy that is read.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// A proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    kind: Kind,
    host: String,
    port: u16,
    /// User and password.
    login: Option<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A proxy that takes CONNECT, over TCP or over TLS.
    Http {
        is_private: bool,
    },
    Socks5,
}

impl Proxy {
    /// Reads the URL of a proxy: http, https or socks5. A host without a scheme means http.
    pub fn parse(url: &str) -> Result<Proxy, String> {
        let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let wrong = || format!("{url:?} is not the URL of a proxy, such as http://proxy:3128");
        let uri: Uri = full.parse().map_err(|_| wrong())?;
        let (kind, port) = match uri.scheme_str() {
            Some("http") => (Kind::Http { is_private: false }, 80),
            Some("https") => (Kind::Http { is_private: true }, 443),
            Some("socks5" | "socks5h") => (Kind::Socks5, 1080),
            _ => return Err(format!("{url:?}: the scheme of a proxy must be http, https or socks5")),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let user = uri.authority().and_then(|authority| authority.as_str().rsplit_once('@'));
        let login = user.map(|(user, _)| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            (decoded(name), decoded(password))
        });
        Ok(Proxy { kind, host, port: uri.port_u16().unwrap_or(port), login })
    }

    /// The proxy that the environment names for a server, by the rules of Go's programs. `variable` reads the environment.
    pub fn from_environment(
        server: &Uri,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Proxy>, String> {
        let read = |name: &str| {
            let value = variable(name).or_else(|| variable(&name.to_lowercase()));
            value.filter(|value| !value.is_empty())
        };
        let is_private = server.scheme_str() == Some("https");
        let name = if is_private { "HTTPS_PROXY" } else { "HTTP_PROXY" };
        let Some(url) = read(name) else { return Ok(None) };
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_lowercase();
        let port = server.port_u16().unwrap_or(if is_private { 443 } else { 80 });
        if is_exempt(&host, port, &read("NO_PROXY").unwrap_or_default()) {
            return Ok(None);
        }
        Proxy::parse(&url).map(Some).map_err(|error| format!("{name}: {error}"))
    }

    /// Where to connect.
    pub(crate) fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// The name to verify the proxy by, if it is reached over TLS.
    pub(crate) fn tls_name(&self) -> Option<&str> {
        (self.kind == Kind::Http { is_private: true }).then_some(self.host.as_str())
    }

    /// Asks the proxy at the other end of a stream to connect to a server.
    pub(crate) async fn open<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
        host: &str,
        port: u16,
    ) -> io::Result<()> {
        match self.kind {
            Kind::Http { .. } => self.connect(stream, host, port).await,
            Kind::Socks5 => self.socks5(stream, host, port).await,
        }
    }

    fn refused(&self, why: impl std::fmt::Display) -> io::Error {
        io::Error::other(format!("proxy {}:{}: {why}", self.host, self.port))
    }

    async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
        host: &str,
        port: u16,
    ) -> io::Result<()> {
        let target = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let login = self.login.as_ref().map(|(user, password)| {
            format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")))
        });
        let login = login.unwrap_or_default();
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}\r\n");
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        // Byte by byte: what comes after the answer belongs to the server.
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() > ANSWER_BYTES_MAX {
                return Err(self.refused("the answer is too long"));
            }
            answer.push(stream.read_u8().await.map_err(|error| self.refused(error))?);
        }
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.lines().next().unwrap_or_default();
        match status.split_whitespace().nth(1) {
            Some(code) if code.starts_with('2') => Ok(()),
            _ => Err(self.refused(format_args!("refused to connect to {target}: {status}"))),
        }
    }

    async fn socks5<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
        host: &str,
        port: u16,
    ) -> io::Result<()> {
        const NO_LOGIN: u8 = 0;
        const PASSWORD: u8 = 2;
        let method = if self.login.is_some() { PASSWORD } else { NO_LOGIN };
        stream.write_all(&[5, 1, method]).await?;
        let mut chosen = [0; 2];
        stream.read_exact(&mut chosen).await?;
        if chosen != [5, method] {
            return Err(self.refused("does not accept the credentials"));
        }
        let short = |text: &str| {
            u8::try_from(text.len()).map_err(|_| self.refused(format_args!("{text:?} is too long")))
        };
        if let Some((user, password)) = &self.login {
            let mut login = vec![1, short(user)?];
            login.extend_from_slice(user.as_bytes());
            login.push(short(password)?);
            login.extend_from_slice(password.as_bytes());
            stream.write_all(&login).await?;
            stream.read_exact(&mut chosen).await?;
            if chosen != [1, 0] {
                return Err(self.refused("user and password are wrong"));
            }
        }
        let mut request = vec![5, 1, 0];
        match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => {
                request.push(1);
                request.extend_from_slice(&address.octets());
            }
            Ok(IpAddr::V6(address)) => {
                request.push(4);
                request.extend_from_slice(&address.octets());
            }
            Err(_) => {
                request.extend([3, short(host)?]);
                request.extend_from_slice(host.as_bytes());
            }
        }
        request.extend_from_slice(&port.to_be_bytes());
        stream.write_all(&request).await?;
        let mut head = [0; 4];
        stream.read_exact(&mut head).await?;
        let [_, outcome, _, address] = head;
        if outcome != 0 {
            return Err(self.refused(format_args!("cannot connect to {host}:{port} (SOCKS error {outcome})")));
        }
        let n_bytes = match address {
            1 => 4,
            4 => 16,
            _ => usize::from(stream.read_u8().await?),
        };
        let mut bound = vec![0; n_bytes.saturating_add(2)];
        stream.read_exact(&mut bound).await.map(drop)
    }
}

/// A part of a URL without its percent signs.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (first, hex) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            (byte, _) => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a server is reached without a proxy: it is this machine, or NO_PROXY lists it, its domain or its network.
fn is_exempt(host: &str, port: u16, no_proxy: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    no_proxy.split(',').map(|entry| entry.trim().to_lowercase()).filter(|entry| !entry.is_empty()).any(
        |entry| {
            if entry == "*" {
                return true;
            }
            if let (Some(address), Some((network, bits))) = (address, entry.split_once('/')) {
                return is_within(address, network, bits);
            }
            let (name, wanted_port) = match entry.rsplit_once(':') {
                Some((name, port)) if !name.contains(':') => (name, port.parse::<u16>().ok()),
                _ => (entry.as_str(), None),
            };
            if wanted_port.is_some_and(|wanted| wanted != port) {
                return false;
            }
            let domain = name.strip_prefix("*.").or_else(|| name.strip_prefix('.'));
            match domain {
                Some(domain) => host.strip_suffix(domain).is_some_and(|before| before.ends_with('.')),
                None => host == name || host.strip_suffix(name).is_some_and(|before| before.ends_with('.')),
            }
        },
    )
}

/// Whether an address is in a network such as 10.0.0.0/8.
fn is_within(address: IpAddr, network: &str, bits: &str) -> bool {
    let (Ok(network), Ok(n_bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let ((address, n_max), (network, n_max_of_network)) = (number(address), number(network));
    let mask = u128::MAX.checked_shl(128_u32.saturating_sub(n_bits)).unwrap_or(0);
    n_max == n_max_of_network && n_bits <= n_max && (address & mask) == (network & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_a_url() {
        let shown = |url: &str| match Proxy::parse(url) {
            Ok(proxy) => format!("{:?} {}:{} {:?}", proxy.kind, proxy.host, proxy.port, proxy.login),
            Err(error) => error,
        };
        assert_eq!(shown("http://proxy:3128"), "Http { is_private: false } proxy:3128 None");
        assert_eq!(shown("proxy"), "Http { is_private: false } proxy:80 None");
        assert_eq!(
            shown("https://u:p%40x@proxy"),
            r#"Http { is_private: true } proxy:443 Some(("u", "p@x"))"#
        );
        assert_eq!(shown("socks5://[::1]:9"), "Socks5 ::1:9 None");
        assert!(shown("ftp://proxy").contains("must be http, https or socks5"));
        assert!(shown("http://").contains("is not the URL of a proxy"));
    }

    #[test]
    fn the_environment_names_a_proxy_and_exceptions() {
        let chosen = |server: &str, variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let proxy = Proxy::from_environment(&server.parse().unwrap(), variable);
            proxy.map(|proxy| proxy.map(|proxy| proxy.host).unwrap_or_default()).unwrap_or_else(|error| error)
        };
        let private = ("HTTPS_PROXY", "http://p:1");
        assert_eq!(chosen("https://a.example.com", &[private]), "p");
        assert_eq!(chosen("https://a.example.com", &[("https_proxy", "q:1")]), "q");
        assert_eq!(chosen("http://a.example.com", &[private]), "");
        assert_eq!(chosen("http://a.example.com", &[("HTTP_PROXY", "r:1")]), "r");
        assert_eq!(chosen("https://127.0.0.1:6443", &[private]), "");
        assert_eq!(chosen("https://localhost", &[private]), "");
        assert!(chosen("https://a", &[("HTTPS_PROXY", "ftp://x")]).starts_with("HTTPS_PROXY: "));
        for (list, server, is_direct) in [
            ("example.com", "https://a.example.com", true),
            (".example.com", "https://a.example.com", true),
            (".example.com", "https://example.com", false),
            ("*.example.com", "https://a.example.com", true),
            ("ple.com", "https://a.example.com", false),
            ("a.example.com:6443", "https://a.example.com", false),
            ("x, a.example.com:443", "https://a.example.com", true),
            ("10.0.0.0/8", "https://10.1.2.3", true),
            ("10.0.0.0/8", "https://11.1.2.3", false),
            ("fd00::/8", "https://[fd00::1]", true),
            ("*", "https://a", true),
        ] {
            assert_eq!(
                chosen(server, &[private, ("NO_PROXY", list)]).is_empty(),
                is_direct,
                "{list} {server}"
            );
        }
    }

    /// What a proxy that answers like this is sent, and what comes of it.
    async fn played(url: &str, answers: &[&[u8]]) -> (Vec<u8>, Result<(), String>) {
        let (mut ours, mut theirs) = tokio::io::duplex(4096);
        let proxy = Proxy::parse(url).unwrap();
        let opened = async { proxy.open(&mut ours, "server", 6443).await.map_err(|error| error.to_string()) };
        let answered = async {
            let mut sent = Vec::new();
            for answer in answers {
                let mut piece = [0; 512];
                let n_bytes = theirs.read(&mut piece).await.unwrap();
                sent.extend_from_slice(&piece[..n_bytes]);
                theirs.write_all(answer).await.unwrap();
            }
            sent
        };
        let (opened, sent) = tokio::join!(opened, answered);
        (sent, opened)
    }

    #[tokio::test]
    async fn a_proxy_is_asked_to_connect() {
        let (sent, opened) = played("http://u:p@proxy", &[b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n"]).await;
        let request =
            "CONNECT server:6443 HTTP/1.1\r\nHost: server:6443\r\nProxy-Authorization: Basic dTpw\r\n\r\n";
        assert_eq!((String::from_utf8(sent).unwrap().as_str(), opened), (request, Ok(())));
        let (_, refused) = played("http://proxy", &[b"HTTP/1.1 403 Forbidden\r\n\r\n"]).await;
        assert_eq!(
            refused.unwrap_err(),
            "proxy proxy:80: refused to connect to server:6443: HTTP/1.1 403 Forbidden"
        );
    }

    #[tokio::test]
    async fn a_socks_proxy_is_asked_for_the_name() {
        let bound = [5, 0, 0, 1, 127, 0, 0, 1, 0, 9];
        let (sent, opened) = played("socks5://proxy", &[&[5, 0], &bound]).await;
        assert_eq!(opened, Ok(()));
        assert_eq!(sent, [&[5, 1, 0, 5, 1, 0, 3, 6][..], b"server", &6443_u16.to_be_bytes()].concat());
        let (_, refused) = played("socks5://proxy", &[&[5, 0], &[5, 5, 0, 1]]).await;
        assert_eq!(refused.unwrap_err(), "proxy proxy:1080: cannot connect to server:6443 (SOCKS error 5)");
        let (_, refused) = played("socks5://u:p@proxy", &[&[5, 2], &[1, 1]]).await;
        assert_eq!(refused.unwrap_err(), "proxy proxy:1080: user and password are wrong");
    }
}
