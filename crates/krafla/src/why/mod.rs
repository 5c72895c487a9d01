//! `krafla why`: why one object waits, failed or ended, and what to do about it.
//!
//! The decision is pure and lives in `krafla_diagnosis`. Here are the command line and the reading of objects.

mod reading;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use krafla_diagnosis::{Resource, Subject, diagnose, json, screen};
use krafla_runtime::{Clock, SystemClock};
use krafla_schema::spelling;

use crate::cli::target::ClusterFlags;
use crate::cli::{DATA_DIR, Output};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::screen::{print, tell};

/// Examples at the end of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  krafla why vcjob/train                     why a Volcano Job waits or failed
  krafla why job train -n research           a Kubernetes Job in another namespace
  krafla why queue/default -o json           for programs";

/// Flags of `krafla why`.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// KIND/NAME, or KIND and NAME: vcjob, job, jobflow, cronjob, queue, podgroup, pod
    #[arg(required = true, num_args = 1..=2, value_name = "KIND/NAME")]
    object: Vec<String>,
    /// Print the diagnosis in a machine-readable format
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Output>,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// The kinds that a word may mean, the first that has the object counts, and the object's name.
fn parse(words: &[String]) -> Result<(Vec<Resource>, String)> {
    let (kind, name) = match words {
        [one] => one
            .split_once('/')
            .ok_or_else(|| wrong("want KIND/NAME or KIND NAME, for example vcjob/train"))?,
        [kind, name] => (kind.as_str(), name.as_str()),
        _ => return Err(wrong("want KIND/NAME or KIND NAME, for example vcjob/train")),
    };
    if name.is_empty() || name.contains('/') {
        return Err(wrong(&format!("{name:?} is not the name of an object")));
    }
    let resource = Resource::from_word(kind).filter(|it| Resource::SUBJECTS.contains(it));
    let Some(resource) = resource else {
        let known = Resource::SUBJECTS.map(Resource::word);
        let closest = spelling::closest(kind, known.iter().copied());
        let closest = closest.map_or(String::new(), |it| format!("; did you mean {it}?"));
        return Err(wrong(&format!("unknown kind {kind:?}: want one of {}{closest}", known.join(", "))));
    };
    // Kubernetes and Volcano share these two words.
    let either = match (resource, kind) {
        (Resource::Job, "job" | "jobs") => vec![Resource::Job, Resource::VcJob],
        (Resource::CronJob, "cronjob" | "cronjobs" | "cj") => vec![Resource::CronJob, Resource::VcCronJob],
        (only, _) => vec![only],
    };
    Ok((either, name.to_owned()))
}

fn wrong(message: &str) -> anyhow::Error {
    Failure::usage(message).into()
}

/// The variable that the printed commands need, if they would use another cluster without it.
fn variable(args: &Why, connection: &Connection) -> Option<String> {
    let here = Path::new(DATA_DIR).join("kubeconfig");
    let is_here =
        connection.cluster.contains(&here.display().to_string()) && std::env::var_os("KUBECONFIG").is_none();
    let file = args.cluster.kubeconfig.clone().or_else(|| is_here.then_some(here))?;
    Some(format!("the commands need: export KUBECONFIG={}", file.display()))
}

/// Reads a cluster and prints the diagnosis of one object.
pub(crate) async fn why(args: Why) -> Result<ExitCode> {
    let (resources, name) = parse(&args.object)?;
    let connection = Connection::open(&args.cluster)?;
    connection.client.version().await.map_err(|error| connection.failure(error))?;
    let remark = variable(&args, &connection);
    let Connection { client, namespace, .. } = connection;
    let now = SystemClock.now();
    let reading::Reading { facts, unread } = reading::read(&client, &namespace, &resources, &name, now).await;
    let subject = |resource: Resource| Subject {
        resource,
        namespace: if resource.is_namespaced() { namespace.clone() } else { String::new() },
        name: name.clone(),
    };
    unread.iter().for_each(|what| tell(&format!("krafla: cannot read {what}\n")));
    let diagnosis = resources.iter().find_map(|resource| diagnose(&facts, &subject(*resource)));
    let Some(diagnosis) = diagnosis else {
        let wanted = resources.first().copied().map(subject);
        let wanted = wanted.map_or(name.clone(), |it| it.to_string());
        let names: Vec<&str> = resources.iter().flat_map(|it| facts.names(*it)).collect();
        let closest = spelling::closest(&name, names.into_iter());
        let closest = closest.map_or(String::new(), |it| format!("; did you mean {it}?"));
        return Err(Failure::NotFound(format!("{wanted} does not exist{closest}")).into());
    };
    match args.output {
        Some(Output::Json) => print(&format!("{:#}\n", json(&diagnosis, now)))?,
        None => {
            let remark = remark.filter(|_| diagnosis.remedies.iter().any(|it| it.command.is_some()));
            let remark = remark.map(|it| format!("\n{it}\n")).unwrap_or_default();
            print(&format!("{}{remark}", screen(&diagnosis, now)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_as_kubectl_names_it() {
        let parsed = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
            parse(&words).map(|(kinds, name)| format!("{kinds:?} {name}")).map_err(|error| error.to_string())
        };
        for (words, expected) in [
            (&["vcjob/a"][..], "[VcJob] a"),
            (&["vj", "a"], "[VcJob] a"),
            (&["job/a"], "[Job, VcJob] a"),
            (&["jobs.batch.volcano.sh/a"], "[VcJob] a"),
            (&["job.batch/a"], "[Job] a"),
            (&["cronjob", "a"], "[CronJob, VcCronJob] a"),
            (&["jf/a"], "[JobFlow] a"),
            (&["q/a"], "[Queue] a"),
            (&["pg/a"], "[PodGroup] a"),
            (&["PO/a"], "[Pod] a"),
        ] {
            assert_eq!(parsed(words).as_deref(), Ok(expected), "{words:?}");
        }
        for words in [&["a"][..], &["vcjob/"], &["node/a"], &["vcjob/a/b"], &["", "a"], &["vcjob", ""]] {
            assert!(parsed(words).is_err(), "{words:?}");
        }
        let told = parsed(&["vcjbo/a"]).unwrap_err();
        assert!(told.contains("did you mean vcjob?"), "{told}");
    }
}
