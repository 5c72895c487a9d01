//! Who asks: the administrator, service accounts, the users of a token file, those with a certificate, and the others.

use std::sync::{Arc, LazyLock};

use krafla_admission::rbac::{MASTERS, User};
use serde_json::{Value, json};

/// The group of everybody whose name is known.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody whose name is not.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of those who show nothing.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

static ADMINISTRATOR: LazyLock<Arc<User>> = LazyLock::new(|| Arc::new(named("krafla:admin", &[MASTERS])));

/// The user whose cluster it is.
pub(crate) fn administrator() -> Arc<User> {
    ADMINISTRATOR.clone()
}

/// A user who shows nothing.
pub(crate) fn anonymous() -> Arc<User> {
    static USER: LazyLock<Arc<User>> = LazyLock::new(|| {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Arc::new(User { name: ANONYMOUS.to_owned(), groups, ..User::default() })
    });
    USER.clone()
}

fn named(name: &str, groups: &[&str]) -> User {
    let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
    groups.push(AUTHENTICATED.to_owned());
    User { name: name.to_owned(), uid: name.to_owned(), groups, ..User::default() }
}

/// A user as reviews and questions to webhooks tell it. This program itself is told as the administrator.
pub(crate) fn to_json(user: Option<&User>) -> Value {
    let mut shown = to_full_json(user);
    if let Some(fields) = shown.as_object_mut() {
        fields.retain(|_, value| match value {
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        });
    }
    shown
}

/// The same with all fields, empty or not.
pub(crate) fn to_full_json(user: Option<&User>) -> Value {
    let User { name, uid, groups, extra } = user.unwrap_or(&ADMINISTRATOR);
    json!({"username": name, "uid": uid, "groups": groups, "extra": extra})
}

/// Reads a token file: a line is `TOKEN,USER,UID[,"GROUP,..."]`, as kube-apiserver's `--token-auth-file` has it.
pub fn parse_token_file(text: &str) -> Result<Vec<(String, Arc<User>)>, String> {
    let mut users: Vec<(String, Arc<User>)> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let fields = csv_fields(line);
        let [token, name, uid, groups @ ..] = fields.as_slice() else {
            let wanted = "at least 3 columns (token, user name, user uid)";
            return Err(format!("line {}: has {} columns, needs {wanted}", index + 1, fields.len()));
        };
        if token.is_empty() || name.is_empty() {
            return Err(format!("line {}: the token and the user name must not be empty", index + 1));
        }
        if users.iter().any(|(other, _)| other == token) {
            return Err(format!("line {}: its token is on an earlier line, too", index + 1));
        }
        let groups = groups.first().map_or("", String::as_str).split(',');
        let mut groups: Vec<String> = groups.filter(|group| !group.is_empty()).map(str::to_owned).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        let user = User { name: name.clone(), uid: uid.clone(), groups, ..User::default() };
        users.push((token.clone(), Arc::new(user)));
    }
    Ok(users)
}

/// The fields of a line; commas between double quotes separate nothing.
fn csv_fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    for character in line.trim().chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field).trim().to_owned()),
            other => field.push(other),
        }
    }
    fields.push(field.trim().to_owned());
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_names_users_and_groups() {
        let users = parse_token_file("t1,ann,1,\"dev,ops\"\n\n t2,bob,2\n").unwrap();
        let shown: Vec<_> = users.iter().map(|(token, user)| (token.as_str(), to_json(Some(user)))).collect();
        assert_eq!(
            shown,
            [
                ("t1", json!({"username": "ann", "uid": "1", "groups": ["dev", "ops", AUTHENTICATED]})),
                ("t2", json!({"username": "bob", "uid": "2", "groups": [AUTHENTICATED]})),
            ]
        );
        for (text, why) in [
            ("t,ann", "line 1: has 2 columns, needs at least 3 columns (token, user name, user uid)"),
            ("t,ann,1\n,bob,2", "line 2: the token and the user name must not be empty"),
            ("t,ann,1\nt,bob,2", "line 2: its token is on an earlier line, too"),
        ] {
            assert_eq!(parse_token_file(text).unwrap_err(), why);
        }
    }
}
