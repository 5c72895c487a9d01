//! What is not about resources: health, version, OpenAPI.

use http::HeaderMap;
use http::header::ACCEPT;
use serde_json::{Value, json};

use super::body::{self, Reply};
use super::query::Query;
use super::{Context, openapi};
use crate::env::{Env, SystemEnv};
use crate::status::Status;
use crate::tokens::ISSUER;

/// The version of Kubernetes whose API is served.
pub(super) const KUBERNETES: [&str; 3] = ["1", "36", "1"];
/// How the version ends that this server tells.
pub const VERSION_SUFFIX: &str = "+krafla";
/// The same where pods are only simulated: whoever hands out work wants to know whether it will be done.
pub const SIMULATED_SUFFIX: &str = "+krafla.simulated";

/// Answers a path that is not about resources.
pub(super) fn answer(
    context: &Context,
    method: &http::Method,
    parts: &[String],
    headers: &HeaderMap,
    query: &Query,
) -> Reply {
    let accept = super::header(headers, ACCEPT.as_str());
    let accept = accept.as_deref();
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    let reply = match words.as_slice() {
        ["version"] => body::value(200, &version(context), super::accept::Encoding::Json),
        [check @ ("healthz" | "livez" | "readyz")] => health(check, query, context.api.store().is_full()),
        ["healthz" | "livez" | "readyz", "ping"] => body::text(200, "ok"),
        ["metrics"] => body::full(200, "text/plain; version=0.0.4; charset=utf-8", metrics(context)),
        [".well-known", "openid-configuration"] => {
            body::value(200, &openid(&context.address), super::accept::Encoding::Json)
        }
        ["openid", "v1", "jwks"] => {
            let keys = context.credentials.tokens.public_keys();
            body::full(200, "application/jwk-set+json", keys.to_string())
        }
        ["openapi", "v2"] => openapi::all(context, headers),
        ["openapi", "v3"] => openapi::index(context),
        ["openapi", "v3", path @ ..] => openapi::document(context, &path.join("/"), accept),
        [""] => body::value(200, &paths(context), super::accept::Encoding::Json),
        _ => return not_found(),
    };
    if *method == http::Method::GET || *method == http::Method::HEAD {
        return reply;
    }
    body::refusal(&Status::method_not_allowed())
}

/// Nothing is here.
pub(super) fn not_found() -> Reply {
    body::text(404, "404 page not found\n")
}

/// What a check finds. A server whose disk is full lives, but is not ready: it takes only deletes.
fn health(check: &str, query: &Query, is_full: bool) -> Reply {
    let is_ok = !is_full || check == "livez";
    if is_ok && query.get("verbose").is_none() {
        return body::text(200, "ok");
    }
    let is_excluded = query.all("exclude").any(|name| name == "ping");
    let ping = if is_excluded { "[+]ping excluded: ok\n" } else { "[+]ping ok\n" };
    if is_ok {
        return body::text(200, format!("{ping}[+]store ok\n{check} check passed\n"));
    }
    let store = "[-]store failed: NOSPACE: no space left on its disk: it takes only deletes";
    body::text(500, format!("{ping}{store}\n{check} check failed\n"))
}

/// The server's numbers, those of the controllers beside it, and those of the process.
fn metrics(context: &Context) -> String {
    let of_controllers = context.controllers.as_ref().map(|controllers| controllers.page(SystemEnv.now()));
    context.metrics.page() + &of_controllers.unwrap_or_default() + &super::process::page()
}

fn version(context: &Context) -> Value {
    let [major, minor, patch] = KUBERNETES;
    let is_simulated = context.pod_access.as_ref().is_some_and(|access| access.is_simulated());
    let suffix = if is_simulated { SIMULATED_SUFFIX } else { VERSION_SUFFIX };
    json!({
        "major": major, "minor": minor,
        "emulationMajor": major, "emulationMinor": minor,
        "minCompatibilityMajor": major, "minCompatibilityMinor": "35",
        "gitVersion": format!("v{major}.{minor}.{patch}{suffix}"),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_architecture()),
    })
}

/// Where those who check tokens by themselves find the keys.
fn openid(address: &str) -> Value {
    json!({
        "issuer": ISSUER, "jwks_uri": format!("https://{address}/openid/v1/jwks"),
        "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

/// The machine as Go names it.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn paths(context: &Context) -> Value {
    let table = context.api.registry().table();
    let mut paths: Vec<String> = vec!["/api".into(), "/apis".into()];
    for (group, versions) in table.groups() {
        for version in versions {
            paths.push(format!("/{}", krafla_schema::openapi::path_of(group, &version.name)));
        }
    }
    paths.extend(
        ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            .map(str::to_owned),
    );
    json!({"paths": paths})
}
