//! The user that a client's certificate names: its common name is the user, its organisations are the groups.
//!
//! Only certificates that our own authority has signed get here, so a certificate that cannot be read names no user.

use krafla_admission::rbac::User;

use crate::users::AUTHENTICATED;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];

const INTEGER: u8 = 0x02;
const OBJECT_ID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;

/// The user of a certificate, unless it has no common name.
pub(super) fn user(certificate: &[u8]) -> Option<User> {
    let mut user = User::default();
    for (kind, value) in subject(certificate)? {
        let text = String::from_utf8(value.to_vec()).ok()?;
        match kind {
            COMMON_NAME => user.name = text,
            ORGANISATION => user.groups.push(text),
            _ => {}
        }
    }
    if user.name.is_empty() {
        return None;
    }
    if !user.groups.iter().any(|group| group == AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    Some(user)
}

/// The attributes of a certificate's subject.
fn subject(certificate: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let (certificate, _) = take(certificate, SEQUENCE)?;
    let (mut rest, _) = take(certificate, SEQUENCE)?;
    if let Some((_, after)) = take(rest, VERSION) {
        rest = after;
    }
    // Serial number, algorithm, issuer, validity.
    for tag in [INTEGER, SEQUENCE, SEQUENCE, SEQUENCE] {
        rest = take(rest, tag)?.1;
    }
    let (mut names, _) = take(rest, SEQUENCE)?;
    let mut attributes = Vec::new();
    while !names.is_empty() {
        let (mut set, after) = take(names, SET)?;
        names = after;
        while !set.is_empty() {
            let (attribute, after) = take(set, SEQUENCE)?;
            set = after;
            let (kind, value) = take(attribute, OBJECT_ID)?;
            let (_, value, _) = element(value)?;
            attributes.push((kind, value));
        }
    }
    Some(attributes)
}

/// What an element of this tag holds, and what follows it.
fn take(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(bytes)?;
    (found == tag).then_some((content, rest))
}

/// The tag of an element of DER, what it holds, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..0x80 => (usize::from(*first), rest),
        _ => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let add = |length: usize, digit: &u8| length.checked_mul(256)?.checked_add(usize::from(*digit));
            (digits.iter().try_fold(0, add)?, rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = Default::default();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn a_certificate_names_a_user_and_groups() {
        let made = certificate(&[(DnType::OrganizationName, "dev"), (DnType::CommonName, "ann")]);
        let found = user(&made).unwrap();
        assert_eq!(
            (found.name.as_str(), found.groups),
            ("ann", vec!["dev".to_owned(), AUTHENTICATED.to_owned()])
        );
        assert_eq!(user(&certificate(&[(DnType::OrganizationName, "system:masters")])), None);
    }

    #[test]
    fn what_is_cut_off_names_nobody() {
        let made = certificate(&[(DnType::CommonName, "ann")]);
        for length in 0..made.len() {
            user(&made[..length]);
        }
        assert_eq!(user(&made[..made.len() - 1]), None);
        assert_eq!(user(&[0x30, 0xff, 1, 2]), None);
    }
}
