//! The token that goes with requests: from a kubeconfig, from a file that is renewed, or from a login command, which may print a
//! client certificate instead.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderValue;
use jiff::Timestamp;
use krafla_cluster::ClientError;
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::access::Token;
use crate::identity::Identity;

/// How long a token from a file is used before the file is read again.
const FILE_FRESH: Duration = Duration::from_secs(60);
/// How long a login command may take: it may ask a server on the network.
const LOGIN_PATIENCE: Duration = Duration::from_secs(60);
/// How long before a token expires it is replaced.
const EXPIRY_MARGIN: Duration = Duration::from_secs(10);
/// The most that a login command may print.
const LOGIN_BYTES_MAX: usize = 1 << 20;

/// A command that logs in and prints a token or a client certificate: an `exec` plugin of a kubeconfig, such as `aws eks get-token`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Login {
    /// The version of the protocol.
    pub api_version: String,
    /// The program: a name on the PATH, or a path.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets besides those of this process.
    pub env: Vec<Variable>,
    /// What to do where the program is not installed.
    pub install_hint: String,
}

/// A variable of a login command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Variable {
    name: String,
    value: String,
}

/// What a login command prints.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    status: Option<Status>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    token: String,
    client_certificate_data: String,
    client_key_data: String,
    expiration_timestamp: Option<Timestamp>,
}

/// What goes with a request.
pub(crate) struct Credential {
    pub(crate) header: Option<HeaderValue>,
    /// Connections that were made before show another certificate.
    pub(crate) has_new_certificate: bool,
}

/// The token of a client.
pub(crate) struct Bearer {
    token: Token,
    /// The certificate of a login command.
    identity: Arc<Identity>,
    /// What was last read or printed, and until when it is used.
    fresh: Mutex<Option<Fresh>>,
}

struct Fresh {
    header: Option<HeaderValue>,
    until: Option<Instant>,
}

impl Bearer {
    pub(crate) fn new(token: Token, identity: Arc<Identity>) -> Bearer {
        Bearer { token, identity, fresh: Mutex::new(None) }
    }

    /// The header with the token, if there is one. Requests wait for each other, so that a login command runs once for all.
    pub(crate) async fn credential(&self) -> Result<Credential, ClientError> {
        let mut fresh = self.fresh.lock().await;
        if let Some(Fresh { header, until }) = &*fresh
            && until.is_none_or(|until| Instant::now() < until)
        {
            return Ok(Credential { header: header.clone(), has_new_certificate: false });
        }
        let mut has_new_certificate = false;
        let (text, until) = match &self.token {
            Token::Fixed(token) => (token.clone(), None),
            Token::File(file) => {
                let text = std::fs::read_to_string(file).map_err(|error| {
                    ClientError::Unknown(format!("cannot read the token {}: {error}", file.display()))
                })?;
                (text, Some(Instant::now() + FILE_FRESH))
            }
            Token::Login(login) => {
                let status = login.log_in().await.map_err(ClientError::Unknown)?;
                if !status.client_certificate_data.is_empty() {
                    let shown = self.identity.replace(
                        status.client_certificate_data.as_bytes(),
                        status.client_key_data.as_bytes(),
                    );
                    shown.map_err(|why| {
                        let name = login.command.display();
                        ClientError::Unknown(format!(
                            "the login command {name} printed an unusable certificate: {why}"
                        ))
                    })?;
                    has_new_certificate = true;
                }
                (status.token, status.expiration_timestamp.map(until))
            }
        };
        let header = match text.trim() {
            "" => None,
            text => {
                let mut header = HeaderValue::try_from(format!("Bearer {text}"))
                    .map_err(|_| ClientError::Unknown("the token is not text".to_owned()))?;
                header.set_sensitive(true);
                Some(header)
            }
        };
        *fresh = Some(Fresh { header: header.clone(), until });
        Ok(Credential { header, has_new_certificate })
    }

    /// The server refused the token. Returns whether there may be a better one.
    pub(crate) async fn forget(&self) -> bool {
        *self.fresh.lock().await = None;
        matches!(self.token, Token::File(_) | Token::Login(_))
    }
}

impl Login {
    /// Logs in. The answer has a token, or a certificate, or both.
    async fn log_in(&self) -> Result<Status, String> {
        let name = self.command.display();
        let request = json!({
            "apiVersion": self.api_version,
            "kind": "ExecCredential",
            "spec": { "interactive": false },
        });
        let mut command = Command::new(&self.command);
        command.args(&self.args).envs(self.env.iter().map(|it| (&it.name, &it.value)));
        command.env("KUBERNETES_EXEC_INFO", request.to_string()).stdin(Stdio::null()).kill_on_drop(true);
        let output = match tokio::time::timeout(LOGIN_PATIENCE, command.output()).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => {
                let hint = if self.install_hint.is_empty() { "" } else { "; fix: " };
                return Err(format!(
                    "cannot run the login command {name}: {error}{hint}{}",
                    self.install_hint.trim()
                ));
            }
            Err(_) => {
                return Err(format!("the login command {name} did not finish within {LOGIN_PATIENCE:?}"));
            }
        };
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("the login command {name} failed ({}): {}", output.status, said.trim()));
        }
        if output.stdout.len() > LOGIN_BYTES_MAX {
            return Err(format!("the login command {name} printed more than {LOGIN_BYTES_MAX} bytes"));
        }
        let answer: Answer = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("the login command {name} did not print an ExecCredential: {error}"))?;
        let status = answer.status.unwrap_or_default();
        match (status.token.is_empty(), status.client_certificate_data.is_empty()) {
            (true, true) => Err(format!(
                "the login command {name} printed no token (status.token) and no certificate \
                 (status.clientCertificateData)"
            )),
            (_, false) if status.client_key_data.is_empty() => Err(format!(
                "the login command {name} printed a certificate without its key (status.clientKeyData)"
            )),
            _ => Ok(status),
        }
    }
}

