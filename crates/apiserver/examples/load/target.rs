//! The servers that are measured.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

use crate::Failure;
use crate::client::Client;

/// How long a server may take to be ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server, and how to be let in.
pub(crate) struct Target {
    /// Host and port.
    pub(crate) address: String,
    /// Whom to trust.
    pub(crate) tls: Arc<ClientConfig>,
    /// What to show.
    pub(crate) token: String,
}

impl Target {
    /// A server at a URL, whose authority has one of these certificates.
    pub(crate) fn new(url: &str, ca_pem: &[u8], token: String) -> Result<Self, Failure> {
        let address = url.strip_prefix("https://").ok_or("the server's address must begin with https://")?;
        let mut roots = RootCertStore::empty();
        // A kube-apiserver that makes its own certificate writes it and its authority's to one file.
        for certificate in CertificateDer::pem_slice_iter(ca_pem) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let address = address.trim_end_matches('/').to_owned();
        Ok(Self { address, tls: Arc::new(tls), token })
    }

    /// The name that the certificate must carry.
    pub(crate) fn server_name(&self) -> Result<ServerName<'static>, Failure> {
        let (host, _) = self.address.rsplit_once(':').ok_or("the server's address needs a port")?;
        Ok(ServerName::try_from(host.to_owned())?)
    }
}

/// A server of ours on a directory of its own; it ends with this value.
pub(crate) struct Embedded {
    process: Child,
    target: Target,
    /// From the start of the process to the first answer that it is ready.
    pub(crate) ready_after: Duration,
    _dir: TempDir,
}

impl Embedded {
    /// Starts one and waits until it says that it is ready.
    pub(crate) async fn start(parent: &Path) -> Result<Self, Failure> {
        let dir = tempfile::tempdir_in(parent)?;
        let program = std::env::current_exe()?.with_file_name("serve");
        let kubeconfig = dir.path().join("kubeconfig");
        let started = Instant::now();
        let mut process = Command::new(program)
            .args(["--data-dir".as_ref(), dir.path().join("data").as_os_str()])
            .args(["--kubeconfig".as_ref(), kubeconfig.as_os_str()])
            .stdout(Stdio::null())
            .spawn()?;
        let target = loop {
            match ready(&kubeconfig).await {
                Ok(target) => break target,
                Err(error) if started.elapsed() > PATIENCE => {
                    process.kill()?;
                    return Err(format!("the embedded server did not become ready: {error}").into());
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        Ok(Self { process, target, ready_after: started.elapsed(), _dir: dir })
    }

    /// Where it is.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// How much memory it holds.
    pub(crate) fn resident_bytes(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kibibytes * 1024)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to be done about any failure here.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn ready(kubeconfig: &Path) -> Result<Target, Failure> {
    let text = std::fs::read_to_string(kubeconfig)?;
    let server = text.lines().find_map(|line| line.trim().strip_prefix("server: ")).ok_or("no server yet")?;
    let token = std::fs::read_to_string(kubeconfig.with_file_name("token"))?;
    let target = Target::new(server, &std::fs::read(kubeconfig.with_file_name("ca.crt"))?, token)?;
    Client::connect(&target).await?.get("/readyz").await?;
    Ok(target)
}
