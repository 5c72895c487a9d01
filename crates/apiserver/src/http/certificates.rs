//! Our own certificate authority, the server's certificate and the administrator's token. They are kept in the data directory, so that a
//! kubeconfig stays good over restarts.
//!
//! The authority's certificate is good for ten years, and the server's for one. Each is renewed when a third of its time is left: the authority's
//! at a start and with the same key, so that what it signed before stays good; the server's at a start and while it runs.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};

use super::server::{ServeError, write_unfinished};

/// By what other servers know that a request comes from this one.
pub(super) struct FrontProxy {
    /// The authority of the certificate, as PEM.
    pub(super) authority: String,
    /// The authority of clients of this server, as PEM.
    pub(super) client_authority: String,
    /// What this server shows.
    pub(super) shown: krafla_keys::tls::Certificate,
}

impl FrontProxy {
    /// A new authority and a certificate of it. They last as long as this server: others read the authority from the cluster.
    pub(super) fn make(client_authority: &str) -> Result<FrontProxy, ServeError> {
        let failed = |error: rcgen::Error| ServeError::Certificates(error.to_string());
        let ca_key = KeyPair::generate().map_err(failed)?;
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "krafla-front-proxy-ca");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority = ca.self_signed(&ca_key).map_err(failed)?.pem();
        let key = KeyPair::generate().map_err(failed)?;
        let mut client = CertificateParams::default();
        client.distinguished_name.push(DnType::CommonName, "front-proxy-client");
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let chain = client.signed_by(&key, &Issuer::from_params(&ca, &ca_key)).map_err(failed)?.pem();
        let shown = krafla_keys::tls::Certificate { chain: chain.into(), key: key.serialize_pem().into() };
        Ok(FrontProxy { authority, client_authority: client_authority.to_owned(), shown })
    }
}

/// Everything that makes connections private and tells the administrator apart.
#[derive(Clone)]
pub(super) struct Identity {
    /// The authority's certificate.
    pub ca_pem: String,
    /// The authority's key; empty if it was taken away, and then nothing can be renewed.
    ca_key_pem: String,
    server_pem: String,
    server_key_pem: String,
    /// What the administrator shows.
    pub token: String,
    /// How long the certificates are good.
    terms: Terms,
    /// Where the server listens.
    address: IpAddr,
}

const FILES: [&str; 6] = ["ca.crt", "ca.key", "server.crt", "server.key", "admin.token", "certificates.json"];

/// How long certificates are good. Those of an earlier version have no end, and no terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Terms {
    ca: Option<Term>,
    server: Option<Term>,
}

/// From when and until when a certificate is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Term {
    from: Timestamp,
    until: Timestamp,
}

const CA_DAYS: i64 = 3650;
const SERVER_DAYS: i64 = 365;
const DAY: SignedDuration = SignedDuration::from_hours(24);

impl Term {
    /// It begins a day earlier: clocks differ.
    fn of_days(days: i64, now: Timestamp) -> Term {
        let length = SignedDuration::from_hours(days.saturating_mul(24));
        Term {
            from: now.saturating_sub(DAY).unwrap_or(now),
            until: now.saturating_add(length).unwrap_or(now),
        }
    }

    /// When a certificate has to be renewed: when a third of its time is left.
    fn renewed_at(&self) -> Timestamp {
        let third = self.until.duration_since(self.from) / 3;
        self.until.saturating_sub(third).unwrap_or(self.until)
    }

    /// Whether a certificate has to be renewed. One that is not good yet was made by a clock that was wrong.
    fn is_over(&self, now: Timestamp) -> bool {
        now >= self.renewed_at() || now < self.from
    }
}

/// The day of a moment, as certificates tell it.
fn day_of(time: Timestamp) -> (i32, u8, u8) {
    let day = time.to_zoned(jiff::tz::TimeZone::UTC).date();
    (day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs())
}

