//! Dividing one resource among queues, by weight.
//!
//! ```text
//!   level ─────────────────────┐
//!      ┌──┐                    │   each queue is filled up to `level x weight`,
//!      │  │   ┌────┐  ┌──┐     │   but never above what it can use (its cap)
//!      │  │   │    │  │  │     │   and never below what it was guaranteed (its floor);
//!      └──┘   └────┘  └──┘     v   the level is as high as the total allows
//! ```
//!
//! What one queue cannot use goes to the others, so nothing lies idle while somebody wants it. What cannot be divided, such
//! as the last of three devices for two queues, goes as a whole to those that are closest to their next unit. Volcano: the
//! proportion plugin.

use std::cmp::Reverse;

/// What one queue may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) weight: u32,
    pub(crate) floor: i64,
    pub(crate) cap: i64,
}

/// Fractions of a level are kept to this many bits, so that small weights are served exactly.
const FRACTION_BITS: u32 = 20;
/// Bits of a level: those of an amount and those of its fraction.
const LEVEL_BITS: u32 = 63 + FRACTION_BITS;

impl Claim {
    fn at(self, level: u128) -> i64 {
        let filled = level.saturating_mul(u128::from(self.weight)) >> FRACTION_BITS;
        i64::try_from(filled).unwrap_or(i64::MAX).min(self.cap).max(self.floor)
    }

    /// What rounding down takes from it, as a part of a unit.
    fn fraction(self, level: u128) -> u128 {
        level.saturating_mul(u128::from(self.weight)) % (1 << FRACTION_BITS)
    }
}

/// What each queue gets of `total`. Among equals the first get what cannot be divided.
pub(crate) fn divide(total: i64, claims: &[Claim]) -> Vec<i64> {
    let is_too_high = |level: u128| {
        let given = claims.iter().map(|claim| i128::from(claim.at(level))).sum::<i128>();
        given > i128::from(total)
    };
    // The highest level that is not too high, bit by bit.
    let mut level: u128 = 0;
    for bit in (0..LEVEL_BITS).rev() {
        let higher = level | (1 << bit);
        if !is_too_high(higher) {
            level = higher;
        }
    }
    let mut shares: Vec<i64> = claims.iter().map(|claim| claim.at(level)).collect();
    hand_out_rest(total, level, claims, &mut shares);
    shares
}

/// Gives away what rounding down has left: the next level would be too high for all, but not for some.
fn hand_out_rest(total: i64, level: u128, claims: &[Claim], shares: &mut [i64]) {
    let mut rest = shares.iter().fold(total, |rest, share| rest.saturating_sub(*share));
    let mut line: Vec<(&Claim, &mut i64)> = claims.iter().zip(shares).collect();
    line.sort_by_key(|(claim, _)| Reverse(claim.fraction(level)));
    for (claim, share) in line {
        let more = claim.at(level.saturating_add(1)).saturating_sub(*share).min(rest).max(0);
        *share = share.saturating_add(more);
        rest = rest.saturating_sub(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(total: i64, claims: &[(u32, i64, i64)]) -> Vec<i64> {
        let claims: Vec<Claim> =
            claims.iter().map(|&(weight, floor, cap)| Claim { weight, floor, cap }).collect();
        divide(total, &claims)
    }

    #[test]
    fn equal_weights_get_equal_shares() {
        assert_eq!(shares(10, &[(1, 0, 100), (1, 0, 100)]), [5, 5]);
    }

    #[test]
    fn shares_follow_weights() {
        assert_eq!(shares(4000, &[(1, 0, 9000), (3, 0, 9000)]), [1000, 3000]);
    }

    #[test]
    fn what_one_queue_cannot_use_goes_to_the_others() {
        assert_eq!(shares(10, &[(1, 0, 2), (1, 0, 100)]), [2, 8]);
        assert_eq!(shares(12, &[(1, 0, 2), (2, 0, 100), (3, 0, 100)]), [2, 4, 6]);
    }

    #[test]
    fn nobody_gets_more_than_it_can_use() {
        assert_eq!(shares(10, &[(1, 0, 2), (1, 0, 3)]), [2, 3]);
    }

    #[test]
    fn a_guarantee_is_kept_at_the_cost_of_the_others() {
        assert_eq!(shares(10, &[(1, 8, 100), (1, 0, 100), (1, 0, 100)]), [8, 1, 1]);
    }

    #[test]
    fn what_cannot_be_divided_goes_to_the_closest_and_then_to_the_first() {
        assert_eq!(shares(1, &[(1, 0, 9), (1, 0, 9)]), [1, 0]);
        assert_eq!(shares(8, &[(1, 0, 9), (1, 0, 9), (1, 0, 9)]), [3, 3, 2]);
        assert_eq!(shares(2, &[(2, 0, 9), (1, 0, 9)]), [1, 1]);
        assert_eq!(shares(5, &[(1, 0, 1), (1, 0, 9), (1, 0, 9), (1, 2, 2)]), [1, 1, 1, 2]);
        assert_eq!(shares(7, &[(1, 0, 2), (1, 0, 9), (1, 0, 9)]), [2, 3, 2]);
    }

    #[test]
    fn shares_add_up_to_all_that_is_wanted() {
        for total in 0..40 {
            for weights in [[1, 1, 1], [1, 2, 3], [7, 1, 90], [u32::MAX, 3, 5]] {
                for cap in 0..20 {
                    let claims = weights.map(|weight| (weight, 0, cap));
                    assert_eq!(shares(total, &claims).iter().sum::<i64>(), total.min(3 * cap), "{claims:?}");
                }
            }
        }
    }

    #[test]
    fn absurd_numbers_do_no_harm() {
        assert_eq!(shares(i64::MAX, &[(u32::MAX, 0, i64::MAX), (1, i64::MAX, i64::MAX)]), [0, i64::MAX]);
        assert_eq!(shares(-5, &[(1, 0, 10)]), [0]);
        assert!(shares(10, &[]).is_empty());
    }
}
