//! Kubernetes' rules for names, each as the list of what is wrong with one; empty if nothing is.

use std::net::IpAddr;

const QUALIFIED_NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_1123: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_1123: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
    consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. \
    '*.example.com', regex used for validation is \
    '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const ENVIRONMENT_VARIABLE: &str = "a valid environment variable name must consist of alphabetic characters, digits, '_', \
    '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used \
    for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
    or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const HTTP_HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', \
    regex used for validation is '[-A-Za-z0-9]+')";

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// One part of a DNS name that begins with a letter.
pub fn dns_1035_label(name: &str) -> Vec<String> {
    let mut wrong = longer_than(name, 63);
    if !is_dns_label(name) || name.starts_with(|first: char| first.is_ascii_digit()) {
        wrong.push(LABEL_1035.to_owned());
    }
    wrong
}

/// A name that can stand in a path.
pub fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    let marks = ["/", "%"].into_iter().filter(|mark| name.contains(mark));
    marks.map(|mark| format!("may not contain '{mark}'")).collect()
}

/// One part of a DNS name.
pub fn dns_label(name: &str) -> Vec<String> {
    let mut wrong = longer_than(name, 63);
    if name.contains('.') && name.split('.').all(is_dns_label) {
        wrong.push("must not contain dots".to_owned());
    } else if !is_dns_label(name) {
        wrong.push(LABEL_1123.to_owned());
    }
    wrong
}

/// A DNS name.
pub fn dns_subdomain(name: &str) -> Vec<String> {
    let mut wrong = longer_than(name, 253);
    if !name.split('.').all(is_dns_label) {
        wrong.push(SUBDOMAIN_1123.to_owned());
    }
    wrong
}

/// What is wrong with the prefix of a qualified name. Its length is counted in bytes, that of a name in characters.
fn prefix_fault(what: &str) -> String {
    format!("prefix part {}", what.replace("253 characters", "253 bytes"))
}

/// All names below a domain: `*.example.com`.
pub fn wildcard_subdomain(name: &str) -> Vec<String> {
    let mut wrong = longer_than(name, 253);
    if !name.strip_prefix("*.").is_some_and(|rest| rest.split('.').all(is_dns_label)) {
        wrong.push(WILDCARD.to_owned());
    }
    wrong
}

/// The key of a label: a name, with an optional DNS subdomain before a slash.
pub fn qualified_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let part = match name.split_once('/') {
        None => name,
        Some((_, part)) if part.contains('/') => {
            let label_key = "a valid label key";
            let prefixed = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("{label_key} {QUALIFIED_NAME} {prefixed}")];
        }
        Some((prefix, part)) => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(dns_subdomain(prefix).into_iter().map(|detail| prefix_fault(&detail)));
            }
            part
        }
    };
    if part.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if part.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_plain_name(part) {
        wrong.push(format!("name part {QUALIFIED_NAME}"));
    }
    wrong
}

/// The value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > 63 {
        wrong.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_plain_name(value) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

