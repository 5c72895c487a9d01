//! The one source of chance: splitmix64, the same numbers from the same seed on every machine.

/// A seeded generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The generator of a seed. Seeds that differ in one bit lead to unrelated numbers.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next number.
    #[allow(clippy::should_implement_trait, reason = "it never ends and is not iterated over")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`; 0 if there is none.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The high half of a 128-bit product spreads evenly enough for limits this small, without a division.
        let product = u128::from(self.next()) * u128::from(limit);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// Yes, so many times in a hundred.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// One of several, unless there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = self.below(u64::try_from(from.len()).unwrap_or(0));
        from.get(usize::try_from(index).unwrap_or(0))
    }
}

/// Spreads every bit of a number over all bits of the answer.
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_leads_to_the_same_numbers() {
        let mut rng = Rng::new(0);
        // The first numbers of splitmix64 for seed 0, as published with the algorithm.
        assert_eq!([rng.next(), rng.next()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn numbers_stay_below_their_limit_and_reach_all_of_it() {
        let mut rng = Rng::new(7);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[usize::try_from(rng.below(5)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(rng.pick::<u8>(&[]), None);
    }
}
