//! Who asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use krafla_admission::rbac::User;
use krafla_schema::object;
use serde_json::Value;

use super::websocket;
use crate::ops::Api;
use crate::tokens::{Holder, ISSUER, Tokens};
use crate::users;

impl From<Holder> for User {
    fn from(holder: Holder) -> User {
        let values = |value: &Value| object::strings(Some(value)).into_iter().map(str::to_owned).collect();
        let extra = holder.extra.as_object().into_iter().flatten();
        let extra: BTreeMap<String, Vec<String>> =
            extra.map(|(key, value)| (key.clone(), values(value))).collect();
        User { name: holder.name, uid: holder.uid, groups: holder.groups, extra }
    }
}

/// What a request says about whoever sends it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asker {
    /// It shows something that is known.
    Known(Arc<User>),
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
    /// What other users show.
    pub users: Vec<(String, Arc<User>)>,
}

impl Credentials {
    /// Who a request is from: the holder of its token, or the user of its connection's certificate.
    pub(super) fn authenticate(
        &self,
        api: &Api,
        headers: &HeaderMap,
        certificate: Option<&Arc<User>>,
    ) -> Asker {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given =
            given.and_then(|value| value.strip_prefix("Bearer ")).map(|token| token.trim().to_owned());
        match given.or_else(|| websocket::bearer_token(headers)) {
            Some(given) if !given.is_empty() => {
                self.user_of(api, &given, &[]).map_or(Asker::Unknown, |(user, _)| Asker::Known(user))
            }
            _ => certificate.map_or(Asker::Anonymous, |user| Asker::Known(user.clone())),
        }
    }

    /// Whose a token is, and for which of these audiences; without any it must be for this server.
    pub(super) fn user_of(
        &self,
        api: &Api,
        token: &str,
        audiences: &[String],
    ) -> Option<(Arc<User>, Vec<String>)> {
        let own = [ISSUER.to_owned()];
        let audiences = if audiences.is_empty() { &own } else { audiences };
        let is_shown = |known: &str| is_same(token.as_bytes(), known.as_bytes());
        let named = self.users.iter().find(|(known, _)| is_shown(known)).map(|(_, user)| user.clone());
        if let Some(user) = named.or_else(|| is_shown(&self.token).then(users::administrator)) {
            let is_meant = audiences.contains(&own[0]);
            return is_meant.then(|| (user, own.to_vec()));
        }
        let mut holder = self.tokens.holder(api, token, audiences)?;
        let meant = std::mem::take(&mut holder.audiences);
        Some((Arc::new(holder.into()), meant))
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
        let ann = Arc::new(User { name: "ann".to_owned(), ..User::default() });
        let users = vec![("other".to_owned(), ann.clone())];
        let credentials = Credentials { token: "secret".to_owned(), tokens, users };
        let asker = |value: Option<&str>, has_certificate: bool| {
            let headers = value.map(|value| (AUTHORIZATION, value.parse().unwrap()));
            let certificate = has_certificate.then_some(&ann);
            credentials.authenticate(&api, &HeaderMap::from_iter(headers), certificate)
        };
        let lets_in = |value: Option<&str>, has_certificate: bool| {
            matches!(asker(value, has_certificate), Asker::Known(_))
        };
        assert_eq!(asker(Some("Bearer secret"), true), Asker::Known(crate::users::administrator()));
        assert_eq!(asker(Some("Bearer other"), false), Asker::Known(ann.clone()));
        assert!(lets_in(Some("Bearer secret"), false));
        assert!(!lets_in(Some("Bearer secre"), false));
        assert!(!lets_in(Some("Bearer secrets"), true));
        assert!(!lets_in(Some("Basic secret"), false));
        assert!(!lets_in(None, false));
        assert!(lets_in(None, true));
    }
}
