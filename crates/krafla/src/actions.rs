//! `krafla delete`, `suspend`, `resume` and `restart`.

use std::process::ExitCode;

use anyhow::Result;
use futures_util::StreamExt;
use futures_util::stream;
use krafla_api::{Kind, Scope};
use krafla_client::{Request, collection_path};
use serde_json::{Value, json};

use crate::bus_command::command;
use crate::cli::everyday::{Act, Delete};
use crate::cli::target::Format;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::resources::qualified;
use crate::screen::{print, tell};
use crate::targets::{self, Target};
use crate::wait;

/// Requests that are under way at once.
const AT_ONCE: usize = 16;

/// Deletes objects, and waits until they are gone.
pub(crate) async fn delete(args: Delete) -> Result<ExitCode> {
    let chooses = args.all || args.selector.is_some();
    let words = match (args.words.as_slice(), chooses) {
        ([word], true) if !word.contains('/') => word.clone(),
        (_, true) => {
            return Err(Failure::usage(
                "--all and --selector need one kind and no names: krafla delete jobs --all",
            )
            .into());
        }
        (_, false) => String::new(),
    };
    let connection = Connection::open(&args.cluster)?;
    let targets = if chooses {
        targets::all(&connection, &words, args.selector.as_deref()).await?
    } else {
        targets::find(&connection, &args.words).await?
    };
    if targets.is_empty() {
        tell(&format!("no {words} in namespace {}\n", connection.namespace));
        return Ok(ExitCode::SUCCESS);
    }
    let (connection, args) = (&connection, &args);
    let deleted = stream::iter(&targets).map(|target| remove(connection, target, args)).buffered(AT_ONCE);
    report(deleted, "deleted", args.output).await
}

async fn remove<'a>(
    connection: &Connection,
    target: &'a Target,
    args: &Delete,
) -> (&'a Target, Result<(), Failure>) {
    let mut options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        "preconditions": { "uid": target.object.pointer("/metadata/uid") },
    });
    if let (Some(seconds), Some(fields)) = (args.grace_period, options.as_object_mut()) {
        fields.insert("gracePeriodSeconds".to_owned(), seconds.into());
    }
    let deleted = connection.write(&Request::delete_with(target.path(), options)).await;
    let done = match deleted {
        Err(failure) => Err(failure),
        Ok(_) if args.no_wait => Ok(()),
        Ok(_) => wait::until_gone(connection, target, args.timeout.as_ref()).await,
    };
    (target, done)
}

/// What is asked of a job, a CronJob or a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Suspend,
    Resume,
    Restart,
}

impl Verb {
    fn done(self) -> &'static str {
        match self {
            Verb::Suspend => "suspended",
            Verb::Resume => "resumed",
            Verb::Restart => "restarted",
        }
    }
}

/// How a verb is carried out.
#[derive(Clone, Debug, PartialEq)]
enum Means {
    /// A Command of Volcano.
    Command(&'static str),
    Patch(Value),
}

/// How a verb is carried out for a kind, or why it cannot be.
fn means(verb: Verb, kind: Option<Kind>, name: &str) -> Result<Means, String> {
    let suspend = |is_suspended: bool| Means::Patch(json!({ "spec": { "suspend": is_suspended } }));
    match (kind, verb) {
        (Some(Kind::VcJob), Verb::Suspend) => Ok(Means::Command("AbortJob")),
        (Some(Kind::VcJob), Verb::Resume) => Ok(Means::Command("ResumeJob")),
        (Some(Kind::VcJob), Verb::Restart) => Ok(Means::Command("RestartJob")),
        (Some(Kind::Job | Kind::CronJob | Kind::VcCronJob), Verb::Suspend) => Ok(suspend(true)),
        (Some(Kind::Job | Kind::CronJob | Kind::VcCronJob), Verb::Resume) => Ok(suspend(false)),
        (Some(Kind::Job), Verb::Restart) => Err(format!(
            "a Kubernetes Job cannot be restarted; fix: delete it with `krafla delete jobs.batch/{name}` and create it again"
        )),
        (Some(Kind::Queue), Verb::Suspend) => {
            Err(format!("a queue is closed, not suspended; fix: krafla queue close {name}"))
        }
        (Some(Kind::Queue), Verb::Resume) => {
            Err(format!("a queue is opened, not resumed; fix: krafla queue open {name}"))
        }
        (_, Verb::Restart) => Err("only Volcano Jobs can be restarted".to_owned()),
        (_, Verb::Suspend | Verb::Resume) => {
            Err("only jobs and CronJobs can be suspended and resumed".to_owned())
        }
    }
}

/// Suspends, resumes or restarts objects.
pub(crate) async fn act(args: Act, verb: Verb) -> Result<ExitCode> {
    let connection = Connection::open(&args.cluster)?;
    let targets = targets::find(&connection, &args.words).await?;
    let planned: Vec<(&Target, Means)> = targets
        .iter()
        .map(|target| {
            let means = means(verb, target.of.known(), &target.key.name);
            means
                .map(|means| (target, means))
                .map_err(|why| Failure::usage(format!("{}: {why}", target.title)))
        })
        .collect::<Result<_, _>>()?;
    let connection = &connection;
    let done =
        stream::iter(planned).map(|(target, means)| carry_out(connection, target, means)).buffered(AT_ONCE);
    report(done, verb.done(), args.output).await
}

async fn carry_out<'a>(
    connection: &Connection,
    target: &'a Target,
    means: Means,
) -> (&'a Target, Result<(), Failure>) {
    let request = match means {
        Means::Patch(patch) => Request::merge_patch(target.path(), patch),
        Means::Command(action) => {
            let uid = target.object.pointer("/metadata/uid").cloned().unwrap_or_default();
            let (namespace, command) =
                command(Kind::VcJob, &target.key.namespace, &target.key.name, &uid, action);
            Request::post(collection_path(Kind::Command, &namespace), command)
        }
    };
    (target, connection.write(&request).await.map(drop))
}

