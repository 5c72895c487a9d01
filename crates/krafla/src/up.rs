//! `krafla up`: a cluster that stays.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use krafla_node::Mode;

use crate::background;
use crate::cli;
use crate::cluster::{self, Cluster};
use crate::data_dir;
use crate::run::Signals;
use crate::run_dir::RunDir;
use crate::screen::print;

/// A cluster goes on though nobody hears what it says.
fn say(line: &str) {
    let _ = print(&format!("{line}\n"));
}

/// The node's directory of a cluster in memory. It goes with the cluster.
fn own_node_dir(data_dir: &Path) -> Result<RunDir> {
    data_dir::prepare(data_dir)?;
    let dir = RunDir::make_in(data_dir);
    dir.with_context(|| format!("cannot create a directory for pods in {}", data_dir.display()))
}

/// Keeps a cluster until somebody stops it.
pub(crate) async fn up(args: cli::Up) -> Result<ExitCode> {
    if args.detach {
        return background::detach(&args).await;
    }
    if args.detached {
        // The terminal that started it may go away. Without a session of its own it would end then, but it runs.
        let _ = rustix::process::setsid();
    }
    let mut signals = Signals::new()?;
    let access = args.access.read()?;
    // Objects in memory are gone with krafla. So are the files of their pods and claims, which are kept apart from those of a cluster on disk.
    let in_memory = if args.in_memory { Some(own_node_dir(&args.data_dir)?) } else { None };
    let node_dir = in_memory.as_ref().map_or_else(|| args.data_dir.join("node"), |dir| dir.path().to_owned());
    let config = cluster::Config {
        settings: args.admission.settings()?,
        authorization: args.access.authorization_mode.into(),
        data_dir: args.data_dir.clone(),
        node_dir,
        in_memory: args.in_memory,
        workdir: cluster::workdir(&args.workdir)?,
        capacity: args.capacity,
        simulate: args.simulate,
        reclaims: args.reclaim,
        preempts: args.preempt,
        has_controllers: !args.without_controllers,
        mode: if args.in_memory { Mode::LeaveNothing } else { Mode::OutliveNode },
        is_served: true,
    };
    let mut cluster = Cluster::start(config).await?;
    cluster.forget_events_after(args.event_ttl);
    let server = cluster.serve(args.listen, &args.data_dir, access).await?;
    let kubeconfig = args.kubeconfig.unwrap_or_else(|| args.data_dir.join("kubeconfig"));
    let kubeconfig = cluster::absolute(&kubeconfig)?;
    cluster::write_kubeconfig(&server, &kubeconfig)?;
    let note = background::Note::write(&args.data_dir, &kubeconfig)?;
    if cluster.is_full() {
        let dir = args.data_dir.display();
        say(&format!(
            "no space left in {dir}: the server accepts only deletes; fix: free some space or delete objects"
        ));
    }
    let until_stopped = async {
        // Whoever is told that it is ready may ask at once what became of a pod.
        cluster.until_pods_can_run().await;
        say(&format!("ready: https://{}", server.address()));
        say(&format!("use it with: export KUBECONFIG={}", kubeconfig.display()));
        if let Err(error) = server.by_name() {
            let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            let remedy = "run as root, or set the sysctl net.ipv4.ip_unprivileged_port_start to 443";
            say(&format!(
                "pods cannot resolve kubernetes.default.svc and must use $KUBERNETES_SERVICE_HOST: {error}: \
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
    drop(note);
    drop(in_memory);
    Ok(ExitCode::SUCCESS)
}
