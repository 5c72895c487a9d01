//! Questions to pods. A decision that hangs on whether a pod answers says so as data; the shell asks, and the answer comes
//! back as one more thing that was observed, with its time.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use krafla_api::{Time, Uid};

/// How long after a "no" the same question is asked again.
pub const ASK_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Whether something answers at a port of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probe {
    /// Who is asked. Another pod at the same address is another question.
    pub pod: Uid,
    /// Where the pod is.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// What to ask for; without it, that a connection is accepted is answer enough.
    pub http_get: Option<HttpGet>,
}

/// An HTTP request. Any answer from 200 to 399 is a good one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpGet {
    /// The path.
    pub path: String,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
}

/// What a pod answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    /// Why it was not a good answer, for people. A good one stands as long as the pod does.
    pub failure: Option<String>,
    /// When it came.
    pub at: Time,
}

impl Answer {
    /// Whether the pod is ready.
    pub fn is_good(&self) -> bool {
        self.failure.is_none()
    }

    /// When the question is to be asked again, if it is.
    pub fn ask_again_at(&self) -> Option<Time> {
        (!self.is_good()).then(|| self.at.after(ASK_AGAIN_AFTER))
    }
}

/// What is known of the questions that one root asked.
pub type Answers = BTreeMap<Probe, Answer>;

/// What is known before anything was asked.
pub(crate) static NO_ANSWERS: Answers = BTreeMap::new();
