//! Who asks.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::websocket;
use crate::object;
use crate::ops::Api;
use crate::tokens::{Holder, ISSUER, Tokens};

/// Who asks. There are the administrator and the service accounts, and all of them may do everything: pods are processes
/// of the same user who could as well read the administrator's token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct User {
    /// The name.
    pub name: String,
    /// Who it is, if the name alone does not say it.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else is known.
    pub extra: Value,
}

impl User {
    /// The one whose cluster it is.
    pub(super) fn administrator() -> User {
        User {
            name: crate::ADMINISTRATOR.to_owned(),
            uid: String::new(),
            groups: crate::ADMINISTRATOR_GROUPS.map(str::to_owned).to_vec(),
            extra: Value::Null,
        }
    }

    /// Whoever shows nothing.
    pub(super) fn anonymous() -> User {
        User {
            name: super::anonymous::NAME.to_owned(),
            uid: String::new(),
            groups: vec!["system:unauthenticated".to_owned()],
            extra: Value::Null,
        }
    }

    /// As reviews tell it.
    pub(super) fn to_json(&self) -> Value {
        let mut shown = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            object::set(&mut shown, "uid", self.uid.as_str());
        }
        if !self.extra.is_null() {
            object::set(&mut shown, "extra", self.extra.clone());
        }
        shown
    }
}

impl From<Holder> for User {
    fn from(holder: Holder) -> User {
        User { name: holder.name, uid: holder.uid, groups: holder.groups, extra: holder.extra }
    }
}

/// What a request says about whoever sends it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asker {
    /// It shows something that is known.
    Known(User),
    /// It shows something that is not.
    Unknown,
    /// It shows nothing.
    Anonymous,
}

/// What lets in.
pub(super) struct Credentials {
    /// What the administrator shows.
    pub token: String,
    /// What knows the tokens of service accounts.
    pub tokens: Arc<Tokens>,
}

impl Credentials {
    /// Who a request is from: whoever has a token, or a certificate that our own authority signed.
    pub(super) fn authenticate(&self, api: &Api, headers: &HeaderMap, has_certificate: bool) -> Asker {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given =
            given.and_then(|value| value.strip_prefix("Bearer ")).map(|token| token.trim().to_owned());
        match given.or_else(|| websocket::bearer_token(headers)) {
            Some(given) if !given.is_empty() => {
                self.user_of(api, &given, &[]).map_or(Asker::Unknown, |(user, _)| Asker::Known(user))
            }
            _ if has_certificate => Asker::Known(User::administrator()),
            _ => Asker::Anonymous,
        }
    }

    /// Whose a token is, and for which of these audiences; without any it must be for this server.
    pub(super) fn user_of(
        &self,
        api: &Api,
        token: &str,
        audiences: &[String],
    ) -> Option<(User, Vec<String>)> {
        let own = [ISSUER.to_owned()];
        let audiences = if audiences.is_empty() { &own } else { audiences };
        if is_same(token.as_bytes(), self.token.as_bytes()) {
            let is_meant = audiences.contains(&own[0]);
            return is_meant.then(|| (User::administrator(), own.to_vec()));
        }
        let mut holder = self.tokens.holder(api, token, audiences)?;
        let meant = std::mem::take(&mut holder.audiences);
        Some((holder.into(), meant))
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
    use crate::admit::Admission;
    use crate::env::SystemEnv;
    use crate::store::Store;

    #[test]
    fn only_a_token_or_a_certificate_lets_in() {
        let api = Api::new(Store::in_memory(), Arc::new(SystemEnv), Admission::default());
        let tokens = Arc::new(Tokens::for_now());
        let credentials = Credentials { token: "secret".to_owned(), tokens };
        let lets_in = |value: Option<&str>, has_certificate: bool| {
            let headers = value.map(|value| (AUTHORIZATION, value.parse().unwrap()));
            let asker = credentials.authenticate(&api, &HeaderMap::from_iter(headers), has_certificate);
            matches!(asker, Asker::Known(_))
        };
        assert!(lets_in(Some("Bearer secret"), false));
        assert!(!lets_in(Some("Bearer secre"), false));
        assert!(!lets_in(Some("Bearer secrets"), true));
        assert!(!lets_in(Some("Basic secret"), false));
        assert!(!lets_in(None, false));
        assert!(lets_in(None, true));
    }
}
