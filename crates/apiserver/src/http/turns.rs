//! Fairness between users: one with many requests in flight does not keep others out.

use std::collections::HashMap;

use parking_lot::Mutex;

/// How many requests of each user are being worked on.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<String, usize>>);

/// A request of a user that is being worked on. Dropping it ends that.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    user: &'a str,
}

impl Turns {
    /// A turn for a user, unless it has so many already.
    pub(super) fn take<'a>(&'a self, user: &'a str, n_max: usize) -> Option<Turn<'a>> {
        let mut turns = self.0.lock();
        match turns.get_mut(user) {
            Some(n_taken) if *n_taken >= n_max => return None,
            Some(n_taken) => *n_taken += 1,
            None => {
                turns.insert(user.to_owned(), 1);
            }
        }
        Some(Turn { turns: self, user })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turns = self.turns.0.lock();
        match turns.get_mut(self.user) {
            Some(n_taken) if *n_taken > 1 => *n_taken -= 1,
            _ => {
                turns.remove(self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_takes_all_turns_leaves_those_of_others() {
        let turns = Turns::default();
        let taken: Vec<_> = std::iter::from_fn(|| turns.take("busy", 3)).collect();
        assert_eq!(taken.len(), 3);
        assert!(turns.take("other", 3).is_some());
        drop(taken);
        assert!(turns.take("busy", 3).is_some());
        assert!(turns.0.lock().is_empty(), "nothing is left of those who are gone");
    }
}