impl Identity {
    /// The identity that is kept in a directory, with renewed certificates if they need it, or a new one.
    pub(super) fn load_or_make(
        dir: Option<&Path>,
        address: IpAddr,
        now: Timestamp,
    ) -> Result<Identity, ServeError> {
        let Some(dir) = dir else { return Identity::make(address, now) };
        let files = |source| ServeError::Files { dir: dir.to_owned(), source };
        let [ca, ca_key, server, key, token, terms] =
            FILES.map(|file| std::fs::read_to_string(dir.join(file)));
        if let (Ok(ca_pem), Ok(server_pem), Ok(server_key_pem), Ok(token)) = (ca, server, key, token) {
            let terms = terms.ok().and_then(|terms| serde_json::from_str(&terms).ok()).unwrap_or_default();
            let (ca_key_pem, token) = (ca_key.unwrap_or_default(), token.trim().to_owned());
            let kept = Identity { ca_pem, ca_key_pem, server_pem, server_key_pem, token, terms, address };
            let Some(renewed) = kept.renewed_ca(now)?.unwrap_or(kept.clone()).renewed(now)? else {
                return Ok(kept);
            };
            // On a full disk a certificate that is still good stays in use.
            if let Err(error) = renewed.save(dir) {
                tracing::warn!(%error, "renewed certificates cannot be written");
            }
            return Ok(renewed);
        }
        let identity = Identity::make(address, now)?;
        identity.save(dir).map_err(files)?;
        Ok(identity)
    }

    fn make(address: IpAddr, now: Timestamp) -> Result<Identity, ServeError> {
        let ca_key = KeyPair::generate().map_err(failed)?;
        let term = Term::of_days(CA_DAYS, now);
        let ca_pem = ca_params(Some(term)).self_signed(&ca_key).map_err(failed)?.pem();
        let unsigned = Identity {
            ca_pem,
            ca_key_pem: ca_key.serialize_pem(),
            server_pem: String::new(),
            server_key_pem: String::new(),
            token: random_token()?,
            terms: Terms { ca: Some(term), server: None },
            address,
        };
        unsigned.sign_server(now)
    }

    /// With a new certificate of the authority, if it needs one. That of an earlier version has no end, and stays: kubeconfigs name it.
    fn renewed_ca(&self, now: Timestamp) -> Result<Option<Identity>, ServeError> {
        let is_over = self.terms.ca.is_some_and(|term| term.is_over(now));
        if !is_over || self.ca_key_pem.is_empty() {
            return Ok(None);
        }
        let key = KeyPair::from_pem(&self.ca_key_pem).map_err(failed)?;
        let term = Term::of_days(CA_DAYS, now);
        let ca_pem = ca_params(Some(term)).self_signed(&key).map_err(failed)?.pem();
        // What is known of the server's is forgotten, so that it is renewed, too.
        Ok(Some(Identity { ca_pem, terms: Terms { ca: Some(term), server: None }, ..self.clone() }))
    }

    /// With a new certificate of the server, if it needs one.
    pub(super) fn renewed(&self, now: Timestamp) -> Result<Option<Identity>, ServeError> {
        let is_over = self.terms.server.is_none_or(|term| term.is_over(now));
        if !is_over || self.ca_key_pem.is_empty() {
            return Ok(None);
        }
        self.sign_server(now).map(Some)
    }

    /// How long the server's certificate need not be renewed.
    pub(super) fn rests_for(&self, now: Timestamp) -> std::time::Duration {
        let rest = self.terms.server.map(|term| term.renewed_at().duration_since(now));
        rest.and_then(|rest| std::time::Duration::try_from(rest).ok()).unwrap_or_default()
    }

    /// With a certificate of the server that is good from now on.
    fn sign_server(&self, now: Timestamp) -> Result<Identity, ServeError> {
        let ca_key = KeyPair::from_pem(&self.ca_key_pem).map_err(failed)?;
        let issuer = Issuer::new(ca_params(self.terms.ca), &ca_key);
        let key = KeyPair::generate().map_err(failed)?;
        let term = Term::of_days(SERVER_DAYS, now);
        let names = [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ]
        .map(str::to_owned);
        let mut server = CertificateParams::new(names).map_err(failed)?;
        server.distinguished_name.push(DnType::CommonName, "krafla");
        let mut addresses = vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
        if !addresses.contains(&self.address) && !self.address.is_unspecified() {
            addresses.push(self.address);
        }
        server.subject_alt_names.extend(addresses.into_iter().map(SanType::IpAddress));
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        set_term(&mut server, term);
        let server_pem = server.signed_by(&key, &issuer).map_err(failed)?.pem();
        let terms = Terms { server: Some(term), ..self.terms };
        Ok(Identity { server_pem, server_key_pem: key.serialize_pem(), terms, ..self.clone() })
    }