/// Until when a token is used that expires at a moment.
fn until(expires_at: Timestamp) -> Instant {
    let left = expires_at.duration_since(Timestamp::now());
    Instant::now() + Duration::try_from(left).unwrap_or_default().saturating_sub(EXPIRY_MARGIN)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A login command that prints what `script` says, and how often it ran, as its token.
    fn login(dir: &Path, script: &str) -> Bearer {
        let counted = format!("echo x >> {0}/runs; n=$(wc -l < {0}/runs); {script}", dir.display());
        let login = Login {
            api_version: "client.authentication.k8s.io/v1".to_owned(),
            command: "sh".into(),
            args: vec!["-c".to_owned(), counted],
            env: vec![Variable { name: "WHO".to_owned(), value: "me".to_owned() }],
            install_hint: String::new(),
        };
        Bearer::new(Token::Login(Box::new(login)), Arc::default())
    }

    async fn header(bearer: &Bearer) -> String {
        match bearer.credential().await {
            Ok(Credential { header: Some(header), .. }) => header.to_str().unwrap().to_owned(),
            Ok(Credential { header: None, has_new_certificate }) => {
                format!("new certificate: {has_new_certificate}")
            }
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn a_login_command_runs_once_until_its_token_expires_or_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let bearer = login(dir.path(), r#"echo "{\"status\":{\"token\":\"$WHO-$n\"}}""#);
        assert_eq!(header(&bearer).await, "Bearer me-1");
        assert_eq!(header(&bearer).await, "Bearer me-1");
        assert!(bearer.forget().await);
        assert_eq!(header(&bearer).await, "Bearer me-2");

        let dir = tempfile::tempdir().unwrap();
        let script =
            r#"echo "{\"status\":{\"token\":\"$n\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"}}""#;
        let bearer = login(dir.path(), script);
        assert_eq!(header(&bearer).await, "Bearer 1");
        assert_eq!(header(&bearer).await, "Bearer 2");
    }

    #[tokio::test]
    async fn a_login_command_may_print_a_certificate_which_is_shown_until_it_expires() {
        let dir = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate =
            rcgen::CertificateParams::new(vec!["me".to_owned()]).unwrap().self_signed(&key).unwrap();
        let status =
            json!({ "clientCertificateData": certificate.pem(), "clientKeyData": key.serialize_pem() });
        let answer = dir.path().join("answer");
        std::fs::write(&answer, json!({ "status": status }).to_string()).unwrap();
        let bearer = login(dir.path(), &format!("cat {}", answer.display()));
        assert_eq!(header(&bearer).await, "new certificate: true");
        assert!(rustls::client::ResolvesClientCert::has_certs(&*bearer.identity));
        assert_eq!(header(&bearer).await, "new certificate: false");
        assert!(bearer.forget().await);
        assert_eq!(header(&bearer).await, "new certificate: true");
    }

    #[tokio::test]
    async fn a_login_command_is_told_what_is_asked_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let script =
            r#"case "$KUBERNETES_EXEC_INFO" in *ExecCredential*) echo '{"status":{"token":"t"}}';; esac"#;
        assert_eq!(header(&login(dir.path(), script)).await, "Bearer t");
    }

    #[tokio::test]
    async fn a_login_command_that_fails_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let said = async |script: &str| header(&login(dir.path(), script)).await;
        assert!(said("echo no account >&2; exit 3").await.contains("failed (exit status: 3): no account"));
        assert!(said("echo hello").await.contains("did not print an ExecCredential"));
        assert!(said("echo '{}'").await.contains("printed no token"));
        let half = said(r#"echo '{"status":{"clientCertificateData":"x"}}'"#).await;
        assert!(half.contains("without its key"), "{half}");
        let wrong = said(r#"echo '{"status":{"clientCertificateData":"x","clientKeyData":"y"}}'"#).await;
        assert!(wrong.contains("printed an unusable certificate"), "{wrong}");
        let missing = Login {
            command: "krafla-no-such-program".into(),
            install_hint: "install it".to_owned(),
            ..Login::default()
        };
        let missing = header(&Bearer::new(Token::Login(Box::new(missing)), Arc::default())).await;
        assert!(
            missing.contains("cannot run the login command") && missing.contains("fix: install it"),
            "{missing}"
        );
    }
}
