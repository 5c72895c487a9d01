//! The certificate of the webhooks: from files, or from a Secret that all replicas share.
//!
//! A Secret of ours holds a certificate authority, good for ten years, and a certificate, good for one. The certificate is renewed when
//! a third of its time is left. Files and Secret are read again and again, so a new certificate needs no restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use arc_swap::ArcSwapOption;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use krafla_client::{HttpsClient, Request};
use krafla_cluster::ClientError;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The Secret of the certificate.
pub(super) const SECRET: &str = "krafla-webhook-certificate";
/// When the certificate has to be renewed. A Secret without it belongs to the user and stays as it is.
const RENEW_AFTER: &str = "krafla.dev/renew-after";
/// The names that the certificate is good for. Replicas with different names add theirs instead of replacing each other's.
const NAMES: &str = "krafla.dev/names";
/// The most names of a certificate. Beyond, the names of earlier replicas are dropped.
const NAMES_MAX: usize = 16;

const AUTHORITY_DAYS: i64 = 3650;
const CERTIFICATE_DAYS: i64 = 365;
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How often files and Secret are read again.
const WAIT: Duration = Duration::from_secs(10);

/// Where the certificate comes from.
pub(super) enum Source {
    /// Files that the user keeps.
    Files { authority: PathBuf, chain: PathBuf, key: PathBuf },
    /// A Secret in this namespace, created if it does not exist.
    Secret { client: HttpsClient, namespace: String },
}

/// A certificate with its authority and key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Material {
    authority: Vec<u8>,
    chain: Vec<u8>,
    key: Vec<u8>,
}

/// The certificate that is shown now.
#[derive(Debug, Default)]
pub(super) struct Current(ArcSwapOption<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }
}

/// TLS that shows the current certificate.
pub(super) fn tls(current: Arc<Current>) -> Result<tokio_rustls::TlsAcceptor> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(current);
    Ok(tokio_rustls::TlsAcceptor::from(Arc::new(config)))
}

/// What is known of the certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The authority that the API server has to trust, as PEM.
    pub(super) authority: Vec<u8>,
    /// Why the API server will refuse the certificate.
    pub(super) problem: Option<String>,
}

/// Loads the certificate once, for names under which the API server calls this program.
pub(super) async fn load(source: &Source, names: &[String], current: &Current) -> Result<Known> {
    let material = source.read(names).await?;
    let certified = material.certified()?;
    let problem = material.problem(names).err().map(|error| format!("{error:#}"));
    if let Some(problem) = &problem {
        tracing::warn!(problem, "the API server will not trust the certificate");
    }
    current.0.store(Some(Arc::new(certified)));
    Ok(Known { authority: material.authority, problem })
}

/// Loads the certificate again and again. What cannot be loaded leaves the one before in place.
pub(super) async fn keep(source: &Source, names: &[String], current: &Current, known: &watch::Sender<Known>) {
    loop {
        tokio::time::sleep(WAIT).await;
        match load(source, names, current).await {
            Ok(now) => {
                known.send_if_modified(|known| {
                    let has_changed = *known != now;
                    *known = now;
                    has_changed
                });
            }
            Err(error) => tracing::warn!("cannot load the certificate again: {error:#}"),
        }
    }
}

impl Source {
    async fn read(&self, names: &[String]) -> Result<Material> {
        match self {
            Source::Files { authority, chain, key } => Ok(Material {
                authority: file("--ca-cert-file", authority)?,
                chain: file("--tls-cert-file", chain)?,
                key: file("--tls-private-key-file", key)?,
            }),
            Source::Secret { client, namespace } => {
                let collection = format!("/api/v1/namespaces/{namespace}/secrets");
                from_secret(client, &collection, names)
                    .await
                    .with_context(|| format!("Secret {namespace}/{SECRET}"))
            }
        }
    }
}

fn file(flag: &str, path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {flag} {}", path.display()))
}

