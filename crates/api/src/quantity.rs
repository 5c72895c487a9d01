//! Amounts of a resource in Kubernetes' notation: `500m`, `1Gi`, `2e3`.
//!
//! An amount is a whole number of nano-units, because Kubernetes knows nothing finer and rounds up to it. 127 bits of
//! them reach to 10^29 units: far beyond any machine, so adding never loses anything that exists.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An amount of a resource. Equal amounts are equal, however they were written; the notation is kept for printing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    notation: Notation,
}

/// The three ways to write large and small amounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notation {
    /// `m`, `k`, `M`, `G`: powers of a thousand.
    #[default]
    Decimal,
    /// `Ki`, `Mi`, `Gi`: powers of 1024.
    Binary,
    /// `e3`, `e6`: powers of ten.
    Exponent,
}

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;
/// Kubernetes caps binary amounts at what a signed 64-bit number holds.
const BINARY_MAX: i128 = i64::MAX as i128 * NANOS_PER_UNIT;
/// More digits than any amount that can be stored.
const TEXT_LENGTH_MAX: usize = 128;

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl Quantity {
    /// Nothing.
    pub const ZERO: Quantity = Quantity { nanos: 0, notation: Notation::Decimal };

    /// So many whole units.
    pub const fn from_units(units: i64) -> Quantity {
        Quantity { nanos: units as i128 * NANOS_PER_UNIT, notation: Notation::Decimal }
    }

    /// So many thousandths of a unit.
    pub const fn from_milli(milli: i64) -> Quantity {
        Quantity { nanos: milli as i128 * NANOS_PER_MILLI, notation: Notation::Decimal }
    }

    /// The same amount, to be printed in another notation.
    pub const fn in_notation(self, notation: Notation) -> Quantity {
        Quantity { nanos: self.nanos, notation }
    }

    /// In whole units; a part of a unit counts as one.
    pub fn value(self) -> i64 {
        saturate(div_away_from_zero(self.nanos, NANOS_PER_UNIT))
    }

    /// In thousandths of a unit; a part of one counts as one.
    pub fn milli_value(self) -> i64 {
        saturate(div_away_from_zero(self.nanos, NANOS_PER_MILLI))
    }

    /// The amount in whole thousandths of a unit; a part of one counts as one.
    pub fn rounded_to_milli(self) -> Quantity {
        let milli = div_away_from_zero(self.nanos, NANOS_PER_MILLI);
        Quantity { nanos: milli.saturating_mul(NANOS_PER_MILLI), notation: self.notation }
    }

    /// Whether it is nothing.
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether it is less than nothing.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// The amount times a whole number; stays within what can be stored.
    pub const fn times(self, factor: i64) -> Quantity {
        Quantity { nanos: self.nanos.saturating_mul(factor as i128), notation: self.notation }
    }

    /// A sum keeps the notation of its first part, unless that is nothing.
    const fn with_nanos(self, nanos: i128, other: Quantity) -> Quantity {
        let notation = if self.is_zero() { other.notation } else { self.notation };
        Quantity { nanos, notation }
    }
}

fn div_away_from_zero(number: i128, by: i128) -> i128 {
    let (quotient, remainder) = (number / by, number % by);
    quotient + remainder.signum()
}

fn saturate(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl Add for Quantity {
    type Output = Quantity;

    fn add(self, other: Quantity) -> Quantity {
        self.with_nanos(self.nanos.saturating_add(other.nanos), other)
    }
}

impl Sub for Quantity {
    type Output = Quantity;

    fn sub(self, other: Quantity) -> Quantity {
        self.with_nanos(self.nanos.saturating_sub(other.nanos), other)
    }
}

impl Neg for Quantity {
    type Output = Quantity;

    fn neg(self) -> Quantity {
        Quantity { nanos: self.nanos.saturating_neg(), notation: self.notation }
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Quantity) {
        *self = *self + other;
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Quantity) {
        *self = *self - other;
    }
}

impl std::iter::Sum for Quantity {
    fn sum<I: Iterator<Item = Quantity>>(amounts: I) -> Quantity {
        amounts.fold(Quantity::ZERO, Add::add)
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: no fraction, and the largest suffix that needs none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.notation {
            _ if self.nanos == 0 => f.write_str("0"),
            Notation::Binary if self.prints_binary() => self.fmt_binary(f),
            Notation::Binary | Notation::Decimal => self.fmt_decimal(f),
            Notation::Exponent => self.fmt_exponent(f),
        }
    }
}

impl Quantity {
    /// Binary amounts that are small or have a fraction are printed in decimal notation, which can say them exactly.
    fn prints_binary(self) -> bool {
        let is_small = self.nanos.unsigned_abs() < 1024 * NANOS_PER_UNIT.unsigned_abs();
        !is_small && self.nanos % NANOS_PER_UNIT == 0
    }

    fn fmt_binary(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = self.nanos / NANOS_PER_UNIT;
        let fits = |bits: &u32| units % (1i128 << *bits) == 0;
        match BINARY_SUFFIXES.iter().rev().find(|(_, bits)| fits(bits)) {
            Some((suffix, bits)) => write!(f, "{}{suffix}", units >> bits),
            None => write!(f, "{units}"),
        }
    }

    fn fmt_decimal(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |power: i32| nanos_of_power(power).filter(|nanos| self.nanos % nanos == 0);
        let largest = DECIMAL_SUFFIXES.iter().rev().find_map(|(suffix, power)| Some((suffix, fits(*power)?)));
        let (suffix, unit) = largest.unwrap_or((&"n", 1));
        write!(f, "{}{suffix}", self.nanos / unit)
    }

    fn fmt_exponent(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut mantissa, mut power) = (self.nanos, -9);
        while mantissa % 1000 == 0 {
            mantissa /= 1000;
            power += 3;
        }
        if power == 0 { write!(f, "{mantissa}") } else { write!(f, "{mantissa}e{power}") }
    }
}

