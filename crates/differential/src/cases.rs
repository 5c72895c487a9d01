//! Plays cases that nobody recorded on both servers: files in the form of `tests/golden/apiserver`, without answers.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use futures_util::StreamExt;
use krafla_recorded::case::{Case, Who};
use krafla_recorded::client::{Client, Target};
use krafla_recorded::differences::between;
use krafla_recorded::play::{play_in, unique};
use serde::Deserialize;
use serde_json::{Value, json};

/// How many cases are played at once.
const AT_ONCE: usize = 6;

#[derive(Deserialize)]
struct Area {
    cases: Vec<Case>,
}

/// Plays all cases of the files. Writes `cases.json` into `out` with both answers to every step, for records.
pub(crate) async fn compare(files: &[PathBuf], real: &Target, embedded: &Target, out: &Path) -> Result<()> {
    let (mut results, mut n_differing) = (Vec::new(), 0);
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let area: Area = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        let (n_cases, before) = (area.cases.len(), n_differing);
        let plays = area.cases.into_iter().map(|case| async move {
            let (real, embedded) = tokio::join!(play(real, &case), play(embedded, &case));
            (case, real, embedded)
        });
        let played = futures_util::stream::iter(plays).buffered(AT_ONCE).collect::<Vec<_>>().await;
        for (case, real, embedded) in played {
            let (real, embedded) = (real?, embedded?);
            let lines = lines(&case, &real, &embedded);
            if !lines.is_empty() {
                n_differing += 1;
                println!("{}\n{}", case.id, lines.join("\n"));
            }
            results.push(
                json!({"id": case.id, "real": real, "embedded": embedded, "differs": !lines.is_empty()}),
            );
        }
        println!("{}: {} of {n_cases} cases differ", file.display(), n_differing - before);
    }
    std::fs::create_dir_all(out)?;
    std::fs::write(out.join("cases.json"), serde_json::to_vec_pretty(&results)?)?;
    anyhow::ensure!(n_differing == 0, "{n_differing} of {} cases differ", results.len());
    Ok(())
}

/// Plays a case in namespaces of its own; they stay, for no controller empties them.
async fn play(target: &Target, case: &Case) -> Result<Vec<Value>> {
    let unique = unique();
    let mut client = Client::new(target.clone());
    for suffix in ["", "-b"].iter().take(if case.is_bare { 0 } else { 2 }) {
        let name = format!("g-{unique}{suffix}");
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let request = http::Request::builder().method("POST").uri("/api/v1/namespaces");
        let request = request.header("content-type", "application/json").body(body.to_string().into())?;
        client.ask(Who::Admin, request).await.map_err(|error| anyhow!(error))?;
    }
    Ok(play_in(&unique, client, case, &case.steps()).await.1)
}

/// What differs, step by step.
fn lines(case: &Case, real: &[Value], embedded: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, step) in case.steps().iter().enumerate() {
        let mut found = Vec::new();
        let answer = |answers: &[Value]| answers.get(number).cloned().unwrap_or_default();
        between(&answer(real), &answer(embedded), "", &mut found);
        if !found.is_empty() {
            lines.push(format!("  step {}: {}", number + 1, step.title()));
            lines.extend(found.into_iter().map(|line| {
                format!("    {}", line.replace("recorded", "real").replace("answered", "embedded"))
            }));
        }
    }
    lines
}
