//! Which names, labels and annotations objects may have, in kube-apiserver's words.
//!
//! Every check returns what is wrong as sentences, none if all is well.

/// Which names the objects of a kind may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// `a.b-c`, at most 253 characters: most kinds.
    DnsSubdomain,
    /// `a-b`, at most 63 characters: namespaces and services.
    DnsLabel,
    /// Anything that can stand between two slashes of a URL: roles, events.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            NameRule::DnsSubdomain => dns_subdomain(name),
            NameRule::DnsLabel => dns_label_without_dots(name),
            NameRule::PathSegment => path_segment(name),
        }
    }

    /// What is wrong with the beginning of a generated name.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            NameRule::PathSegment => path_segment_prefix(prefix),
            // A trailing dash will be followed by the random part.
            NameRule::DnsSubdomain | NameRule::DnsLabel => match prefix.strip_suffix('-') {
                Some(stem) if !stem.is_empty() => self.check(&format!("{stem}a")),
                _ => self.check(prefix),
            },
        }
    }
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
    for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Whether a label of lower-case letters, digits and dashes begins and ends well.
fn is_dns_label(text: &str) -> bool {
    let edge = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == b'-')
}

/// What is wrong with a DNS subdomain.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push("must be no more than 253 characters".to_owned());
    }
    if !text.split('.').all(is_dns_label) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// What is wrong with a DNS label.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 characters".to_owned());
    }
    if !is_dns_label(text) {
        wrong.push(LABEL.to_owned());
    }
    wrong
}

/// What is wrong with a DNS label of the older kind, which does not begin with a digit.
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 characters".to_owned());
    }
    if !is_dns_label(text) || text.starts_with(|c: char| c.is_ascii_digit()) {
        wrong.push(LABEL_1035.to_owned());
    }
    wrong
}

fn dns_label_without_dots(text: &str) -> Vec<String> {
    if text.len() <= 63 && text.contains('.') && text.split('.').all(is_dns_label) {
        return vec!["must not contain dots".to_owned()];
    }
    dns_label(text)
}

fn path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    path_segment_prefix(text)
}

fn path_segment_prefix(text: &str) -> Vec<String> {
    ["/", "%"].into_iter().filter(|c| text.contains(c)).map(|c| format!("may not contain '{c}'")).collect()
}

fn is_name_part(text: &str) -> bool {
    let edge = |c: Option<&u8>| c.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

/// What is wrong with the prefix of a qualified name. Its length is counted in bytes, that of a name in characters.
fn prefix_fault(what: &str) -> String {
    format!("prefix part {}", what.replace("253 characters", "253 bytes"))
}

/// What is wrong with the key of a label, an annotation or a finalizer: `name` or `prefix.example.com/name`.
pub fn qualified_name(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(dns_subdomain(prefix).into_iter().map(|what| prefix_fault(&what)));
            }
            name
        }
        _ => {
            let optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            wrong.push(format!("a valid label key {NAME_PART} {optional}"));
            return wrong;
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name_part(name) {
        wrong.push(format!("name part {NAME_PART}"));
    }
    wrong
}

/// What is wrong with the value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > 63 {
        wrong.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_name_part(value) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_pass() {
        for name in ["a", "a.b", "0-1.x", &"a".repeat(253)] {
            assert_eq!(dns_subdomain(name), Vec::<String>::new(), "{name}");
        }
        assert!(NameRule::DnsLabel.check("my-ns").is_empty());
        assert!(NameRule::PathSegment.check("system:node Bad_Name").is_empty());
        assert!(NameRule::DnsSubdomain.check_prefix("gen-").is_empty());
        assert!(qualified_name("volcano.sh/job-name").is_empty());
        assert!(label_value("").is_empty());
    }

    #[test]
    fn bad_names_are_told_why() {
        for name in ["", "A", "-a", "a-", "a..b", "a_b", &"a".repeat(254)] {
            assert!(!dns_subdomain(name).is_empty(), "{name}");
        }
        assert_eq!(NameRule::DnsLabel.check("a.b"), ["must not contain dots"]);
        assert_eq!(NameRule::PathSegment.check("a/b"), ["may not contain '/'"]);
        assert_eq!(NameRule::PathSegment.check(".."), ["may not be '..'"]);
        assert_eq!(qualified_name("/x"), ["prefix part must be non-empty"]);
        let long = format!("{}/x", vec!["a".repeat(63); 4].join("."));
        assert_eq!(qualified_name(&long), ["prefix part must be no more than 253 bytes"]);
        assert_eq!(qualified_name("a/").first().map(String::as_str), Some("name part must be non-empty"));
    }
}