/// Reads the Secret, and creates or renews it. If another replica is quicker, what it wrote is taken.
async fn from_secret(client: &HttpsClient, collection: &str, names: &[String]) -> Result<Material> {
    let path = format!("{collection}/{SECRET}");
    for _ in 0..3 {
        let found = match client.ask(&Request::get(path.clone())).await {
            Ok(found) => Some(serde_json::from_slice::<Value>(&found)?),
            Err(ClientError::NotFound(_)) => None,
            Err(error) => bail!("{error}"),
        };
        let now = Timestamp::now();
        let (write, material) = match &found {
            None => {
                let (data, material) = issued(None, names, now)?;
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                    "metadata": { "name": SECRET, "annotations": annotations(names, now) }, "data": data,
                });
                (Request::post(collection.to_owned(), secret), material)
            }
            Some(secret) => {
                let Some(names) = names_to_renew(secret, names, now) else { return read_secret(secret) };
                let (data, material) = issued(Some(secret), &names, now)?;
                let version = secret.pointer("/metadata/resourceVersion");
                let metadata = json!({ "resourceVersion": version, "annotations": annotations(&names, now) });
                (Request::merge_patch(path.clone(), json!({ "metadata": metadata, "data": data })), material)
            }
        };
        match client.ask(&write).await {
            Ok(_) => return Ok(material),
            Err(ClientError::AlreadyExists(_) | ClientError::Conflict(_)) => {}
            Err(error) => bail!("{error}"),
        }
    }
    bail!("other replicas keep changing it")
}

fn annotations(names: &[String], now: Timestamp) -> Value {
    let two_thirds = DAY * i32::try_from(CERTIFICATE_DAYS * 2 / 3).unwrap_or(i32::MAX);
    let renew_after = now.saturating_add(two_thirds).unwrap_or(now).to_string();
    json!({ RENEW_AFTER: renew_after, NAMES: names.join(",") })
}

/// The names of a new certificate, if there has to be one: the old one ends soon, or lacks a name.
fn names_to_renew(secret: &Value, names: &[String], now: Timestamp) -> Option<Vec<String>> {
    let annotation = |name: &str| secret.pointer("/metadata/annotations")?.get(name)?.as_str();
    let is_old = annotation(RENEW_AFTER)?.parse::<Timestamp>().is_ok_and(|time| time <= now);
    let known: Vec<&str> = annotation(NAMES).unwrap_or_default().split(',').collect();
    if !is_old && names.iter().all(|name| known.contains(&name.as_str())) {
        return None;
    }
    let others =
        known.into_iter().filter(|known| !known.is_empty() && !names.iter().any(|name| name == known));
    Some(names.iter().cloned().chain(others.map(str::to_owned)).take(NAMES_MAX).collect())
}

fn read_secret(secret: &Value) -> Result<Material> {
    Ok(Material {
        authority: entry(secret, "ca.crt")?,
        chain: entry(secret, "tls.crt")?,
        key: entry(secret, "tls.key")?,
    })
}

fn entry(secret: &Value, name: &str) -> Result<Vec<u8>> {
    let text = secret.get("data").and_then(|data| data.get(name)?.as_str());
    let text =
        text.ok_or_else(|| anyhow!("data.{name} is missing; delete the Secret to have a new one made"))?;
    STANDARD.decode(text).with_context(|| format!("data.{name}"))
}

/// A new certificate, and the `data` of its Secret. The authority stays the one of the Secret.
fn issued(secret: Option<&Value>, names: &[String], now: Timestamp) -> Result<(Value, Material)> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "krafla-webhook-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    set_term(&mut params, AUTHORITY_DAYS, now)?;
    let (authority, authority_key) = match secret {
        Some(secret) => {
            let key = String::from_utf8(entry(secret, "ca.key")?).context("data.ca.key")?;
            (entry(secret, "ca.crt")?, KeyPair::from_pem(&key).context("data.ca.key")?)
        }
        None => {
            let key = KeyPair::generate()?;
            (params.self_signed(&key)?.pem().into_bytes(), key)
        }
    };
    let key = KeyPair::generate()?;
    let mut leaf = CertificateParams::new(names.to_vec())?;
    leaf.distinguished_name.push(DnType::CommonName, "krafla-webhook-manager");
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    set_term(&mut leaf, CERTIFICATE_DAYS, now)?;
    let chain = leaf.signed_by(&key, &Issuer::from_params(&params, &authority_key))?.pem().into_bytes();
    let material = Material { authority, chain, key: key.serialize_pem().into_bytes() };
    let data = json!({
        "ca.crt": STANDARD.encode(&material.authority), "ca.key": STANDARD.encode(authority_key.serialize_pem()),
        "tls.crt": STANDARD.encode(&material.chain), "tls.key": STANDARD.encode(&material.key),
    });
    Ok((data, material))
}