    /// Writes everything to a directory.
    pub(super) fn save(&self, dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(dir)?;
        let terms = serde_json::to_string(&self.terms)?;
        let contents =
            [&self.ca_pem, &self.ca_key_pem, &self.server_pem, &self.server_key_pem, &self.token, &terms];
        let files: Vec<_> =
            FILES.iter().zip(contents).map(|(file, content)| (dir.join(file), content.as_str())).collect();
        // Each file waits for the disk; side by side they wait once.
        let written: Vec<_> = std::thread::scope(|scope| {
            let writers: Vec<_> =
                files.iter().map(|(path, content)| scope.spawn(|| write_unfinished(path, content))).collect();
            writers.into_iter().map(|writer| writer.join()).collect()
        });
        for (written, (path, _)) in written.into_iter().zip(&files) {
            let unfinished = written.unwrap_or_else(|_| Err(io::Error::other("its writer panicked")))?;
            std::fs::rename(unfinished, path)?;
        }
        Ok(())
    }

    /// The server's certificate and key, as connections use them.
    pub(super) fn certified(&self) -> Result<Arc<CertifiedKey>, ServeError> {
        let failed =
            |what: &str, error: &dyn std::fmt::Display| ServeError::Certificates(format!("{what}: {error}"));
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(self.server_pem.as_bytes()).collect();
        let chain = chain.map_err(|error| failed("server.crt", &error))?;
        let key = PrivateKeyDer::from_pem_slice(self.server_key_pem.as_bytes())
            .map_err(|error| failed("server.key", &error))?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let certified = CertifiedKey::from_der(chain, key, &provider);
        certified.map(Arc::new).map_err(|error| failed("server.crt", &error))
    }

    /// How connections are made private. A client may, but need not, show a certificate that our authority signed.
    pub(super) fn tls(&self, shown: Arc<Shown>) -> Result<rustls::ServerConfig, ServeError> {
        let failed =
            |what: &str, error: &dyn std::fmt::Display| ServeError::Certificates(format!("{what}: {error}"));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.ca_pem.as_bytes()) {
            let certificate = certificate.map_err(|error| failed("ca.crt", &error))?;
            roots.add(certificate).map_err(|error| failed("ca.crt", &error))?;
        }
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(|error| failed("ca.crt", &error))?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed("TLS", &error))?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(shown);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The certificate that new connections are shown. Those that exist go on when it changes.
#[derive(Debug)]
pub(super) struct Shown(ArcSwap<CertifiedKey>);

impl Shown {
    pub(super) fn new(identity: &Identity) -> Result<Arc<Shown>, ServeError> {
        Ok(Arc::new(Shown(ArcSwap::new(identity.certified()?))))
    }