/// Prints what was done, object by object. A refusal does not keep the others from being done.
async fn report<'a>(
    done: impl stream::Stream<Item = (&'a Target, Result<(), Failure>)>,
    what: &str,
    output: Option<Format>,
) -> Result<ExitCode> {
    let mut failed = None;
    let mut documents = Vec::new();
    tokio::pin!(done);
    while let Some((target, outcome)) = done.next().await {
        if let Err(failure) = &outcome {
            tell(&format!("krafla: {}: {failure}\n", target.title));
        }
        match output {
            Some(Format::Json | Format::Yaml) => documents.push(json!({
                "kind": target.of.kind, "apiVersion": target.of.api_version(), "name": &*target.key.name,
                "namespace": if target.of.scope == Scope::Namespaced { &*target.key.namespace } else { "" },
                "done": outcome.is_ok().then_some(what),
                "error": outcome.as_ref().err().map(ToString::to_string),
            })),
            Some(Format::Name) if outcome.is_ok() => {
                print(&format!("{}\n", qualified(&target.of, &target.key.name)))?;
            }
            None | Some(Format::Wide) if outcome.is_ok() => print(&format!("{} {what}\n", target.title))?,
            _ => {}
        }
        failed = failed.or(outcome.err());
    }
    if matches!(output, Some(Format::Json | Format::Yaml)) {
        print(&crate::get::written(&Value::Array(documents), output))?;
    }
    Ok(failed.map_or(ExitCode::SUCCESS, |failure| ExitCode::from(failure.code())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_suspended_in_its_own_way() {
        let suspended = |is: bool| Ok(Means::Patch(json!({ "spec": { "suspend": is } })));
        assert_eq!(means(Verb::Suspend, Some(Kind::VcJob), "a"), Ok(Means::Command("AbortJob")));
        assert_eq!(means(Verb::Resume, Some(Kind::VcJob), "a"), Ok(Means::Command("ResumeJob")));
        assert_eq!(means(Verb::Restart, Some(Kind::VcJob), "a"), Ok(Means::Command("RestartJob")));
        for kind in [Kind::Job, Kind::CronJob, Kind::VcCronJob] {
            assert_eq!(means(Verb::Suspend, Some(kind), "a"), suspended(true));
            assert_eq!(means(Verb::Resume, Some(kind), "a"), suspended(false));
        }
        let why = |verb, kind| means(verb, kind, "a").unwrap_err();
        assert!(why(Verb::Restart, Some(Kind::Job)).contains("krafla delete jobs.batch/a"));
        assert!(why(Verb::Suspend, Some(Kind::Queue)).contains("krafla queue close a"));
        assert!(why(Verb::Suspend, Some(Kind::JobFlow)).contains("only jobs and CronJobs"));
        assert!(why(Verb::Restart, None).contains("only Volcano Jobs"));
    }
}
