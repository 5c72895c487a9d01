//! `spec.managedBy`: the Jobs that this controller runs.

/// The name by which a Job asks for Kubernetes' own controller.
const KUBERNETES: &str = "kubernetes.io/job-controller";
/// The name by which a Job asks for this program where there is Kubernetes' own controller too.
pub(super) const KRAFLA: &str = "krafla.dev/job-controller";

/// Which Jobs a controller takes care of. It writes nothing about the others, and nothing about their pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Managed {
    /// All that ask for no other controller, where this program is Kubernetes' own. One that asks for this program by name
    /// runs here too, so that the same manifest does everywhere.
    #[default]
    Unclaimed,
    /// Those that ask for a controller of this name, on a cluster that has Kubernetes' own as well.
    By(String),
}

impl Managed {
    /// Whether a Job that asks for this controller, or for none, is among them.
    pub fn includes(&self, managed_by: Option<&str>) -> bool {
        match self {
            Managed::Unclaimed => managed_by.is_none_or(|name| [KUBERNETES, KRAFLA].contains(&name)),
            Managed::By(own) => managed_by == Some(own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_one_manager() {
        let beside = Managed::By(KRAFLA.to_owned());
        for (managed_by, is_unclaimed, is_ours) in [
            (None, true, false),
            (Some(KUBERNETES), true, false),
            (Some(KRAFLA), true, true),
            (Some("acme.io/jobs"), false, false),
            (Some(""), false, false),
        ] {
            let included = (Managed::Unclaimed.includes(managed_by), beside.includes(managed_by));
            assert_eq!(included, (is_unclaimed, is_ours), "{managed_by:?}");
        }
    }
}
