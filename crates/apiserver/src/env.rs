//! What the server takes from its surroundings besides requests: the time, identities, chance.
//!
//! Everything else about an answer follows from the request and the store. A simulation that gives its own `Env` gets the
//! same answers from the same seed.

use krafla_api::{Time, Uid};
use krafla_cluster::SshKeyPair;

/// The surroundings.
pub trait Env: Send + Sync {
    /// What time it is.
    fn now(&self) -> Time;

    /// An identity that nothing has had before.
    fn uid(&self) -> Uid;

    /// Five letters and digits for the end of a generated name.
    fn suffix(&self) -> String;

    /// A key pair that nobody else has.
    fn ssh_key_pair(&self) -> Result<SshKeyPair, String> {
        krafla_keys::ssh::key_pair()
    }

    /// Whether schedules may name this time zone.
    fn has_time_zone(&self, name: &str) -> bool {
        matches!(name, "UTC" | "Etc/UTC")
    }
}

/// The real surroundings.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEnv;

impl Env for SystemEnv {
    fn now(&self) -> Time {
        Time(jiff::Timestamp::now())
    }

    fn uid(&self) -> Uid {
        uid_of(random_bytes())
    }

    fn suffix(&self) -> String {
        suffix_of(random_bytes())
    }

    fn has_time_zone(&self, name: &str) -> bool {
        knows_time_zone(name)
    }
}

/// Whether schedules may name this time zone.
pub(crate) fn knows_time_zone(name: &str) -> bool {
    krafla_api::time_zone(name).is_some()
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // A machine without randomness can run nothing safely; the identity is then unique by time alone.
    if getrandom::fill(&mut bytes).is_err() {
        let nanos = jiff::Timestamp::now().as_nanosecond().to_le_bytes();
        bytes.iter_mut().zip(nanos).for_each(|(byte, of_time)| *byte = of_time);
    }
    bytes
}

/// A version 4 UUID from random bytes.
pub fn uid_of(mut bytes: [u8; 16]) -> Uid {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.extend([byte >> 4, byte & 0xf].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')));
    }
    Uid(text.into())
}

/// The end of a generated name from random bytes: no vowels and no look-alikes, as upstream, so that no words form.
pub fn suffix_of(bytes: [u8; 5]) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let letters = bytes.iter().filter_map(|byte| LETTERS.get(usize::from(*byte) % LETTERS.len()));
    letters.map(|letter| char::from(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_a_version_4_uuid() {
        assert_eq!(&*uid_of([0xff; 16]).0, "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(&*uid_of([0; 16]).0, "00000000-0000-4000-8000-000000000000");
        let bytes = std::array::from_fn(|index| 0x10 * index as u8 + 0xf - index as u8);
        assert_eq!(&*uid_of(bytes).0, "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0");
    }

    #[test]
    fn a_suffix_has_five_letters_or_digits() {
        assert_eq!(suffix_of([0, 1, 26, 27, 255]), "bc9bq");
    }
}
