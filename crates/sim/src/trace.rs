//! What happened in a run: a number that two equal runs share and, on request, lines for people.

use std::time::Duration;

use crate::rng::mix;

/// What happened so far.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    hash: u64,
    /// Only kept when somebody will read them: formatting costs more than the run.
    lines: Option<Vec<String>>,
}

impl Trace {
    /// An empty trace, with lines if somebody will read them.
    pub(crate) fn new(with_lines: bool) -> Trace {
        Trace { hash: 0, lines: with_lines.then(Vec::new) }
    }

    /// Takes bytes into the number.
    pub(crate) fn digest(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.hash = mix(self.hash ^ u64::from_le_bytes(*word));
        }
        let rest = rest.iter().fold(1u64, |rest, byte| rest << 8 | u64::from(*byte));
        self.hash = mix(self.hash ^ rest);
    }

    /// The number so far.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, at: Duration, who: &str, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>10.3}s  {who:<12} {}", at.as_secs_f64(), what()));
        }
    }

    /// The number and the lines.
    pub(crate) fn finish(self) -> (u64, Vec<String>) {
        (self.hash, self.lines.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(parts: &[&str]) -> u64 {
        let mut trace = Trace::new(false);
        parts.iter().for_each(|part| trace.digest(part.as_bytes()));
        trace.finish().0
    }

    #[test]
    fn different_histories_have_different_numbers() {
        assert_eq!(hash_of(&["one", "and another"]), hash_of(&["one", "and another"]));
        assert_ne!(hash_of(&["one", "and another"]), hash_of(&["and another", "one"]));
        assert_ne!(hash_of(&["ab"]), hash_of(&["a", "b"]));
        assert_ne!(hash_of(&["\0"]), hash_of(&["\0\0"]));
    }

    #[test]
    fn lines_are_only_made_when_somebody_reads_them() {
        let mut silent = Trace::new(false);
        silent.line(Duration::ZERO, "user", || unreachable!("nobody reads this"));
        let mut loud = Trace::new(true);
        loud.line(Duration::from_millis(1200), "user", || "create job a".to_owned());
        assert_eq!(loud.finish().1, ["     1.200s  user         create job a"]);
    }
}
