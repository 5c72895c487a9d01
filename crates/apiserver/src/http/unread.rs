//! Bytes of answers that clients have yet to take.
//!
//! Each piece of an answer is counted from the moment it is given to the connection until the connection has written it. A
//! client that takes nothing for too long loses its connection, so that clients that do not read cost a bounded amount
//! of memory, and not for long. Clients list again and go on: a watch can end at any time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a client may leave an answer unread.
pub(crate) const READ_WITHIN: Duration = Duration::from_secs(30);
/// How many unread bytes of all clients are normal. Beyond it, clients have less time.
const UNREAD_BYTES_MAX: usize = 256 << 20;
/// How much less time clients have then.
const HASTE: u32 = 6;
/// The largest piece of an answer: a client makes progress if it takes as much.
pub(super) const PIECE_BYTES: usize = 64 * 1024;

/// All unread bytes of a server, and how long they may stay unread.
#[derive(Debug)]
pub(super) struct Unread {
    n_bytes: AtomicUsize,
    n_bytes_max: usize,
    read_within: Duration,
}

impl Unread {
    pub(super) fn new(read_within: Duration) -> Arc<Unread> {
        Arc::new(Unread { n_bytes: AtomicUsize::new(0), n_bytes_max: UNREAD_BYTES_MAX, read_within })
    }

    /// How often to look for clients that do not read.
    pub(super) fn look_every(&self) -> Duration {
        self.read_within / HASTE
    }

    /// How long an answer may stay unread. A user may pause the output of a pod, but not if memory is short.
    fn patience(&self, reading: Reading) -> Option<Duration> {
        let is_short = self.n_bytes.load(Ordering::Relaxed) > self.n_bytes_max;
        match (reading, is_short) {
            (Reading::Steady, false) => Some(self.read_within),
            (Reading::Steady, true) => Some(self.read_within / HASTE),
            (Reading::AtWill, false) => None,
            (Reading::AtWill, true) => Some(self.read_within),
        }
    }
}

/// How a client is expected to read an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// As it arrives: programs do.
    Steady,
    /// When a user wants to see more: logs and whatever else a pod sends.
    AtWill,
}

/// The unread answers of one connection.
#[derive(Debug)]
pub(super) struct Outbox {
    all: Arc<Unread>,
    answers: Mutex<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    n_ever: u64,
    /// Those with unread bytes.
    unread: BTreeMap<u64, UnreadAnswer>,
}

#[derive(Debug)]
struct UnreadAnswer {
    n_bytes: usize,
    reading: Reading,
    /// When the client last took something of it, or when it could take the first of it.
    moved_at: Instant,
}

impl Outbox {
    pub(super) fn new(all: Arc<Unread>) -> Arc<Outbox> {
        Arc::new(Outbox { all, answers: Mutex::default() })
    }

    /// A new answer, by its number.
    pub(super) fn answer(&self) -> u64 {
        let mut answers = self.answers.lock();
        answers.n_ever += 1;
        answers.n_ever
    }

    /// Counts a piece of an answer as unread until it is dropped.
    pub(super) fn give(self: &Arc<Outbox>, answer: u64, reading: Reading, piece: Bytes) -> Bytes {
        if piece.is_empty() {
            return piece;
        }
        self.all.n_bytes.fetch_add(piece.len(), Ordering::Relaxed);
        let first = || UnreadAnswer { n_bytes: 0, reading, moved_at: Instant::now() };
        self.answers.lock().unread.entry(answer).or_insert_with(first).n_bytes += piece.len();
        Bytes::from_owner(Given { piece, answer, outbox: self.clone() })
    }

    fn take(&self, answer: u64, n_bytes: usize) {
        self.all.n_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
        let mut answers = self.answers.lock();
        let Some(unread) = answers.unread.get_mut(&answer) else { return };
        unread.n_bytes = unread.n_bytes.saturating_sub(n_bytes);
        unread.moved_at = Instant::now();
        if unread.n_bytes == 0 {
            answers.unread.remove(&answer);
        }
    }

    /// Whether the client has left an answer unread for too long.
    pub(super) fn is_stalled(&self, now: Instant) -> bool {
        let is_stalled = |answer: &UnreadAnswer| {
            let waited = now.saturating_duration_since(answer.moved_at);
            self.all.patience(answer.reading).is_some_and(|patience| waited >= patience)
        };
        self.answers.lock().unread.values().any(is_stalled)
    }
}

/// A piece of an answer that is not written yet.
struct Given {
    piece: Bytes,
    answer: u64,
    outbox: Arc<Outbox>,
}

impl AsRef<[u8]> for Given {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.outbox.take(self.answer, self.piece.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: Bytes = Bytes::from_static(b"0123456789");

    fn outbox(n_bytes_max: usize) -> Arc<Outbox> {
        let read_within = Duration::from_secs(30);
        Outbox::new(Arc::new(Unread { n_bytes: AtomicUsize::new(0), n_bytes_max, read_within }))
    }

    fn later(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[test]
    fn an_answer_of_which_nothing_is_taken_is_stalled() {
        let outbox = outbox(100);
        let (watch, other) = (outbox.answer(), outbox.answer());
        let _news = outbox.give(watch, Reading::Steady, PIECE);
        assert!(!outbox.is_stalled(later(29)));
        assert!(outbox.is_stalled(later(30)));
        drop(outbox.give(other, Reading::Steady, PIECE));
        assert!(outbox.is_stalled(later(30)), "that another answer is read does not help");
    }

    #[test]
    fn an_answer_that_is_read_a_little_is_not_stalled() {
        let outbox = outbox(100);
        let watch = outbox.answer();
        let [first, _second] = [(); 2].map(|()| outbox.give(watch, Reading::Steady, PIECE));
        let deadline = later(30);
        drop(first);
        assert!(!outbox.is_stalled(deadline));
    }

    #[test]
    fn an_answer_that_was_read_is_not_stalled_however_long_it_has_no_more_to_say() {
        let outbox = outbox(100);
        drop(outbox.give(outbox.answer(), Reading::Steady, PIECE));
        assert!(!outbox.is_stalled(later(3600)));
        assert!(outbox.answers.lock().unread.is_empty());
        assert_eq!(outbox.all.n_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_user_may_pause_the_log_of_a_pod_unless_memory_is_short() {
        let outbox = outbox(15);
        let _log = outbox.give(outbox.answer(), Reading::AtWill, PIECE);
        assert!(!outbox.is_stalled(later(3600)));
        let _more = outbox.give(outbox.answer(), Reading::AtWill, PIECE);
        assert!(!outbox.is_stalled(later(29)));
        assert!(outbox.is_stalled(later(30)));
    }

    #[test]
    fn clients_have_less_time_if_memory_is_short() {
        let outbox = outbox(15);
        let [_first, more] = [(); 2].map(|()| outbox.give(outbox.answer(), Reading::Steady, PIECE));
        assert!(!outbox.is_stalled(later(4)));
        assert!(outbox.is_stalled(later(5)));
        drop(more);
        assert!(!outbox.is_stalled(later(5)));
    }
}
