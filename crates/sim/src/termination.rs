//! How pods end that are asked to go. Every scenario is played with each of these ways, so that no decision rests on one of them.
//!
//! ```text
//!   asked to go --ends_after--> reported: Failed 143 | Succeeded --confirmed_after--> gone
//! ```

use std::time::Duration;

/// 128 + SIGTERM: how a container ends that does not listen to signals.
const EXIT_CODE_TERMINATED: i32 = 143;

/// How pods end that are asked to go.
#[derive(Debug, PartialEq, Eq)]
pub struct Termination {
    /// Its name on the command line.
    pub name: &'static str,
    /// With this code.
    pub(crate) exit_code: i32,
    /// So long after they were asked.
    pub(crate) ends_after: Duration,
    /// How long after its end the pod is gone; nothing, if that is the same moment: then whoever looks afterwards sees the end only
    /// in the last state of a pod that is gone.
    pub(crate) confirmed_after: Option<Duration>,
    /// Whether users give the pods that they delete no time at all.
    pub(crate) is_forced: bool,
}

/// The way in which most pods end.
pub static KILLED: Termination = Termination {
    name: "killed",
    exit_code: EXIT_CODE_TERMINATED,
    ends_after: Duration::from_secs(1),
    confirmed_after: Some(Duration::from_secs(1)),
    is_forced: false,
};

/// A pod that ends well because it is asked to.
const YIELDS: Termination =
    Termination { name: "yields", exit_code: 0, ends_after: Duration::ZERO, ..KILLED };

/// Every way, the usual one first.
pub static TERMINATIONS: [&Termination; 6] = [
    &KILLED,
    &YIELDS,
    &Termination { name: "yields-unseen", confirmed_after: None, ..YIELDS },
    &Termination { name: "yields-late", ends_after: Duration::from_secs(3), ..YIELDS },
    &Termination {
        name: "yields-late-unseen",
        ends_after: Duration::from_secs(3),
        confirmed_after: None,
        ..YIELDS
    },
    &Termination { name: "forced", is_forced: true, ..KILLED },
];

impl Termination {
    /// The way of a name.
    pub fn named(name: &str) -> Option<&'static Termination> {
        TERMINATIONS.into_iter().find(|termination| termination.name == name)
    }

    /// Whether a pod that is asked to go ends well.
    pub fn ends_well(&self) -> bool {
        self.exit_code == 0
    }
}