/// Sets begin and end of a certificate. It begins a day earlier: clocks differ.
fn set_term(certificate: &mut CertificateParams, days: i64, now: Timestamp) -> Result<()> {
    let day = |time: Timestamp| {
        let day = time.to_zoned(jiff::tz::TimeZone::UTC).date();
        rcgen::date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs())
    };
    certificate.not_before = day(now.checked_sub(DAY)?);
    certificate.not_after = day(now.checked_add(SignedDuration::from_hours(days.saturating_mul(24)))?);
    Ok(())
}

impl Material {
    /// The certificate for TLS.
    fn certified(&self) -> Result<CertifiedKey> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&self.chain)
            .collect::<Result<_, _>>()
            .context("the certificate")?;
        anyhow::ensure!(!chain.is_empty(), "the file of the certificate contains no certificate");
        let key = PrivateKeyDer::from_pem_slice(&self.key).context("the private key")?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        CertifiedKey::from_der(chain, key, &provider)
            .context("the certificate does not match the private key")
    }

    /// Fails if an API server that trusts the authority will refuse the certificate under one of these names.
    fn problem(&self, names: &[String]) -> Result<()> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&self.authority) {
            roots
                .add(certificate.context("the certificate authority")?)
                .context("the certificate authority")?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        let chain: Vec<CertificateDer<'_>> =
            CertificateDer::pem_slice_iter(&self.chain).collect::<Result<_, _>>()?;
        let [leaf, others @ ..] = chain.as_slice() else { bail!("there is no certificate") };
        for name in names {
            let server = ServerName::try_from(name.as_str()).with_context(|| format!("the name {name:?}"))?;
            verifier
                .verify_server_cert(leaf, others, &server, &[], UnixTime::now())
                .with_context(|| format!("the certificate is not good for {name}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        vec!["volcano-admission-service.volcano-system.svc".to_owned(), "127.0.0.1".to_owned()]
    }

    #[test]
    fn a_new_certificate_is_good_for_its_names_and_no_other() {
        let (_, material) = issued(None, &names(), Timestamp::now()).unwrap();
        assert!(material.certified().is_ok());
        material.problem(&names()).unwrap();
        let error = material.problem(&["elsewhere.svc".to_owned()]).unwrap_err();
        assert!(
            format!("{error:#}").starts_with("the certificate is not good for elsewhere.svc"),
            "{error:#}"
        );
    }

    #[test]
    fn a_renewed_certificate_keeps_its_authority() {
        let then = Timestamp::now() - SignedDuration::from_hours(24 * 400);
        let (data, expired) = issued(None, &names(), then).unwrap();
        assert!(format!("{:#}", expired.problem(&names()).unwrap_err()).contains("expired"));
        let secret = json!({ "metadata": { "annotations": annotations(&names(), then) }, "data": data });
        let now = Timestamp::now();
        assert_eq!(names_to_renew(&secret, &names(), then), None);
        assert_eq!(names_to_renew(&secret, &names(), now), Some(names()));
        let other = vec!["other.svc".to_owned()];
        let all = [other.clone(), names()].concat();
        assert_eq!(names_to_renew(&secret, &other, then), Some(all), "no replica takes a name from another");
        let (_, renewed) = issued(Some(&secret), &names(), now).unwrap();
        assert_eq!(renewed.authority, expired.authority);
        renewed.problem(&names()).unwrap();
        let of_the_user = json!({ "metadata": {}, "data": {} });
        assert_eq!(names_to_renew(&of_the_user, &names(), now), None, "a Secret of the user stays as it is");
        let error = read_secret(&of_the_user).err().unwrap();
        assert!(format!("{error:#}").contains("data.ca.crt is missing"));
    }
}