    fn replace(&self, identity: &Identity) -> Result<(), ServeError> {
        self.0.store(identity.certified()?);
        Ok(())
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// The longest time between two looks at the clock, which may be set in between.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(12 * 3600);
const LOOK_AGAIN_AFTER: std::time::Duration = std::time::Duration::from_secs(60);

/// Renews the certificate that is shown, until the future is dropped.
pub(super) async fn keep_good(mut identity: Identity, shown: Arc<Shown>, dir: Option<PathBuf>) {
    loop {
        let rest = identity.rests_for(Timestamp::now());
        tokio::time::sleep(rest.clamp(LOOK_AGAIN_AFTER, LOOK_EVERY)).await;
        let renewed = match identity.renewed(Timestamp::now()) {
            Ok(Some(renewed)) => renewed,
            Ok(None) => continue,
            Err(error) => {
                tracing::error!(%error, "the server's certificate cannot be renewed");
                continue;
            }
        };
        let saved = dir.as_deref().map_or(Ok(()), |dir| renewed.save(dir));
        if let Err(error) = saved {
            tracing::warn!(%error, "the renewed certificate cannot be written");
        }
        if let Err(error) = shown.replace(&renewed) {
            tracing::error!(%error, "the renewed certificate cannot be used");
        }
        identity = renewed;
    }
}

fn failed(error: rcgen::Error) -> ServeError {
    ServeError::Certificates(error.to_string())
}

/// What the authority's certificate says. It is the same each time, so that what it signed is good with a renewed one.
fn ca_params(term: Option<Term>) -> CertificateParams {
    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, "krafla-ca");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    if let Some(term) = term {
        set_term(&mut ca, term);
    }
    ca
}

fn set_term(certificate: &mut CertificateParams, term: Term) {
    let day = |time| {
        let (year, month, day) = day_of(time);
        rcgen::date_time_ymd(year, month, day)
    };
    certificate.not_before = day(term.from);
    certificate.not_after = day(term.until);
}

/// Makes the library behind keys and certificates ready, on a thread of its own: before its first random number it
/// gathers noise for tens of milliseconds. Whoever needs a key meanwhile waits for it.
pub fn gather_noise() {
    std::thread::spawn(|| {
        let mut number = [0];
        // Whoever needs a number asks again, and is told if there is none.
        let _ = aws_lc_rs::rand::fill(&mut number);
    });
}

fn random_token() -> Result<String, ServeError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| ServeError::Certificates(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    fn after(days: i64) -> Timestamp {
        let now: Timestamp = "2026-11-18T12:00:00Z".parse().unwrap();
        now.checked_add(SignedDuration::from_hours(days * 24)).unwrap()
    }

    fn address() -> IpAddr {
        IpAddr::from([127, 0, 0, 1])
    }

    /// Whether a client with this authority's certificate trusts the server at a moment.
    fn is_trusted(ca_pem: &str, server: &Identity, at: Timestamp) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let shown = CertificateDer::from_pem_slice(server.server_pem.as_bytes()).unwrap();
        let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(at.as_second().unsigned_abs()));
        let name = ServerName::try_from("127.0.0.1").unwrap();
        verifier.verify_server_cert(&shown, &[], &name, &[], at).is_ok()
    }

    #[test]
    fn a_certificate_is_renewed_when_a_third_of_its_time_is_left() {
        let term = Term::of_days(365, after(0));
        for (day, is_over) in [(-2, true), (0, false), (242, false), (244, true), (365, true), (9999, true)] {
            assert_eq!(term.is_over(after(day)), is_over, "day {day}");
        }
    }

    #[test]
    fn certificates_end_and_are_renewed_before() {
        let dir = tempfile::tempdir().unwrap();
        let load = |day| Identity::load_or_make(Some(dir.path()), address(), after(day)).unwrap();
        let first = load(0);
        assert!(
            is_trusted(&first.ca_pem, &first, after(364)) && !is_trusted(&first.ca_pem, &first, after(367))
        );
        assert_eq!(load(200).server_pem, first.server_pem);
        let second = load(300);
        assert_eq!((&second.ca_pem, &second.token), (&first.ca_pem, &first.token), "kubeconfigs stay good");
        assert!(is_trusted(&first.ca_pem, &second, after(600)));
        assert_eq!(load(300).server_pem, second.server_pem, "it is kept");
        let last = load(3000);
        assert_ne!(last.ca_pem, first.ca_pem);
        assert!(
            is_trusted(&last.ca_pem, &last, after(3300)) && is_trusted(&first.ca_pem, &last, after(3300))
        );
        assert!(load(3000).renewed(after(3100)).unwrap().is_none());
    }

    /// Those of an earlier version have no end, and nothing says so.
    #[test]
    fn certificates_of_an_earlier_version_are_renewed_under_the_same_authority() {
        let dir = tempfile::tempdir().unwrap();
        let mut old = Identity::make(address(), after(0)).unwrap();
        let key = KeyPair::from_pem(&old.ca_key_pem).unwrap();
        old.ca_pem = ca_params(None).self_signed(&key).unwrap().pem();
        old.save(dir.path()).unwrap();
        std::fs::remove_file(dir.path().join("certificates.json")).unwrap();
        let load = |day| Identity::load_or_make(Some(dir.path()), address(), after(day)).unwrap();
        let renewed = load(1);
        assert_eq!((&renewed.ca_pem, &renewed.token), (&old.ca_pem, &old.token));
        assert_ne!(renewed.server_pem, old.server_pem);
        assert!(is_trusted(&old.ca_pem, &renewed, after(300)));
        assert_eq!(load(2).server_pem, renewed.server_pem);
        // Without the authority's key everything stays as it is.
        std::fs::remove_file(dir.path().join("ca.key")).unwrap();
        assert_eq!(load(5000).server_pem, renewed.server_pem);
    }
}
