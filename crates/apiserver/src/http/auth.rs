//! Who asks.

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    /// The name.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl User {
    /// The one user there is, who may do everything.
    pub(super) fn administrator() -> User {
        User {
            name: crate::ADMINISTRATOR.to_owned(),
            groups: crate::ADMINISTRATOR_GROUPS.map(str::to_owned).to_vec(),
        }
    }
}

/// Who a request is from: whoever has the token, or a certificate that our own authority signed.
pub(super) fn authenticate(headers: &HeaderMap, token: &str, has_certificate: bool) -> Option<User> {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match given.and_then(|value| value.strip_prefix("Bearer ")) {
        Some(given) => is_same(given.trim().as_bytes(), token.as_bytes()).then(User::administrator),
        None => has_certificate.then(User::administrator),
    }
}

/// Compares without telling by its duration where the first difference is.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let differences = given.iter().zip(token).fold(0, |differences, (a, b)| differences | (a ^ b));
    differences == 0 && given.len() == token.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_or_a_certificate_lets_in() {
        let with = |value: &str| HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
        assert!(authenticate(&with("Bearer secret"), "secret", false).is_some());
        assert!(authenticate(&with("Bearer secre"), "secret", false).is_none());
        assert!(authenticate(&with("Bearer secrets"), "secret", true).is_none());
        assert!(authenticate(&with("Basic secret"), "secret", false).is_none());
        assert!(authenticate(&HeaderMap::new(), "secret", false).is_none());
        assert!(authenticate(&HeaderMap::new(), "secret", true).is_some());
    }
}
