//! The beginning of a run: all that the files hold is checked, and then made.

use std::collections::BTreeSet;

use anyhow::Result;
use krafla_api::{Key, Kind, Served};
use serde_json::Value;

use super::{BadInput, Followed, Run};
use crate::catalogue::Manifest;
use crate::manifest::none_of;
use crate::progress::JobKey;
use crate::submit::{CREATED, check, submit};

impl Run<'_> {
    /// Makes all objects, and notes which of them will not go with the run.
    pub(super) async fn submit_all(&mut self, manifests: &[Manifest]) -> Result<()> {
        let (support, jobs) = manifests.split_at(manifests.partition_point(|it| it.followed().is_none()));
        self.check(support, manifests).await?;
        // Nothing runs before all has been found right.
        let (quiet, servers) = support.split_at(support.partition_point(|it| !it.runs()));
        for manifest in quiet {
            self.submit_support(manifest).await?;
        }
        // What is made first is its own test.
        let n_tested = usize::from(servers.is_empty());
        self.check(jobs.get(n_tested..).unwrap_or_default(), &[]).await?;
        for manifest in servers {
            self.submit_support(manifest).await?;
        }
        for manifest in jobs {
            self.submit(manifest).await?;
        }
        Ok(())
    }

    async fn submit_support(&mut self, manifest: &Manifest) -> Result<()> {
        let made = self.submit(manifest).await?;
        self.made.extend(made);
        Ok(())
    }

    /// Refuses what the cluster would not take, before anything is made. What names something that the files are about to
    /// make can not be asked about yet.
    async fn check(&self, manifests: &[Manifest], to_be_made: &[Manifest]) -> Result<()> {
        let names: BTreeSet<&str> = to_be_made.iter().map(|it| it.text("/metadata/name")).collect();
        let definition = |of: &Served| format!("{}.{}", of.plural, of.group);
        let mut mistakes: Vec<anyhow::Error> = Vec::new();
        for manifest in manifests {
            let own_name = manifest.text("/metadata/name");
            let others = |text: &str| text != own_name && names.contains(text);
            if !names.contains(definition(&manifest.of).as_str()) && !says(&manifest.object, &others) {
                mistakes.extend(check(self.home, manifest, self.replaces).await.err());
            }
        }
        // One alone keeps what it is: a mistake of the user, or of the cluster.
        if mistakes.len() > 1 && mistakes.iter().all(|mistake| mistake.is::<BadInput>()) {
            let all = mistakes.iter().map(|mistake| format!("{mistake:#}")).collect();
            return Ok(none_of(all).map_err(BadInput)?);
        }
        mistakes.into_iter().next().map_or(Ok(()), Err)
    }

    /// Makes an object, or brings one that is there in line. Returns its name if it is new.
    async fn submit(&mut self, manifest: &Manifest) -> Result<Option<String>> {
        let submitted = submit(self.home, manifest, self.replaces, &mut self.making).await?;
        let key = submitted.key;
        let what = format!("{}/{}", manifest.of.singular, key.name);
        self.screen.line(&format!("{what} {}", submitted.done));
        for doubt in submitted.doubts {
            self.screen.line(&format!("{what}: {doubt}"));
        }
        if let Some(kind) = manifest.followed() {
            let followed = Followed::new(submitted.uid, self.followed.len(), steps(manifest, &key));
            self.followed.insert((kind, key), followed);
        }
        Ok(Some(what).filter(|_| submitted.done == CREATED))
    }
}

/// The jobs that the steps of a flow will make.
fn steps(manifest: &Manifest, key: &Key) -> Vec<JobKey> {
    if manifest.followed() != Some(Kind::JobFlow) {
        return Vec::new();
    }
    let steps = manifest.object.pointer("/spec/flows").and_then(Value::as_array);
    let names = steps.into_iter().flatten().filter_map(|step| step.get("name")?.as_str());
    names.map(|name| (Kind::VcJob, Key::new(&key.namespace, &format!("{}-{name}", key.name)))).collect()
}

/// Whether there is such a text anywhere in an object.
fn says(object: &Value, is_it: &impl Fn(&str) -> bool) -> bool {
    match object {
        Value::String(text) => is_it(text),
        Value::Array(all) => all.iter().any(|one| says(one, is_it)),
        Value::Object(fields) => fields.values().any(|field| says(field, is_it)),
        _ => false,
    }
}