/// How many nanos ten to some power is, if that is a whole number that can be stored.
fn nanos_of_power(power: i32) -> Option<i128> {
    10i128.checked_pow(u32::try_from(power.checked_add(9)?).ok()?)
}

/// Why a text is not an amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAQuantity(String);

impl fmt::Display for NotAQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a quantity: {:?}; write it like \"500m\", \"2\" or \"1Gi\"", self.0)
    }
}

impl std::error::Error for NotAQuantity {}

impl FromStr for Quantity {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| NotAQuantity(text.chars().take(64).collect()))
    }
}

/// What a suffix multiplies by, and the notation that it belongs to.
enum Suffix {
    Ten { power: i32, notation: Notation },
    Two { bits: u32 },
}

fn parse(text: &str) -> Option<Quantity> {
    if text.len() > TEXT_LENGTH_MAX {
        return None;
    }
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number_end = unsigned.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at_checked(number_end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0');
    let fraction_digits = i32::try_from(fraction.len()).ok()?;
    let magnitude = match parse_suffix(suffix)? {
        _ if significant.is_empty() => Quantity { nanos: 0, notation: notation_of(suffix)? },
        Suffix::Ten { power, notation } => {
            let nanos = scaled_up(significant, 1, power.checked_sub(fraction_digits)?)?;
            Quantity { nanos, notation }
        }
        Suffix::Two { bits } => {
            let nanos = scaled_up(significant, 1 << bits, -fraction_digits)
                .map_or(BINARY_MAX, |nanos| nanos.min(BINARY_MAX));
            // Less than one unit cannot be said in binary.
            let notation = if nanos < NANOS_PER_UNIT { Notation::Decimal } else { Notation::Binary };
            Quantity { nanos, notation }
        }
    };
    Some(if is_negative { -magnitude } else { magnitude })
}

fn parse_suffix(suffix: &str) -> Option<Suffix> {
    if let Some((_, power)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Some(Suffix::Ten { power: *power, notation: Notation::Decimal });
    }
    if let Some((_, bits)) = BINARY_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Some(Suffix::Two { bits: *bits });
    }
    let power = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some(Suffix::Ten { power, notation: Notation::Exponent })
}

fn notation_of(suffix: &str) -> Option<Notation> {
    Some(match parse_suffix(suffix)? {
        Suffix::Ten { notation, .. } => notation,
        Suffix::Two { .. } => Notation::Binary,
    })
}

/// `digits` times `factor` times ten to the `power`, in nanos. What is finer than a nano rounds up to one: whoever asks
/// for a little shall get some. None if it is more than can be stored.
fn scaled_up(digits: &str, factor: i128, power: i32) -> Option<i128> {
    let power = power.checked_add(9)?;
    if power >= 0 {
        let mantissa: i128 = digits.parse().ok()?;
        return mantissa.checked_mul(factor)?.checked_mul(10i128.checked_pow(u32::try_from(power).ok()?)?);
    }
    // Digits far behind the point only matter in that they are not nothing.
    let n_dropped = usize::try_from(power.unsigned_abs()).ok()?;
    let precision = n_dropped.min(18);
    let kept = digits.len().saturating_sub(n_dropped - precision);
    let (head, tail) = digits.split_at_checked(kept)?;
    let head: i128 = if head.is_empty() { 0 } else { head.parse().ok()? };
    let divisor = 10i128.checked_pow(u32::try_from(precision).ok()?)?;
    let (product, has_tail) = (head.checked_mul(factor)?, tail.bytes().any(|digit| digit != b'0'));
    let rounds_up = product % divisor != 0 || has_tail;
    Some(product / divisor + i128::from(rounds_up))
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrNumber)
    }
}

