//! The API server alone, without controllers, scheduler or node: for trying it, and for replaying recorded requests.
//!
//! ```text
//!   cargo run -p krafla-apiserver --example serve -- [--listen 127.0.0.1:6443] [--data-dir DIR] [--kubeconfig FILE]
//!                                                    [--admission off]
//! ```
//!
//! Beside the kubeconfig it writes `ca.crt` and `token`. Without admission, jobs are stored as on a cluster that lacks
//! Volcano's webhooks.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use krafla_apiserver::admit::{Admission, Volcano};
use krafla_apiserver::http::{gather_noise, write_private};
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, Collector, ServerConfig, SystemEnv, Tokens, serve};

// As in the program itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut listen: SocketAddr = ([127, 0, 0, 1], 0).into();
    let (mut data_dir, mut kubeconfig) = (None, PathBuf::from("kubeconfig"));
    let mut admission = Admission::default().with(Volcano::default());
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--listen" => listen = value.parse()?,
            "--data-dir" => data_dir = Some(PathBuf::from(value)),
            "--kubeconfig" => kubeconfig = value.into(),
            "--admission" if value == "off" => admission = Admission::default(),
            other => return Err(format!("unknown flag {other} {value}; see the top of this file").into()),
        }
    }
    gather_noise();
    let tokens = Arc::new(Tokens::for_now());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(
        ServerConfig { data_dir, ..ServerConfig::new(listen, tokens) },
        admission,
        kubeconfig,
    ))
}

async fn run(config: ServerConfig, admission: Admission, kubeconfig: PathBuf) -> Result<(), Failure> {
    let store = match &config.data_dir {
        Some(dir) => Store::open(dir)?,
        None => Store::in_memory(),
    };
    let env = Arc::new(SystemEnv);
    let api = Api::new(store.clone(), env.clone(), admission);
    api.bootstrap().await?;
    let namespaces = tokio::spawn(api.clone().run_namespaces());
    let collector = tokio::spawn(Collector::new(api.clone()).run());
    let server = serve(api, env, config).await?;
    write_private(&kubeconfig, &server.kubeconfig())?;
    let dir = kubeconfig.parent().map(PathBuf::from).unwrap_or_default();
    write_private(&dir.join("ca.crt"), server.ca_pem())?;
    write_private(&dir.join("token"), server.token())?;
    println!("listening on https://{}; export KUBECONFIG={}", server.address(), kubeconfig.display());
    tokio::signal::ctrl_c().await?;
    namespaces.abort();
    collector.abort();
    server.shutdown().await;
    store.close();
    Ok(())
}
