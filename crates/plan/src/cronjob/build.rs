//! One job of a CronJob, and what its name and annotation say of when it was due.

use krafla_admission::cron::{Schedule, Times};
use krafla_api::{Kind, Time, labels};
use serde_json::{Value, json};

use super::View;
use crate::Object;
use crate::cron::Timetable;

/// The name of the job for a due time: the minutes since 1970, and the second where several runs share a minute.
pub(super) fn job_name(cronjob: &View<'_>, due_at: Time) -> String {
    let (seconds, name) = (due_at.0.as_second(), &cronjob.meta.key.name);
    let minutes = seconds.div_euclid(60);
    let has_several_a_minute = matches!(
        cronjob.spec.schedule.parse(),
        Ok(Schedule { times: Times::Every(period), .. }) if period.to_std().as_secs() < 60
    );
    if has_several_a_minute {
        format!("{name}-{minutes}-{}", seconds.rem_euclid(60))
    } else {
        format!("{name}-{minutes}")
    }
}

/// The manifest of the job.
pub(super) fn job(cronjob: &View<'_>, timetable: &Timetable, due_at: Time) -> Value {
    let template = &cronjob.spec.job_template;
    let info = Kind::VcJob.info();
    let mut annotations = template.metadata.annotations.clone();
    annotations.insert(labels::CRONJOB_SCHEDULED_AT.to_owned(), timetable.on_the_wall(due_at));
    let mut metadata = json!({
        "name": job_name(cronjob, due_at),
        "namespace": cronjob.meta.key.namespace.as_ref(),
        "annotations": annotations,
        "ownerReferences": [cronjob.meta.as_controller(Kind::VcCronJob)],
    });
    if let (false, Some(metadata)) = (template.metadata.labels.is_empty(), metadata.as_object_mut()) {
        metadata.insert("labels".to_owned(), json!(template.metadata.labels));
    }
    json!({
        "apiVersion": info.api_version(),
        "kind": info.kind,
        "metadata": metadata,
        "spec": Value::clone(&template.spec),
    })
}

/// When a job of a CronJob was due.
pub(crate) fn due_time(job: &Object) -> Option<Time> {
    let text = job.meta.annotations.get(labels::CRONJOB_SCHEDULED_AT)?;
    text.parse().ok().map(Time)
}
