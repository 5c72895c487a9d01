//! What is to become of one object, given how its owners and dependents are: the rules, and nothing else.
//!
//! **Invariant:** an object is deleted only if every one of its owners is known to be gone or to be waiting for it to go.

use krafla_api::Uid;
use krafla_cluster::Propagation;

/// How the owner that a reference names is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It is there.
    Present,
    /// It is to go, and waits until its dependents are gone.
    WaitsForDependents,
    /// It is gone, or never was.
    Gone,
    /// The reference names a kind that is not served, or one whose objects cannot own this one. Whether there is an owner
    /// cannot be known, so there may be one.
    Unknowable,
}

/// Whether an object is to go, and what it asks for its dependents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Deletion {
    /// Nobody has asked for it.
    #[default]
    NotAsked,
    /// It was asked for, and nothing in it is for the collector to do.
    Asked,
    /// Its dependents are to go first.
    Foreground,
    /// Its dependents are to stay, without it as their owner.
    Orphan,
}

/// What dependents an object has, as far as it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dependents {
    /// Whether there are any.
    pub(super) are_there: bool,
    /// Whether one of them must be gone before the object may go in the foreground.
    pub(super) block: bool,
    /// Whether one of them itself waits for its own dependents.
    pub(super) wait: bool,
}

/// All that counts for what is to become of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) deletion: Deletion,
    /// The propagation that its finalizers ask for, should it be deleted.
    pub(super) propagation: Propagation,
    /// Each reference, in order.
    pub(super) owners: Vec<(Uid, Owner)>,
    /// Whether an owner that waits for its dependents waits for this one.
    pub(super) blocks_owners: bool,
    pub(super) dependents: Dependents,
}

/// What is to become of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stays as it is, for now or for good.
    Keep,
    /// It has an owner, and references to others that it should not have.
    Disown(Vec<Uid>),
    /// Nobody owns it any more.
    Delete(Propagation),
    /// It may be that it and its owner wait for each other: its owners should no longer wait for it.
    Unblock,
    /// All dependents that it waited for are gone.
    EndWaiting,
    /// Its dependents are to be disowned, and then it may go.
    OrphanDependents,
}

/// What is to become of an object.
pub(super) fn judge(facts: &Facts) -> Verdict {
    match facts.deletion {
        Deletion::Asked => Verdict::Keep,
        Deletion::Orphan => Verdict::OrphanDependents,
        Deletion::Foreground if facts.dependents.block => Verdict::Keep,
        Deletion::Foreground => Verdict::EndWaiting,
        Deletion::NotAsked => judge_by_owners(facts),
    }
}

fn judge_by_owners(facts: &Facts) -> Verdict {
    let is = |of: &[Owner]| facts.owners.iter().any(|(_, owner)| of.contains(owner));
    if facts.owners.is_empty() {
        return Verdict::Keep;
    }
    if is(&[Owner::Present, Owner::Unknowable]) {
        let lost =
            facts.owners.iter().filter(|(_, owner)| matches!(owner, Owner::Gone | Owner::WaitsForDependents));
        let lost: Vec<Uid> = lost.map(|(uid, _)| uid.clone()).collect();
        return if lost.is_empty() { Verdict::Keep } else { Verdict::Disown(lost) };
    }
    if !is(&[Owner::WaitsForDependents]) || !facts.dependents.are_there {
        return Verdict::Delete(facts.propagation);
    }
    // An owner waits, so this object goes in the same way: its own dependents first. Where one of those waits already, it
    // may be for this object, through a circle of owners.
    let may_be_circle = facts.dependents.wait && facts.blocks_owners;
    if may_be_circle { Verdict::Unblock } else { Verdict::Delete(Propagation::Foreground) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts in words: `p` present, `w` waiting, `g` gone, `?` unknowable, one letter per owner.
    fn owned(owners: &str) -> Facts {
        let owner = |letter| match letter {
            'p' => Owner::Present,
            'w' => Owner::WaitsForDependents,
            'g' => Owner::Gone,
            _ => Owner::Unknowable,
        };
        let owners = owners.char_indices().map(|(n, letter)| (Uid::from(&*n.to_string()), owner(letter)));
        Facts { owners: owners.collect(), blocks_owners: true, ..Facts::default() }
    }

    const SOME: Dependents = Dependents { are_there: true, block: false, wait: false };

    #[test]
    fn an_object_goes_when_no_owner_is_left() {
        let without = |lost: &[&str]| Verdict::Disown(lost.iter().map(|uid| Uid::from(*uid)).collect());
        for (owners, verdict) in [
            ("", Verdict::Keep),
            ("p", Verdict::Keep),
            ("pp", Verdict::Keep),
            ("?", Verdict::Keep),
            ("g", Verdict::Delete(Propagation::Background)),
            ("gg", Verdict::Delete(Propagation::Background)),
            ("w", Verdict::Delete(Propagation::Background)),
            ("gw", Verdict::Delete(Propagation::Background)),
            ("pg", without(&["1"])),
            ("gpw", without(&["0", "2"])),
            ("?g", without(&["1"])),
        ] {
            assert_eq!(judge(&owned(owners)), verdict, "owners: {owners}");
        }
    }

    #[test]
    fn an_object_goes_as_its_finalizers_ask() {
        let facts = Facts { propagation: Propagation::Orphan, dependents: SOME, ..owned("g") };
        assert_eq!(judge(&facts), Verdict::Delete(Propagation::Orphan));
    }

    #[test]
    fn a_foreground_deletion_goes_on_through_dependents_of_dependents() {
        let facts = Facts { dependents: SOME, ..owned("w") };
        assert_eq!(judge(&facts), Verdict::Delete(Propagation::Foreground));
        let facts = Facts { dependents: SOME, ..owned("g") };
        assert_eq!(judge(&facts), Verdict::Delete(Propagation::Background), "nobody waits for it");
    }

    #[test]
    fn a_circle_is_broken_before_it_is_entered() {
        let in_circle = Dependents { wait: true, ..SOME };
        let facts = Facts { dependents: in_circle, ..owned("w") };
        assert_eq!(judge(&facts), Verdict::Unblock);
        let unblocked = Facts { blocks_owners: false, ..facts };
        assert_eq!(judge(&unblocked), Verdict::Delete(Propagation::Foreground));
    }

    #[test]
    fn a_deleted_object_does_what_it_promised_its_dependents_and_no_more() {
        let blocked = Dependents { block: true, ..SOME };
        for (deletion, dependents, verdict) in [
            (Deletion::Asked, SOME, Verdict::Keep),
            (Deletion::Foreground, blocked, Verdict::Keep),
            (Deletion::Foreground, SOME, Verdict::EndWaiting),
            (Deletion::Orphan, blocked, Verdict::OrphanDependents),
        ] {
            for owners in ["", "p", "g"] {
                let facts = Facts { deletion, dependents, ..owned(owners) };
                assert_eq!(judge(&facts), verdict, "{deletion:?}, owners: {owners}");
            }
        }
    }
}
