//! Kubeconfigs: several files read as one, and what the current context of them comes to.
//!
//! What kubectl would do and this client does not (passwords, `auth-provider`) is refused by name rather than passed over: a
//! connection of another user than the one meant is worse than none.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::access::{Access, AccessError, Credentials, Token, read as read_file};
use crate::bearer::Login;
use crate::proxy::Proxy;
use krafla_keys::tls::Certificate;

/// What one file says. An empty list may be written as null.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Kubeconfig {
    current_context: Option<String>,
    contexts: Option<Vec<NamedContext>>,
    clusters: Option<Vec<NamedCluster>>,
    users: Option<Vec<NamedUser>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
    namespace: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    tls_server_name: Option<String>,
    insecure_skip_tls_verify: bool,
    proxy_url: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    username: Option<String>,
    exec: Option<Login>,
    auth_provider: Option<serde::de::IgnoredAny>,
}

/// An entry, and the file that it is from: paths in it are relative to that.
struct Found<'a, T> {
    entry: T,
    file: &'a Path,
}

/// What a context of these files comes to: the named one, or else the current one. Of two entries with one name the first
/// stands.
pub(crate) fn read(files: &[PathBuf], context: Option<&str>) -> Result<Access, AccessError> {
    let parsed: Vec<(&Path, Kubeconfig)> =
        files.iter().map(|file| Ok((file.as_path(), parse(file)?))).collect::<Result<_, AccessError>>()?;
    let all = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(":");
    let current =
        || parsed.iter().find_map(|(_, config)| config.current_context.clone().filter(|n| !n.is_empty()));
    let name = context.map(str::to_owned).or_else(current);
    let name = name.ok_or_else(|| AccessError::NoContext { place: all.clone() })?;
    let context =
        find(&parsed, |config| &config.contexts, |context| context.name == name).ok_or_else(|| {
            let names = parsed.iter().flat_map(|(_, config)| config.contexts.iter().flatten());
            let names: Vec<&str> = names.map(|context| context.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            AccessError::unusable(&all, format!("context {name:?} does not exist; contexts: {known}"))
        })?;
    let Context { cluster, user, namespace } = context.entry.context;
    let cluster = find(&parsed, |config| &config.clusters, |entry| entry.name == cluster)
        .ok_or_else(|| missing(context.file, &name, "cluster", &cluster))?;
    let user = match user.as_str() {
        "" => Found { entry: NamedUser::default(), file: context.file },
        user => find(&parsed, |config| &config.users, |entry| entry.name == user)
            .ok_or_else(|| missing(context.file, &name, "user", user))?,
    };
    let (server, authorities, proxy) = server(&cluster)?;
    Ok(Access {
        server,
        authorities,
        skips_verification: cluster.entry.cluster.insecure_skip_tls_verify,
        proxy,
        server_name: cluster.entry.cluster.tls_server_name.filter(|name| !name.is_empty()),
        credentials: credentials(&user)?,
        origin: format!("context {name:?} of {}", context.file.display()),
        context: name,
        namespace: if namespace.is_empty() { "default".to_owned() } else { namespace },
    })
}

fn missing(file: &Path, context: &str, what: &str, name: &str) -> AccessError {
    AccessError::unusable(
        file.display(),
        format!("context {context:?} names the {what} {name:?}, which is not there"),
    )
}

fn parse(file: &Path) -> Result<Kubeconfig, AccessError> {
    let other = |why: String| AccessError::NotAKubeconfig { path: file.to_owned(), why };
    let text = String::from_utf8(read_file(file)?).map_err(|_| other("not UTF-8".to_owned()))?;
    if text.trim().is_empty() {
        return Ok(Kubeconfig::default());
    }
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(&text, options).map_err(|error| other(error.to_string()))
}

fn find<'a, T: Clone>(
    parsed: &[(&'a Path, Kubeconfig)],
    entries: impl Fn(&Kubeconfig) -> &Option<Vec<T>>,
    is_meant: impl Fn(&T) -> bool,
) -> Option<Found<'a, T>> {
    parsed.iter().find_map(|(file, config)| {
        let entry = entries(config).iter().flatten().find(|entry| is_meant(entry))?;
        Some(Found { entry: entry.clone(), file })
    })
}

/// Where the cluster is, and who may vouch for it.
fn server(found: &Found<'_, NamedCluster>) -> Result<(http::Uri, Vec<u8>, Option<Proxy>), AccessError> {
    let NamedCluster { name, cluster } = &found.entry;
    let unusable =
        |message: &str| AccessError::unusable(found.file.display(), format!("cluster {name:?}: {message}"));
    let proxy = cluster.proxy_url.as_deref().filter(|url| !url.is_empty()).map(Proxy::parse).transpose();
    let proxy = proxy.map_err(|why| unusable(&format!("proxy-url: {why}")))?;
    let server = cluster.server.trim_end_matches('/');
    let server: http::Uri =
        server.parse().map_err(|error| unusable(&format!("server {server:?}: {error}")))?;
    if !matches!(server.scheme_str(), Some("https" | "http")) || server.host().is_none() {
        return Err(unusable(&format!("server {server:?} must be of the form https://host:port")));
    }
    let authorities = pem(
        found.file,
        &cluster.certificate_authority_data,
        &cluster.certificate_authority,
        "certificate-authority",
    )?;
    if cluster.insecure_skip_tls_verify && authorities.is_some() {
        return Err(unusable(
            "certificate-authority and insecure-skip-tls-verify exclude each other: remove one",
        ));
    }
    Ok((server, authorities.unwrap_or_default(), proxy))
}

fn credentials(found: &Found<'_, NamedUser>) -> Result<Credentials, AccessError> {
    let NamedUser { name, user } = &found.entry;
    let unusable =
        |message: &str| AccessError::unusable(found.file.display(), format!("user {name:?}: {message}"));
    let remedy = "give a token, a tokenFile or a client-certificate instead";
    for (is_given, what) in [
        (user.auth_provider.is_some(), "auth-provider"),
        (user.username.as_deref().is_some_and(|name| !name.is_empty()), "a password"),
    ] {
        if is_given {
            return Err(unusable(&format!("{what} is not supported: {remedy}")));
        }
    }
    let chain =
        pem(found.file, &user.client_certificate_data, &user.client_certificate, "client-certificate")?;
    let key = pem(found.file, &user.client_key_data, &user.client_key, "client-key")?;
    let certificate = match (chain, key) {
        (Some(chain), Some(key)) => Some(Certificate { chain, key }),
        (None, None) => None,
        _ => return Err(unusable("client-certificate and client-key belong together, and one is missing")),
    };
    let login =
        user.exec.clone().map(|login| usable(login, found.file)).transpose().map_err(|why| unusable(&why))?;
    // A token in a file may be newer than the one beside it.
    let token = match (&user.token_file, &user.token) {
        (Some(file), _) => {
            let file = beside(found.file, file);
            read_file(&file)?;
            Some(Token::File(file))
        }
        (None, Some(token)) if !token.is_empty() => Some(Token::Fixed(token.clone())),
        (None, _) => login.map(|login| Token::Login(Box::new(login))),
    };
    Ok(Credentials { certificate, token })
}

/// A login command that can be run. Its path may be relative to the kubeconfig.
fn usable(login: Login, kubeconfig: &Path) -> Result<Login, String> {
    if login.command.as_os_str().is_empty() {
        return Err("exec.command is required".to_owned());
    }
    if !["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]
        .contains(&login.api_version.as_str())
    {
        let version = &login.api_version;
        return Err(format!(
            "exec.apiVersion {version:?} must be client.authentication.k8s.io/v1 or v1beta1"
        ));
    }
    // A name without a slash is looked up on the PATH.
    let is_path = login.command.components().count() > 1;
    let command = if is_path { beside(kubeconfig, &login.command) } else { login.command.clone() };
    Ok(Login { command, ..login })
}

/// What stands in the kubeconfig itself, or in the file that it names.
fn pem(
    kubeconfig: &Path,
    data: &Option<String>,
    file: &Option<PathBuf>,
    field: &str,
) -> Result<Option<Vec<u8>>, AccessError> {
    if let Some(data) = data.as_deref().filter(|data| !data.is_empty()) {
        let data: String = data.split_whitespace().collect();
        let decoded = STANDARD.decode(data);
        let wrong = |error| AccessError::unusable(kubeconfig.display(), format!("{field}-data: {error}"));
        return decoded.map(Some).map_err(wrong);
    }
    let file = file.as_ref().filter(|file| !file.as_os_str().is_empty());
    file.map(|file| read_file(&beside(kubeconfig, file))).transpose()
}

/// Paths in a kubeconfig start where it is.
fn beside(kubeconfig: &Path, path: &Path) -> PathBuf {
    kubeconfig.parent().map_or_else(|| path.to_owned(), |dir| dir.join(path))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// What files with these texts come to.
    fn check(texts: &[&str], expected: Expect) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), "CA").unwrap();
        let mut files = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            files.push(dir.path().join(format!("config{index}")));
            std::fs::write(&files[index], text).unwrap();
        }
        let shown = match read(&files, None) {
            Ok(access) => format!(
                "{} as {}{}{}",
                access.server,
                match &access.credentials.token {
                    None => "nobody".to_owned(),
                    Some(Token::Fixed(token)) => token.clone(),
                    Some(Token::File(file)) => format!("whoever is in {}", file.display()),
                    Some(Token::Login(login)) =>
                        format!("whoever {} {:?} says", login.command.display(), login.args),
                },
                if access.credentials.certificate.is_some() { " with a certificate" } else { "" },
                format_args!(", trusting {:?}", String::from_utf8_lossy(&access.authorities)),
            ),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown.replace(&format!("{}/", dir.path().display()), ""));
    }

    const CONTEXT: &str = "current-context: c\ncontexts: [{name: c, context: {cluster: a, user: u}}]\n";

    fn with(cluster: &str, user: &str) -> String {
        format!(
            "{CONTEXT}clusters: [{{name: a, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        )
    }

    #[test]
    fn data_and_files_say_the_same() {
        let server = "server: 'https://1.2.3.4:6443/'";
        check(
            &[&with(&format!("{server}, certificate-authority: ca.pem"), "token: t")],
            expect![[r#"https://1.2.3.4:6443/ as t, trusting "CA""#]],
        );
        check(
            &[&with(
                &format!("{server}, certificate-authority-data: Q0E="),
                "client-certificate-data: Q0E=, client-key: ca.pem",
            )],
            expect![[r#"https://1.2.3.4:6443/ as nobody with a certificate, trusting "CA""#]],
        );
        check(
            &[&with(server, "tokenFile: ca.pem")],
            expect![[r#"https://1.2.3.4:6443/ as whoever is in ca.pem, trusting """#]],
        );
        let exec = |command: &str| {
            format!("exec: {{apiVersion: client.authentication.k8s.io/v1, command: {command}, args: [a, b]}}")
        };
        check(
            &[&with(server, &exec("aws"))],
            expect![[r#"https://1.2.3.4:6443/ as whoever aws ["a", "b"] says, trusting """#]],
        );
        check(
            &[&with(server, &exec("bin/aws"))],
            expect![[r#"https://1.2.3.4:6443/ as whoever bin/aws ["a", "b"] says, trusting """#]],
        );
    }

    #[test]
    fn several_files_are_read_as_one_and_the_first_stands() {
        let second = "current-context: other\nclusters: [{name: a, cluster: {server: 'https://second'}}]\n\
                      users: [{name: u, user: {token: t}}]\ncontexts: null\n";
        let third = "clusters: [{name: a, cluster: {server: 'https://third'}}]\n";
        check(&[CONTEXT, "", second, third], expect![[r#"https://second/ as t, trusting """#]]);
    }

    #[test]
    fn what_can_not_be_used_is_named_with_a_remedy() {
        check(
            &["clusters: []\n"],
            expect!["config0: current-context is not set: choose one with `kubectl config use-context`"],
        );
        check(&[CONTEXT], expect![[r#"config0: context "c" names the cluster "a", which is not there"#]]);
        check(&["current-context: d\n"], expect![[r#"config0: context "d" does not exist; contexts: none"#]]);
        check(&["- 1\n"], expect!["config0: not a kubeconfig: expected mapping start at line 1, column 1"]);
        check(
            &[&with("server: here", "")],
            expect![[r#"config0: cluster "a": server here must be of the form https://host:port"#]],
        );
        check(
            &[&with(
                "server: 'https://a', insecure-skip-tls-verify: true, certificate-authority: ca.pem",
                "",
            )],
            expect![[
                r#"config0: cluster "a": certificate-authority and insecure-skip-tls-verify exclude each other: remove one"#
            ]],
        );
        check(
            &[&with("server: 'https://a', proxy-url: 'ftp://p'", "")],
            expect![[
                r#"config0: cluster "a": proxy-url: "ftp://p": the scheme of a proxy must be http, https or socks5"#
            ]],
        );
        check(
            &[&with(
                "server: 'https://a'",
                "exec: {apiVersion: client.authentication.k8s.io/v1alpha, command: aws}",
            )],
            expect![[
                r#"config0: user "u": exec.apiVersion "client.authentication.k8s.io/v1alpha" must be client.authentication.k8s.io/v1 or v1beta1"#
            ]],
        );
        check(
            &[&with("server: 'https://a'", "exec: {apiVersion: client.authentication.k8s.io/v1}")],
            expect![[r#"config0: user "u": exec.command is required"#]],
        );
        check(
            &[&with("server: 'https://a'", "client-key-data: Q0E=")],
            expect![[
                r#"config0: user "u": client-certificate and client-key belong together, and one is missing"#
            ]],
        );
        check(
            &[&with("server: 'https://a', certificate-authority: none.pem", "")],
            expect!["none.pem: No such file or directory (os error 2)"],
        );
        check(
            &[&with("server: 'https://a', certificate-authority-data: '?'", "")],
            expect!["config0: certificate-authority-data: Invalid symbol 63, offset 0."],
        );
    }
}
