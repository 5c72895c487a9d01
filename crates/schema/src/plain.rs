//! How much of a text stands in JSON as it is. Every string that is read or written is asked, and nearly all of them do.

/// How many bytes from the start need no escape: no quote, no backslash, no control character.
pub fn n_plain(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks();
    for (at, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return at * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    words.len() * 8 + rest.iter().take_while(|byte| is_plain(**byte)).count()
}

fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

/// The high bit of the first byte of eight that needs an escape; what is above it says nothing. Looking at eight at once
/// takes about as long as looking at one.
fn special_bytes(word: u64) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = EACH << 7;
    // Taking one away borrows from the next byte if there is nothing to take it from.
    let is_zero = |word: u64| word.wrapping_sub(EACH) & !word & HIGH;
    let is_control = word.wrapping_sub(EACH * b' ' as u64) & !word & HIGH;
    is_zero(word ^ (EACH * b'"' as u64)) | is_zero(word ^ (EACH * b'\\' as u64)) | is_control
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn eight_at_once_say_what_each_would_say(
            text in vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'\\'), b' '..=b'~', 0x1e..=0x22_u8], 0..40),
        ) {
            let expected = text.iter().take_while(|byte| is_plain(**byte)).count();
            prop_assert_eq!(n_plain(&text), expected);
        }
    }
}
