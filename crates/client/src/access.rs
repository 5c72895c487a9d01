//! Access to a cluster: its address, the CAs that we trust, and our credentials.

use std::path::{Path, PathBuf};

use http::Uri;

use crate::bearer::Login;
use crate::kubeconfig;
use crate::proxy::Proxy;
use krafla_keys::tls::Certificate;

/// Where Kubernetes puts what a pod needs to reach the API server.
const SERVICE_ACCOUNT_DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// All that is needed to reach a cluster.
#[derive(Clone, Debug)]
pub struct Access {
    /// Scheme, host, port, and what comes before `/api`.
    pub server: Uri,
    /// The authorities that may vouch for the server, as PEM; empty for those that the machine trusts.
    pub authorities: Vec<u8>,
    /// The name that the server's certificate must have, where it is not that of the address.
    pub server_name: Option<String>,
    /// Whether the server's certificate is accepted as it is.
    pub skips_verification: bool,
    /// The proxy of the kubeconfig; without one, the environment may name it.
    pub proxy: Option<Proxy>,
    /// Who asks.
    pub credentials: Credentials,
    /// The context of the kubeconfig that this is; empty if it is not from one.
    pub context: String,
    /// The namespace that is meant where none is named.
    pub namespace: String,
    /// Where all this is from, for messages.
    pub origin: String,
}

/// Who asks.
#[derive(Clone, Default)]
pub struct Credentials {
    /// A certificate that is shown to the server.
    pub certificate: Option<Certificate>,
    /// A token that goes with every request.
    pub token: Option<Token>,
}

/// A token that goes with every request.
#[derive(Clone, PartialEq, Eq)]
pub enum Token {
    /// One that stays as it is.
    Fixed(String),
    /// One in a file, where another program renews it.
    File(PathBuf),
    /// One that a command prints.
    Login(Box<Login>),
}

impl std::fmt::Debug for Credentials {
    /// Secrets do not belong into logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (certificate, token) = (self.certificate.is_some(), self.token.is_some());
        f.debug_struct("Credentials").field("certificate", &certificate).field("token", &token).finish()
    }
}

/// Why a cluster can not be reached, before it has been asked anything.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A file can not be read.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why. Not as a source: whoever prints those too would say it twice.
        why: std::io::Error,
    },
    /// A file is something else than a kubeconfig.
    #[error("{}: not a kubeconfig: {why}", path.display())]
    NotAKubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A kubeconfig says something that can not be used.
    #[error("{place}: {message}")]
    Unusable {
        /// File and entry.
        place: String,
        /// What is wrong, and what to do about it.
        message: String,
    },
    /// No file sets a current context.
    #[error("{place}: current-context is not set: choose one with `kubectl config use-context`")]
    NoContext {
        /// The files.
        place: String,
    },
    /// There is no kubeconfig at all.
    #[error("{0}")]
    Missing(String),
}

impl AccessError {
    pub(crate) fn unusable(place: impl std::fmt::Display, message: impl std::fmt::Display) -> AccessError {
        AccessError::Unusable { place: place.to_string(), message: message.to_string() }
    }
}

impl Access {
    /// The cluster that one kubeconfig names, by its current context.
    pub fn of_file(path: &Path) -> Result<Access, AccessError> {
        Access::of_context(&[path.to_owned()], None)
    }

    /// The cluster that a list of kubeconfigs names, as in the variable `KUBECONFIG`: files that are not there are
    /// passed over, and the first that says something is right.
    pub fn of_list(files: &std::ffi::OsStr) -> Result<Access, AccessError> {
        let there: Vec<PathBuf> = std::env::split_paths(files).filter(|file| file.is_file()).collect();
        if there.is_empty() {
            let message = format!("no kubeconfig: there is no file {}", Path::new(files).display());
            return Err(AccessError::Missing(message));
        }
        Access::of_context(&there, None)
    }

    /// The cluster of a context of kubeconfigs that are read as one: of the named context, or else of the current one.
    pub fn of_context(files: &[PathBuf], context: Option<&str>) -> Result<Access, AccessError> {
        kubeconfig::read(files, context)
    }

    /// The cluster in whose pod this program runs.
    pub fn of_this_pod() -> Result<Access, AccessError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let address = variable("KUBERNETES_SERVICE_HOST")
            .zip(variable("KUBERNETES_SERVICE_PORT"))
            .ok_or_else(|| {
                let message = "no cluster: this is not a pod (KUBERNETES_SERVICE_HOST is not set), so give a \
                               kubeconfig with --kubeconfig or KUBECONFIG";
                AccessError::Missing(message.to_owned())
            })?;
        of_service_account(&address.0, &address.1, Path::new(SERVICE_ACCOUNT_DIR))
    }
}

fn of_service_account(host: &str, port: &str, dir: &Path) -> Result<Access, AccessError> {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let address = format!("https://{host}:{port}");
    let server = address.parse().map_err(|error| AccessError::unusable(&address, error))?;
    let authorities = read(&dir.join("ca.crt"))?;
    let token = dir.join("token");
    // It is read again and again later on, but that it is there has to be said now.
    read(&token)?;
    Ok(Access {
        server,
        authorities,
        server_name: None,
        skips_verification: false,
        proxy: None,
        credentials: Credentials { certificate: None, token: Some(Token::File(token)) },
        context: String::new(),
        namespace: own_namespace(dir),
        origin: "the service account of this pod".to_owned(),
    })
}

/// The namespace of this pod, as Kubernetes writes it beside the token.
fn own_namespace(dir: &Path) -> String {
    let namespace = std::fs::read_to_string(dir.join("namespace")).unwrap_or_default();
    Some(namespace.trim()).filter(|name| !name.is_empty()).unwrap_or("default").to_owned()
}

/// A file of an access is small: certificates, keys and tokens.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Reads a file that belongs to an access.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, AccessError> {
    let failed = |why| AccessError::File { path: path.to_owned(), why };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > FILE_BYTES_MAX {
        return Err(failed(std::io::Error::other(format!("larger than {} MiB", FILE_BYTES_MAX >> 20))));
    }
    std::fs::read(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_reaches_its_cluster_by_its_service_account() {
        let dir = tempfile::tempdir().unwrap();
        let missing = of_service_account("10.0.0.1", "443", dir.path()).unwrap_err().to_string();
        assert!(missing.contains("ca.crt"), "{missing}");
        std::fs::write(dir.path().join("ca.crt"), "CA").unwrap();
        std::fs::write(dir.path().join("token"), "T").unwrap();
        let access = of_service_account("fd00::1", "443", dir.path()).unwrap();
        assert_eq!(access.server, "https://[fd00::1]:443");
        assert_eq!(access.authorities, b"CA");
        assert!(access.credentials.token == Some(Token::File(dir.path().join("token"))));
        assert_eq!(access.namespace, "default");
        std::fs::write(dir.path().join("namespace"), "ml").unwrap();
        assert_eq!(of_service_account("fd00::1", "443", dir.path()).unwrap().namespace, "ml");
    }
}
