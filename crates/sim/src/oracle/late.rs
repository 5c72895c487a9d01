//! What a process makes after another has taken its place.
//!
//! Only the server could refuse it, and it knows nothing of leases. So it may be there; what is promised is that whoever decides
//! now sees that it must not be, and removes it before anything comes of it. The end of the run says whether anything did: its
//! counters and objects are those of a run in which nobody was replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use krafla_api::{Time, Uid};
use krafla_guard::Violation;

/// How long something that must not be may be there. An outage in which nobody can remove it does not count.
const STAY_MAX: Duration = Duration::from_secs(600);

/// What was made too late, and must not be.
#[derive(Clone, Debug, Default)]
pub(super) struct Late {
    /// What has been made by somebody who was replaced, until its first revision is seen.
    made: BTreeSet<Uid>,
    /// What must go again, why, and since when it is there.
    owed: BTreeMap<Uid, (Vec<Violation>, Time)>,
}

impl Late {
    /// Takes what is still awaited into a number.
    pub(super) fn digest(&self, into: &mut impl Hasher) {
        self.made.hash(into);
        self.owed.len().hash(into);
        self.owed.iter().for_each(|(uid, (_, since))| (uid, since).hash(into));
    }

    /// An object was made by somebody who was replaced.
    pub(super) fn made(&mut self, uid: Uid) {
        self.made.insert(uid);
    }

    /// An object was stored for the first time, and this is what that breaks. What is left is to be blamed on who decides now.
    pub(super) fn excuse(&mut self, uid: &Uid, broken: Vec<Violation>, now: Time) -> Vec<Violation> {
        if !self.made.remove(uid) || broken.is_empty() {
            return broken;
        }
        self.owed.insert(uid.clone(), (broken, now));
        Vec::new()
    }

    /// An object is gone, or is about to go.
    pub(super) fn goes(&mut self, uid: &Uid) {
        self.owed.remove(uid);
    }

    /// What is still there although it should have gone by `now`. Until `outage_end` nobody could remove anything.
    pub(super) fn overdue(&mut self, now: Time, outage_end: Option<Time>) -> Vec<Violation> {
        let is_overdue = |_: &Uid, (_, since): &mut (Vec<Violation>, Time)| {
            now > outage_end.map_or(*since, |end| end.max(*since)).after(STAY_MAX)
        };
        self.owed.extract_if(.., is_overdue).flat_map(|(_, (broken, _))| broken).collect()
    }

    /// What is still there at the end.
    pub(super) fn left(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.owed).into_values().flat_map(|(broken, _)| broken).collect()
    }
}
