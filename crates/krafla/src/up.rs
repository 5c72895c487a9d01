//! `krafla up`: a cluster that stays.

use std::process::ExitCode;

use anyhow::Result;
use krafla_node::Mode;

use crate::cli;
use crate::cluster::{self, Cluster};
use crate::run::Signals;
use crate::screen::print;

/// A cluster goes on though nobody hears what it says.
fn say(line: &str) {
    let _ = print(&format!("{line}\n"));
}

/// Keeps a cluster until somebody stops it.
pub(crate) async fn up(args: cli::Up) -> Result<ExitCode> {
    let mut signals = Signals::new()?;
    let config = cluster::Config {
        settings: args.admission.settings()?,
        data_dir: args.data_dir.clone(),
        node_dir: args.data_dir.join("node"),
        in_memory: args.in_memory,
        workdir: cluster::workdir(&args.workdir)?,
        capacity: args.capacity,
        simulate: args.simulate,
        reclaims: args.reclaim,
        preempts: args.preempt,
        has_controllers: !args.without_controllers,
        // Objects in memory are gone with krafla, and nothing could take their containers over.
        mode: if args.in_memory { Mode::EndWithNode } else { Mode::OutliveNode },
        is_served: true,
    };
    let mut cluster = Cluster::start(config).await?;
    let server = cluster.serve(args.listen, &args.data_dir).await?;
    let kubeconfig = args.kubeconfig.unwrap_or_else(|| args.data_dir.join("kubeconfig"));
    let kubeconfig = cluster::absolute(&kubeconfig)?;
    cluster::write_kubeconfig(&server, &kubeconfig)?;
    let until_stopped = async {
        // Whoever is told that it is ready may ask at once what became of a pod.
        cluster.until_pods_can_run().await;
        say(&format!("ready: https://{}", server.address()));
        say(&format!("use it with: export KUBECONFIG={}", kubeconfig.display()));
        if let Err(error) = server.by_name() {
            let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            let remedy = "run as root, or set the sysctl net.ipv4.ip_unprivileged_port_start to 443";
            say(&format!(
                "pods do not find this server as kubernetes.default.svc, only at $KUBERNETES_SERVICE_HOST: {error}: \
                 {why}; fix: {remedy}"
            ));
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = until_stopped => {}
        () = signals.any() => {}
    }
    say("stopping");
    server.shutdown().await;
    cluster.stop(say, signals.any()).await;
    Ok(ExitCode::SUCCESS)
}