/// Manifests say `cpu: 2` as well as `cpu: "2"`.
struct TextOrNumber;

impl de::Visitor<'_> for TextOrNumber {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as \"500m\", 2 or \"1Gi\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        text.trim().parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_units(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity { nanos: i128::from(number) * NANOS_PER_UNIT, notation: Notation::Decimal })
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
        number.to_string().parse().map_err(E::custom)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::ZERO)
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}

/// What the API server accepts as an amount.
pub const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn amounts_print_in_canonical_form() {
        for (text, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("0Ki", "0"),
            ("000.5", "500m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("5.", "5"),
            ("+5", "5"),
            ("-5", "-5"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5k", "1500"),
            ("1000", "1k"),
            ("1000k", "1M"),
            ("123456", "123456"),
            ("0.001", "1m"),
            ("0.0001", "100u"),
            ("0.0000000001", "1n"),
            ("1.00000000001", "1000000001n"),
            ("-0.0000000001", "-1n"),
            ("1Ki", "1Ki"),
            ("1024Ki", "1Mi"),
            ("1024", "1024"),
            ("1000Ki", "1000Ki"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            (".001Ki", "1024m"),
            (".000001Ki", "1024u"),
            (".000000001Ki", "1024n"),
            (".000000000001Ki", "2n"),
            ("512Ki", "512Ki"),
            ("-1Gi", "-1Gi"),
            ("100Ei", "9223372036854775807"),
            ("8393484711233049649Pi", "9223372036854775807"),
            ("1E", "1E"),
            ("1000E", "1000E"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e6", "12e6"),
            ("1.5e3", "1500"),
            ("10e3", "10e3"),
            ("1e4", "10e3"),
            ("1e-3", "1e-3"),
            ("1e0", "1"),
            ("5e-10", "1e-9"),
            ("0.00000000000000000000000000000000000000000000000001", "1n"),
        ] {
            assert_eq!(quantity(text).to_string(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        let refused = [
            "", "-", "+", ".", "Ki", "1ki", "1K", "1mi", "1.2.3", "1 Gi", " 1", "1Gib", "--1", "+-1", "1e",
            "1ee3", "0x10", "NaN", "1e400", "é",
        ];
        for text in refused {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
        assert!("9".repeat(200).parse::<Quantity>().is_err());
    }

    #[test]
    fn values_round_up() {
        for (text, milli, value) in [
            ("100m", 100, 1),
            ("1100m", 1100, 2),
            ("1u", 1, 1),
            ("2Gi", 2_147_483_648_000, 2_147_483_648),
            ("-1.5", -1500, -2),
        ] {
            assert_eq!((quantity(text).milli_value(), quantity(text).value()), (milli, value), "{text}");
        }
    }

    #[test]
    fn equal_amounts_are_equal_however_they_are_written() {
        assert_eq!(quantity("1"), quantity("1000m"));
        assert_eq!(quantity("1Ki"), quantity("1024"));
        assert!(quantity("1G") < quantity("1Gi"));
        assert!(quantity("-1") < Quantity::ZERO);
    }

    #[test]
    fn a_sum_keeps_the_notation_of_its_first_part() {
        assert_eq!((quantity("1Gi") + quantity("1024")).to_string(), "1048577Ki");
        assert_eq!((Quantity::ZERO + quantity("1Gi")).to_string(), "1Gi");
        assert_eq!((quantity("1Gi") - quantity("2Gi")).to_string(), "-1Gi");
        assert_eq!((quantity("1e6") - quantity("1k")).to_string(), "999e3");
        assert_eq!(["100m", "200m"].into_iter().map(quantity).sum::<Quantity>().to_string(), "300m");
        assert_eq!(quantity("300m").times(10).to_string(), "3");
    }

    #[test]
    fn json_numbers_are_read_as_well() {
        let read = |json| {
            serde_json::from_str::<Quantity>(json).map(|quantity| quantity.to_string()).unwrap_or_default()
        };
        assert_eq!(
            [read("2"), read("0.5"), read("-3"), read("\"1024Mi\""), read("1e3")],
            ["2", "500m", "-3", "1Gi", "1k"]
        );
        assert!(serde_json::from_str::<Quantity>("true").is_err());
    }
}
