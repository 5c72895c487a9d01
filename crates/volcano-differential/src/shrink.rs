//! From a sequence that differs to a smaller one that differs in the same way.

use anyhow::Result;
use krafla_sim::golden::{Record, compare};
use serde_json::Value;

use crate::report::sort_of;
use crate::run::in_parallel;
use crate::sequence::{Patience, Steps, record};
use crate::volcano::{Volcano, namespace_name};

/// Candidates that are played at the same time.
const AT_ONCE: usize = 24;

/// Parts of a job's spec without which it may differ as well.
const OPTIONAL: [&str; 14] = [
    "/spec/plugins",
    "/spec/policies",
    "/spec/minSuccess",
    "/spec/minAvailable",
    "/spec/maxRetry",
    "/spec/volumes",
    "/spec/ttlSecondsAfterFinished",
    "/spec/tasks/2",
    "/spec/tasks/1",
    "/spec/tasks/0/policies",
    "/spec/tasks/1/policies",
    "/spec/tasks/0/minAvailable",
    "/spec/tasks/1/minAvailable",
    "/spec/tasks/1/dependsOn",
];

struct Candidate {
    objects: Vec<Value>,
    steps: Vec<Value>,
}

/// Removes steps and parts of objects one at a time, for as long as the rest differs as the whole did.
pub(crate) fn shrink(
    volcano: &Volcano,
    whole: Record,
    patience: Patience,
    first_namespace: u64,
) -> Result<Record> {
    let sort = sort_of(&compare(&whole).differences);
    let (mut smallest, mut number) = (whole, first_namespace);
    if sort.is_empty() {
        return Ok(smallest);
    }
    loop {
        let candidates = smaller(&smallest);
        let start = number;
        let played = in_parallel(AT_ONCE, &candidates, |position, candidate| {
            let namespace = namespace_name(start + u64::try_from(position)?);
            record(volcano, &namespace, patience, &candidate.objects, Steps::Given(candidate.steps.iter()))
        })?;
        number += u64::try_from(candidates.len())?;
        let same = played.into_iter().flatten().find(|record| sort_of(&compare(record).differences) == sort);
        match same {
            Some(record) => smallest = record,
            None => return Ok(smallest),
        }
    }
}

/// All that are smaller by one thing.
fn smaller(record: &Record) -> Vec<Candidate> {
    let steps: Vec<Value> = record.entries.iter().skip(1).map(|entry| entry.deed.clone()).collect();
    let without_step = (0..steps.len()).map(|position| {
        let mut fewer = steps.clone();
        fewer.remove(position);
        Candidate { objects: record.objects.clone(), steps: fewer }
    });
    let without_part = record.objects.iter().enumerate().flat_map(|(position, object)| {
        let steps = &steps;
        OPTIONAL.iter().filter_map(move |part| {
            let mut objects = record.objects.clone();
            *objects.get_mut(position)? = without(object, part)?;
            Some(Candidate { objects, steps: steps.clone() })
        })
    });
    without_step.chain(without_part).collect()
}

fn without(object: &Value, pointer: &str) -> Option<Value> {
    let mut object = object.clone();
    let (parent, field) = pointer.rsplit_once('/')?;
    match object.pointer_mut(parent)? {
        Value::Object(fields) => drop(fields.remove(field)?),
        Value::Array(items) => {
            let position =
                field.parse().ok().filter(|position| *position < items.len() && items.len() > 1)?;
            items.remove(position);
        }
        _ => return None,
    }
    Some(object)
}
