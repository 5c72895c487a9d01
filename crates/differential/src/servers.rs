//! The two servers: the embedded one in this process, and a real kube-apiserver beside it. Both over HTTPS.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use krafla_apiserver::admit::{Admission, StorageProtection};
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, RunningServer, ServerConfig, SystemEnv, Tokens, serve};
use krafla_recorded::client::Target;
use tempfile::TempDir;

/// The embedded server without controllers: none run beside the real one either.
pub(crate) async fn embedded() -> Result<RunningServer> {
    let env = Arc::new(SystemEnv);
    let api = Api::new(Store::in_memory(), env.clone(), Admission::default().with(StorageProtection));
    api.bootstrap().await.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let listen: SocketAddr = ([127, 0, 0, 1], 0).into();
    let tokens = Arc::new(Tokens::for_now());
    let config = ServerConfig::new(listen, tokens);
    serve(api, env, config).await.context("the embedded server does not start")
}

/// How to reach the embedded server.
pub(crate) fn target(server: &RunningServer) -> Target {
    Target::new(server.address(), server.ca_pem(), server.token())
}

/// A real kube-apiserver with its etcd, as a child of this process.
pub(crate) struct Kubernetes {
    child: Child,
    dir: TempDir,
}

/// Where `scripts/install-tools kube-apiserver` puts it, unless `KUBE_APISERVER` names another.
pub(crate) fn program() -> PathBuf {
    if let Some(program) = std::env::var_os("KUBE_APISERVER") {
        return program.into();
    }
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin/kube-apiserver")
}

impl Kubernetes {
    /// Starts one and waits until it answers. Its files are in memory where the machine offers that.
    pub(crate) fn start() -> Result<Kubernetes> {
        let program = program();
        if !program.exists() {
            bail!("{} does not exist\nfix: scripts/install-tools kube-apiserver", program.display());
        }
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }?;
        let log = std::fs::File::create(dir.path().join("log"))?;
        let mut command = Command::new(program);
        command.arg(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().context("kube-apiserver does not start")?;
        let output = child.stdout.take().context("it has no output")?;
        let kubernetes = Kubernetes { child, dir };
        if !BufReader::new(output).lines().map_while(Result::ok).any(|line| line == "ready") {
            let log = std::fs::read_to_string(kubernetes.dir.path().join("log")).unwrap_or_default();
            bail!("kube-apiserver exited before it was ready: {log}");
        }
        Ok(kubernetes)
    }

    /// How to reach it.
    pub(crate) fn target(&self) -> Result<Target> {
        let read = |name: &str| std::fs::read_to_string(self.dir.path().join(name)).context(name.to_owned());
        let kubeconfig = read("kubeconfig")?;
        let address = kubeconfig.split_once("https://").and_then(|(_, rest)| rest.split('"').next());
        let address = address.context("the kubeconfig has no server")?.parse()?;
        Ok(Target::new(address, &read("apiserver.crt")?, &read("token")?))
    }
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        // It holds nothing that is worth an orderly end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
