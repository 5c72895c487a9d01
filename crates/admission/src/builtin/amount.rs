//! Amounts of pods: a number, or a percentage of all.

use crate::Verdict;
use crate::json::At;

use super::validate_not_negative;

/// The percentage here, if it is written as one.
fn percent(at: &At<'_>) -> Option<u64> {
    let digits = at.value().as_str()?.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // A number too large to hold is larger than any that is allowed.
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// An amount must be a number that is not negative, or a percentage.
pub(super) fn validate(at: &At<'_>, verdict: &mut Verdict) {
    validate_not_negative(at, verdict);
    if let Some(text) = at.value().as_str().filter(|_| percent(at).is_none()) {
        let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                   regex used for validation is '[0-9]+%')";
        verdict.invalid(at.path(), text, why);
    }
}

/// A percentage must not be more than everything.
pub(super) fn validate_at_most_all(at: &At<'_>, verdict: &mut Verdict) {
    if percent(at).is_some_and(|percent| percent > 100) {
        verdict.invalid(at.path(), at.value(), "must not be greater than 100%");
    }
}

/// Whether an amount is none: 0, 0%, or something that is no amount.
pub(super) fn is_zero(at: &At<'_>) -> bool {
    let plain = || at.int().or_else(|| at.text().parse().ok()).unwrap_or(0);
    percent(at).map_or_else(|| plain() == 0, |percent| percent == 0)
}