/// The name of a port.
pub fn port_name(name: &str) -> Vec<String> {
    let mut wrong = longer_than(name, 15);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(is_plain) {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.contains(|c: char| c.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// The name of an environment variable.
pub fn environment_variable(name: &str) -> Vec<String> {
    let is_first = |c: char| c.is_ascii_alphabetic() || "-._".contains(c);
    let is_good = name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit());
    let mut wrong = if is_good { Vec::new() } else { vec![ENVIRONMENT_VARIABLE.to_owned()] };
    wrong.extend(directory_like(name));
    wrong
}

/// The name of an environment variable as a file of them may have it.
pub fn relaxed_environment_variable(name: &str) -> Vec<String> {
    if name.chars().all(|c| (' '..='~').contains(&c) && c != '=') {
        return Vec::new();
    }
    let rule =
        "a valid environment variable name must consist only of printable ASCII characters other than '='";
    vec![rule.to_owned()]
}

/// A key of a ConfigMap or Secret.
pub fn config_key(key: &str) -> Vec<String> {
    let mut wrong = longer_than(key, 253);
    if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
        wrong.push(CONFIG_KEY.to_owned());
    }
    wrong.extend(directory_like(key));
    wrong
}

/// The name of an HTTP header.
pub fn http_header(name: &str) -> Vec<String> {
    let is_good = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if is_good { Vec::new() } else { vec![HTTP_HEADER.to_owned()] }
}

/// Names become file names, and these have a meaning of their own.
fn directory_like(name: &str) -> Option<String> {
    match name {
        "." => Some("must not be '.'".to_owned()),
        ".." => Some("must not be '..'".to_owned()),
        _ => name.starts_with("..").then(|| "must not start with '..'".to_owned()),
    }
}

fn longer_than(name: &str, max: usize) -> Vec<String> {
    if name.len() > max { vec![format!("must be no more than {max} characters")] } else { Vec::new() }
}

fn is_dns_label(name: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(is_edge) && name.ends_with(is_edge) && name.chars().all(|c| is_edge(c) || c == '-')
}

fn is_plain_name(name: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    name.starts_with(is_edge)
        && name.ends_with(is_edge)
        && name.chars().all(|c| is_edge(c) || "-_.".contains(c))
}

/// A domain whose parts may have underscores.
pub(crate) fn relaxed_dns_subdomain(name: &str) -> Vec<String> {
    const RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or \
        '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
        '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
    let mut wrong = longer_than(name, 253);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        part.starts_with(is_plain)
            && part.ends_with(is_plain)
            && part.chars().all(|c| is_plain(c) || "-_".contains(c))
    };
    if !name.split('.').all(is_part) {
        wrong.push(RULE.to_owned());
    }
    wrong
}

/// An IP address as older versions of Go read it: numbers may have leading zeros.
pub(crate) fn sloppy_ip(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let (before, dotted) = text.rsplit_once(':').map_or(("", text), |(before, after)| (before, after));
    let numbers: Vec<&str> = dotted.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if numbers.len() != 4 || !numbers.iter().all(is_number) {
        return None;
    }
    let plain: Vec<String> = numbers
        .iter()
        .map(|part| part.trim_start_matches('0'))
        .map(|part| if part.is_empty() { "0".to_owned() } else { part.to_owned() })
        .collect();
    let colon = if text.contains(':') { ":" } else { "" };
    format!("{before}{colon}{}", plain.join(".")).parse().ok()
}

/// What is wrong with an IP address.
pub fn ip_address(text: &str) -> Vec<String> {
    let rule = match (sloppy_ip(text), text.parse::<IpAddr>()) {
        (None, _) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        (Some(_), Err(_)) => "must not have leading 0s",
        (Some(IpAddr::V6(ip)), Ok(_)) if ip.to_ipv4_mapped().is_some() => {
            "must not be an IPv4-mapped IPv6 address"
        }
        (Some(_), Ok(_)) => return Vec::new(),
    };
    vec![rule.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        type Rule = fn(&str) -> Vec<String>;
        let long = "a".repeat(64);
        let rows: [(&str, Rule, &[&str], &[&str]); 8] = [
            ("label", dns_label, &["a", "0-a"], &["", "A", "a.b", "-a", "a-", &long]),
            ("subdomain", dns_subdomain, &["a.b", "0"], &["", "a..b", ".a", "a_b"]),
            ("port", port_name, &["http", "a-1"], &["", "1", "-a", "a--b", "A", "abcdefghijklmnop"]),
            ("variable", environment_variable, &["A", "a.b-c", "_1"], &["", "1A", "A=B", "..", "..a", "é"]),
            ("key", config_key, &["a.b", "A_1"], &["", "a/b", ".", "..", "..a"]),
            ("header", http_header, &["X-A"], &["", "X A", "é"]),
            (
                "qualified",
                qualified_name,
                &["A_b.c", "x.y/A", "0"],
                &["", "a/b/c", "/a", "X/a", "a/", "a b", &long],
            ),
            ("value", label_value, &["", "A_1", "a.b"], &["-", "a b", "a/b", &long]),
        ];
        for (kind, rule, good, bad) in rows {
            good.iter().for_each(|name| assert_eq!(rule(name), Vec::<String>::new(), "{kind} {name}"));
            bad.iter().for_each(|name| assert_ne!(rule(name), Vec::<String>::new(), "{kind} {name}"));
        }
    }
}
