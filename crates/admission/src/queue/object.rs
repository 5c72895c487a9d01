//! What is wrong with a queue by itself.

use krafla_api::labels::{HIERARCHY, HIERARCHY_WEIGHTS};
use krafla_api::volcano::{Queue, QueueState, ResourceList};

use crate::{Cluster, Path, Verdict, pod};

pub(super) fn validate(queue: &Queue, is_new: bool, cluster: &dyn Cluster, verdict: &mut Verdict) {
    let path = Path::new("spec");
    let spec = &queue.spec;
    validate_amounts(&spec.capability, &path.field("capability"), verdict);
    validate_amounts(&spec.deserved, &path.field("deserved"), verdict);
    validate_amounts(&spec.guarantee.resource, &path.field("guarantee").field("resource"), verdict);
    validate_order(queue, &path.field("deserved"), verdict);
    // The controller's own states come back with every later change of the queue; only an author's word is checked.
    if is_new && !matches!(queue.status.state, QueueState::Unset | QueueState::Open | QueueState::Closed) {
        let rule = "queue state must be in [Open Closed]";
        verdict.invalid(&Path::new("status.state"), queue.status.state.as_str(), rule);
    }
    validate_hierarchy(queue, cluster, verdict);
}

fn validate_amounts(amounts: &ResourceList, path: &Path, verdict: &mut Verdict) {
    for (name, amount) in amounts {
        if amount.is_negative() {
            verdict.invalid(&path.field(name), amount.to_string(), "must be greater than or equal to 0");
        }
        if pod::is_counted(name) && amount.milli_value() % 1000 != 0 {
            verdict.invalid(&path.field(name), amount.to_string(), "must be an integer");
        }
    }
}

/// What is kept free is part of what can be claimed back, which is part of what may be used.
fn validate_order(queue: &Queue, path: &Path, verdict: &mut Verdict) {
    let (capability, deserved) = (&queue.spec.capability, &queue.spec.deserved);
    for (name, guarantee) in &queue.spec.guarantee.resource {
        let least = format!("must be >= guarantee[{name}]={guarantee}");
        match deserved.get(name) {
            None => verdict.invalid(&path.field(name), "<nil>", format_args!("deserved[{name}] {least}")),
            Some(amount) if amount < guarantee => {
                let rule = format!("deserved[{name}]={amount} {least}");
                verdict.invalid(&path.field(name), amount.to_string(), rule);
            }
            Some(_) => {}
        }
    }
    for (name, amount) in deserved {
        if let Some(limit) = capability.get(name).filter(|limit| amount > *limit) {
            let rule = format!("deserved[{name}]={amount} must be <= capability[{name}]={limit}");
            verdict.invalid(&path.field(name), amount.to_string(), rule);
        }
    }
}

/// The annotations by which an older scheduler plugin knows a tree: a path and a weight for each of its parts.
fn validate_hierarchy(queue: &Queue, cluster: &dyn Cluster, verdict: &mut Verdict) {
    let annotation =
        |queue: &Queue, key: &str| queue.metadata.annotations.get(key).cloned().unwrap_or_default();
    let (path, weights) = (annotation(queue, HIERARCHY), annotation(queue, HIERARCHY_WEIGHTS));
    if path.is_empty() && weights.is_empty() {
        return;
    }
    let field = Path::new("metadata.annotations");
    if path.split('/').count() != weights.split('/').count() {
        let rule = format!("{HIERARCHY} must have the same length with {HIERARCHY_WEIGHTS}");
        verdict.invalid(&field, path, rule);
        return;
    }
    for weight in weights.split('/') {
        let rule = match read_weight(weight) {
            None => "is invalid number",
            Some(number) if number <= 0.0 => "must be larger than 0",
            Some(_) => continue,
        };
        verdict.invalid(&field, weights.as_str(), format_args!("{weight} in the {weights} {rule}"));
    }
    let prefix = format!("{path}/");
    let others = cluster.queues().into_iter().filter(|other| other.metadata.name != queue.metadata.name);
    for other in others {
        let below = annotation(&other, HIERARCHY);
        if !path.is_empty() && below.starts_with(&prefix) {
            let name = &other.metadata.name;
            let rule = format!("{path} is not allowed to be in the sub path of {below} of queue {name}");
            verdict.invalid(&field, path.as_str(), rule);
        }
    }
}

/// A number as Go reads one: also `Inf`, `NaN`, `1_000` and `0x1p4`.
fn read_weight(text: &str) -> Option<f64> {
    let digits = text.replace('_', "");
    let (sign, unsigned) = match digits.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, digits.strip_prefix('+').unwrap_or(&digits)),
    };
    let Some(hexadecimal) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) else {
        return unsigned.parse::<f64>().ok().map(|number| sign * number);
    };
    let (mantissa, exponent) = hexadecimal.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let value = i64::from_str_radix(&[whole, fraction].concat(), 16).ok()? as f64;
    let exponent =
        exponent.parse::<i32>().ok()?.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    Some(sign * value * 2f64.powi(exponent))
}
