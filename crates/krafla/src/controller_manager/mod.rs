//! `krafla controller-manager`: the controllers alone, for a cluster that is there.

mod endpoints;
mod selection;
mod throttle;
mod tls;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use krafla_api::Key;
use krafla_apiserver::{Env, SystemEnv};
use krafla_client::{Access, HttpsClient, Limits};
use krafla_cluster::Client;
use krafla_plan::Controller;
use krafla_plan::k8sjob::Managed;
use krafla_plan::podgroup::PodGroupController;
use krafla_runtime::lease::{Candidate, Election};
use krafla_runtime::metrics::Metrics;
use krafla_runtime::{Engine, SystemClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use self::endpoints::Stage;
use self::throttle::{Rate, Throttled};
use crate::cli::{self, LeaderElection};
use crate::screen::tell;

/// What became of a manager.
enum End {
    /// Somebody stopped it.
    Stopped,
    /// Another one may act now.
    LeaseLost(String),
}

/// Which of Kubernetes' own Jobs the controllers take care of.
fn managed(args: &cli::ControllerManager) -> Managed {
    args.jobs_managed_by.clone().map_or(Managed::Unclaimed, Managed::By)
}

/// The controllers without which a flag would do nothing.
fn implied(args: &cli::ControllerManager) -> &'static [&'static str] {
    let of_jobs = &["kubernetes-job-controller", "job-pod-release-controller"];
    if args.jobs_managed_by.is_some() { of_jobs } else { &[] }
}

/// All controllers there are, as the flags want them.
fn controllers(args: &cli::ControllerManager) -> Vec<Box<dyn Controller>> {
    let podgroups = PodGroupController {
        scheduler_names: args.scheduler_name.clone(),
        inherits_annotations: args.inherit_owner_annotations,
    };
    krafla_plan::controllers_of(&managed(args), podgroups)
}

/// How often the cluster may be asked; none for as often as need be. Volcano too takes what makes no sense for no limit.
fn rate(args: &cli::ControllerManager) -> Option<Rate> {
    let per_second = args.kube_api_qps.filter(|qps| qps.is_finite() && *qps > 0.0)?;
    Some(Rate { per_second, burst: args.kube_api_burst.max(1) })
}

/// Runs the controllers until somebody stops them or they lose their lease.
pub(crate) async fn run(args: cli::ControllerManager) -> Result<ExitCode> {
    let controllers = selection::select(controllers(&args), &args.controllers, implied(&args))?;
    let election = election(&args.election)?;
    let access = access(args.kubeconfig.as_deref(), args.master.as_deref())?;
    let origin = access.origin.clone();
    let (metrics, (stage, seen)) = (Arc::<Metrics>::default(), watch::channel(Stage::Connecting));
    let _endpoints = endpoints::serve(&args.endpoints, &seen, &metrics).await?;
    let client = HttpsClient::new(access, Limits::default())?.writing_as("krafla-controllers");
    let version = client.version().await.with_context(|| format!("cannot use the cluster of {origin}"))?;
    let names: Vec<&str> = controllers.iter().map(|controller| controller.name()).collect();
    tracing::info!(%version, cluster = %origin, controllers = names.join(","), "ready");

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stopped = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let engine = Engine::new(controllers).counting_in(metrics, "controllers");
    let asked: Arc<dyn Client> = match rate(&args) {
        Some(rate) => Arc::new(Throttled::new(Arc::new(client.clone()), rate)),
        None => Arc::new(client.clone()),
    };
    let acting = krafla_runtime::run(engine, asked, Arc::new(SystemClock), args.n_workers().into());
    match act(&client, acting, election, &stage, stopped).await {
        End::Stopped => Ok(ExitCode::SUCCESS),
        End::LeaseLost(why) => {
            // Whatever holds the lease acts from now on: nothing more may be written here.
            tell(&format!("krafla: the lease was lost: {why}\n"));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Acts while it may: at once, or once acquired the lease. The lease is renewed however much else there is to ask for.
async fn act(
    client: &HttpsClient,
    acting: impl Future<Output = ()>,
    election: Option<Election>,
    stage: &watch::Sender<Stage>,
    stopped: impl Future<Output = ()>,
) -> End {
    let Some(election) = election else {
        stage.send_replace(Stage::Acting);
        tokio::select! {
            () = acting => {}
            () = stopped => {}
        }
        return End::Stopped;
    };
    stage.send_replace(Stage::Waiting);
    let mut candidate = Candidate::new(election, client, &SystemClock);
    let end = tokio::select! {
        lost = async {
            candidate.acquire().await;
            // Who is told that acquired the lease finds that we act.
            stage.send_replace(Stage::Acting);
            tracing::info!("acquired the lease");
            tokio::select! {
                lost = candidate.keep() => lost,
                () = acting => "the controllers ended".to_owned(),
            }
        } => End::LeaseLost(lost),
        () = stopped => End::Stopped,
    };
    if let (End::Stopped, Err(error)) = (&end, candidate.release().await) {
        tracing::warn!(%error, "cannot release the lease");
    }
    end
}

/// The way to the cluster of a manager: `--kubeconfig`, or else `KUBECONFIG`, or else the pod that it runs in.
pub(crate) fn access(kubeconfig: Option<&Path>, master: Option<&str>) -> Result<Access> {
    let access = match (kubeconfig, std::env::var_os("KUBECONFIG").filter(|files| !files.is_empty())) {
        (Some(file), _) => Access::of_file(file),
        (None, Some(files)) => Access::of_list(&files),
        (None, None) => Access::of_this_pod(),
    };
    let mut access = access?;
    if let Some(master) = master.filter(|master| !master.is_empty()) {
        access.server = master.parse().with_context(|| format!("--master {master} is not an address"))?;
        access.origin = format!("--master {master}");
    }
    Ok(access)
}

fn election(flags: &LeaderElection) -> Result<Option<Election>> {
    if !flags.leader_elect {
        return Ok(None);
    }
    let (lease_duration, renew_deadline) =
        (flags.leader_elect_lease_duration, flags.leader_elect_renew_deadline);
    if renew_deadline >= lease_duration {
        bail!("--leader-elect-renew-deadline must be shorter than --leader-elect-lease-duration");
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Ok(Some(Election {
        lease: Key::new(flags.namespace(), &flags.leader_elect_resource_name),
        identity: format!("{host}_{}", SystemEnv.uid().0),
        lease_duration,
        renew_deadline,
        retry_period: flags.leader_elect_retry_period,
    }))
}
