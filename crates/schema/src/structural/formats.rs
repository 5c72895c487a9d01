//! The formats that a text may have to have. Formats that Kubernetes does not know say nothing.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::names;
use crate::scalar;

/// Whether a text has a format.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_date_time(text),
        "date" => is_date(text),
        "duration" => text.parse::<krafla_api::GoDuration>().is_ok() || is_duration_in_words(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "uuid" => is_uuid(text),
        "uuid3" => is_uuid(text) && uuid_digit(text, 12) == Some('3'),
        "uuid4" => is_uuid(text) && uuid_digit(text, 12) == Some('4') && is_common_variant(text),
        "uuid5" => is_uuid(text) && uuid_digit(text, 12) == Some('5') && is_common_variant(text),
        "byte" => !text.is_empty() && scalar::canonical_base64(text).is_ok(),
        "creditcard" => is_credit_card(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "ssn" => is_ssn(text),
        "hexcolor" => is_hex_color(text),
        "rgbcolor" => is_rgb_color(text),
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "k8s-short-name" => names::dns_label(text).is_empty(),
        "k8s-long-name" => names::dns_subdomain(text).is_empty(),
        "hostname" => is_hostname(text),
        "email" => text.rsplit_once('@').is_some_and(|(user, host)| is_dotted(user) && is_dotted(host)),
        "uri" => is_uri(text),
        "mac" => is_mac(text),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    scalar::parse_time(&text, scalar::Precision::Seconds).is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match (address.parse::<Ipv4Addr>(), address.parse::<Ipv6Addr>()) {
        (Ok(_), _) => 32,
        (_, Ok(_)) => 128,
        _ => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_uuid(text: &str) -> bool {
    let digits: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = digits.iter().map(|part| part.len()).collect();
    let is_shaped = lengths == [8, 4, 4, 4, 12] || lengths == [32];
    is_shaped && digits.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// One of the digits of a UUID, whatever its dashes.
fn uuid_digit(text: &str, at: usize) -> Option<char> {
    text.chars().filter(|character| *character != '-').nth(at)
}

fn is_common_variant(text: &str) -> bool {
    uuid_digit(text, 16).is_some_and(|digit| "89abAB".contains(digit))
}

/// Words with dots between them, as the two sides of a mail address are.
fn is_dotted(text: &str) -> bool {
    let is_atom = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    text.split('.').all(|part| !part.is_empty() && part.chars().all(is_atom))
}

/// What an HTTP request could ask for: a path, or something with a scheme.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|character| character.is_ascii_control()) {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((_, rest)) = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else { return false };
    let authority = rest.strip_prefix("//").map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    authority.is_none_or(|authority| !authority.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}']))
}

/// Numbers with units in words, such as "1 day" and "2 weeks".
fn is_duration_in_words(text: &str) -> bool {
    const UNITS: [&str; 19] = [
        "ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "m", "min", "h", "hr", "hour", "d",
        "day", "w", "wk", "week",
    ];
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = unit.trim_start().to_lowercase();
    let word = unit.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    !number.is_empty() && UNITS.iter().any(|unit| word == *unit || unit.len() > 1 && word.starts_with(unit))
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_edged = label.starts_with('-') || label.ends_with('-');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_inner) && !is_edged
    };
    // The last part of several is a domain of at least two letters.
    let is_domain = |last: &str| last.len() > 1 && !last.bytes().all(|byte| byte.is_ascii_digit());
    if text.trim_end_matches('.').rsplit_once('.').is_some_and(|(_, last)| !is_domain(last)) {
        return false;
    }
    !text.is_empty() && text.len() <= 255 && text.trim_end_matches('.').split('.').all(is_label)
}

/// The digits of a number that may be written with spaces and dashes.
fn digits_of(text: &str) -> Option<Vec<u32>> {
    let kept = text.chars().filter(|character| !matches!(character, ' ' | '-'));
    kept.map(|character| character.to_digit(10)).collect()
}

/// A number whose digits add up as those of credit cards do.
fn is_credit_card(text: &str) -> bool {
    let Some(digits) = digits_of(text) else { return false };
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let counted = digits.iter().rev().enumerate();
    let sum: u32 = counted.map(|(at, digit)| if at % 2 == 1 { doubled(*digit) } else { *digit }).sum();
    (13..=19).contains(&digits.len()) && sum.is_multiple_of(10)
}

fn is_isbn10(text: &str) -> bool {
    let kept: Vec<char> = text.chars().filter(|character| !matches!(character, ' ' | '-')).collect();
    let digit = |(at, character): (usize, &char)| match character {
        'X' if at == 9 => Some(10),
        other => other.to_digit(10),
    };
    let digits: Option<Vec<u32>> = kept.iter().enumerate().map(digit).collect();
    let sum = |digits: Vec<u32>| digits.iter().zip(1..).map(|(digit, weight)| digit * weight).sum::<u32>();
    kept.len() == 10 && digits.is_some_and(|digits| sum(digits).is_multiple_of(11))
}

fn is_isbn13(text: &str) -> bool {
    let Some(digits) = digits_of(text) else { return false };
    let weighed = digits.iter().enumerate().map(|(at, digit)| if at % 2 == 1 { digit * 3 } else { *digit });
    digits.len() == 13 && weighed.sum::<u32>().is_multiple_of(10)
}

fn is_ssn(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', ' ']).collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [3, 2, 4] && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_rgb_color(text: &str) -> bool {
    let inner = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let parts: Vec<&str> = inner.unwrap_or_default().split(',').map(str::trim).collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u8>().is_ok())
}

fn is_scheme(text: &str) -> bool {
    let mut letters = text.bytes();
    letters.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let is_pair = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(is_pair)
}
