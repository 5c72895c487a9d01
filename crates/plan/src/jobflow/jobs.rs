//! Jobs of a flow: existing ones, deleted ones, and those of which only the record in status is left.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_api::Kind;
use krafla_api::volcano::{FlowJobStatus, JobPhase};

use super::View;
use crate::object::VcJob;
use crate::{Object, Snapshot};

/// The jobs of a flow by their names.
pub(super) struct Jobs<'a> {
    flow_name: &'a str,
    /// As they are, or as they last were if they had finished when they went away.
    seen: BTreeMap<&'a str, Seen<'a>>,
    /// As they were written down.
    recorded: BTreeMap<&'a str, &'a FlowJobStatus>,
    /// Made once more for a step that is on record as finished, by somebody who did not know that.
    late: Vec<&'a Arc<Object>>,
}

/// A job that was seen.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) object: &'a Arc<Object>,
    pub(super) job: &'a VcJob,
    pub(super) is_gone: bool,
}

impl Seen<'_> {
    /// Its phase. A job that nobody has looked at yet waits.
    pub(super) fn phase(&self) -> &JobPhase {
        match &self.job.status.state.phase {
            JobPhase::Unset => &JobPhase::Pending,
            phase => phase,
        }
    }
}

impl<'a> Jobs<'a> {
    /// Looks at everything that the flow owns or owned.
    pub(super) fn observe(flow: &View<'a>, snapshot: &Snapshot<'a>) -> Jobs<'a> {
        let recorded: BTreeMap<&str, &FlowJobStatus> =
            flow.status.job_status_list.iter().map(|job| (job.name.as_str(), job)).collect();
        let is_late = |object: &Object| {
            let finished = recorded.get(&*object.meta.key.name).filter(|job| job.state.is_finished());
            let began_at = finished.and_then(|job| job.start_timestamp);
            began_at.is_some_and(|began_at| object.meta.created_at.is_some_and(|at| at > began_at))
        };
        let (mut seen, mut late) = (BTreeMap::new(), Vec::new());
        for departed in snapshot.departed {
            if let Some(job) = departed.object.as_vcjob()
                && job.status.state.phase.is_finished()
                && !is_late(&departed.object)
            {
                let object = &departed.object;
                seen.insert(object.meta.key.name.as_ref(), Seen { object, job, is_gone: true });
            }
        }
        for object in snapshot.children(Kind::VcJob) {
            if is_late(object) {
                late.push(object);
            } else if let Some(job) = object.as_vcjob() {
                seen.insert(object.meta.key.name.as_ref(), Seen { object, job, is_gone: false });
            }
        }
        Jobs { flow_name: &flow.meta.key.name, seen, recorded, late }
    }

    /// The jobs that are there although their step was done before they were made.
    pub(super) fn late(&self) -> impl Iterator<Item = &'a Arc<Object>> {
        self.late.iter().copied()
    }

    /// The jobs that are there.
    pub(super) fn live(&self) -> impl Iterator<Item = &'a Arc<Object>> {
        self.seen.values().filter(|job| !job.is_gone).map(|job| job.object)
    }

    /// All jobs that were seen, by name.
    pub(super) fn seen(&self) -> &BTreeMap<&'a str, Seen<'a>> {
        &self.seen
    }

    /// The job of one flow, if it is there.
    pub(super) fn get(&self, flow: &str) -> Option<&Seen<'a>> {
        self.seen.get(self.job_name(flow).as_str())
    }

    /// The phase of the job of one flow: as it is, or as it ended if it is gone. None if it has yet to be made, or to be made
    /// again because it went away unfinished.
    pub(super) fn phase(&self, flow: &str) -> Option<&JobPhase> {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        let name = self.job_name(flow);
        let recorded = || self.recorded.get(name.as_str()).map(|job| &job.state);
        match self.seen.get(name.as_str()) {
            Some(seen) => Some(seen.phase()),
            None => recorded().filter(|phase| phase.is_finished()),
        }
    }

    fn job_name(&self, flow: &str) -> String {
        format!("{}-{flow}", self.flow_name)
    }
}

#[cfg(test)]
thread_local! {
    /// How often a decision has asked for the phase of a job: what it costs, in steps that do not depend on the machine.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
