//! Where a server sends whoever asks it: as far of URLs as a probe meets them.

/// What is asked for, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) is_https: bool,
    /// A name or an address; one of IPv6 in brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// With what follows a question mark.
    pub(super) path: String,
}

impl Url {
    pub(super) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// What a `Location` means to whoever came from here; none if it is no place for HTTP.
    pub(super) fn to(&self, location: &str) -> Option<Url> {
        let location = location.split('#').next().unwrap_or_default().trim();
        if let Some(rest) = location.strip_prefix("//") {
            return Url::of(self.is_https, rest);
        }
        if let Some((scheme, rest)) = location.split_once("://") {
            return match scheme.to_ascii_lowercase().as_str() {
                "http" => Url::of(false, rest),
                "https" => Url::of(true, rest),
                _ => None,
            };
        }
        let before_query = self.path.split('?').next().unwrap_or_default();
        let path = if location.starts_with('/') {
            location.to_owned()
        } else if location.is_empty() || location.starts_with('?') {
            format!("{before_query}{location}")
        } else {
            let directory = before_query.rsplit_once('/').map_or("", |(directory, _)| directory);
            format!("{directory}/{location}")
        };
        Some(Url { path, ..self.clone() })
    }

    /// A URL without its scheme.
    fn of(is_https: bool, rest: &str) -> Option<Url> {
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let authority = authority.rsplit_once('@').map_or(authority, |(_, authority)| authority);
        let (host, port) = match authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, if is_https { 443 } else { 80 }),
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        Some(Url { is_https, host: host.to_owned(), port, path: format!("{slash}{path}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_read_as_a_browser_reads_it() {
        let from = Url { is_https: false, host: "127.64.0.1".into(), port: 8080, path: "/a/b?c=/d".into() };
        let to = |location: &str| {
            let to = from.to(location)?;
            let scheme = if to.is_https { "https" } else { "http" };
            Some(format!("{scheme}://{}{}", to.address(), to.path))
        };
        for (location, expected) in [
            ("/ready", "http://127.64.0.1:8080/ready"),
            ("x?y", "http://127.64.0.1:8080/a/x?y"),
            ("?y", "http://127.64.0.1:8080/a/b?y"),
            ("", "http://127.64.0.1:8080/a/b"),
            ("//127.64.0.1:81", "http://127.64.0.1:81/"),
            ("https://127.64.0.1:8443/x#y", "https://127.64.0.1:8443/x"),
            ("HTTP://me:secret@example.org?x", "http://example.org:80/?x"),
            ("https://[::1]/x", "https://[::1]:443/x"),
        ] {
            assert_eq!(to(location).as_deref(), Some(expected), "{location}");
        }
        assert_eq!(to("ftp://127.64.0.1/x"), None);
        assert_eq!(to("http://127.64.0.1:port/"), None);
    }
}
