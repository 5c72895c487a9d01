//! Our own certificate authority, the server's certificate and the administrator's token. They are made once and kept in
//! the data directory, so that a kubeconfig stays good over restarts.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

use super::server::{ServeError, write_unfinished};

/// Everything that makes connections private and tells the administrator apart.
#[derive(Clone)]
pub(super) struct Identity {
    /// The authority's certificate.
    pub ca_pem: String,
    server_pem: String,
    server_key_pem: String,
    /// What the administrator shows.
    pub token: String,
}

const FILES: [&str; 4] = ["ca.crt", "server.crt", "server.key", "admin.token"];

impl Identity {
    /// The identity that is kept in a directory, or a new one.
    pub(super) fn load_or_make(dir: Option<&Path>, address: IpAddr) -> Result<Identity, ServeError> {
        let Some(dir) = dir else { return Identity::make(address).map(|(identity, _)| identity) };
        let [ca, server, key, token] = FILES.map(|file| std::fs::read_to_string(dir.join(file)));
        if let (Ok(ca_pem), Ok(server_pem), Ok(server_key_pem), Ok(token)) = (ca, server, key, token) {
            return Ok(Identity { ca_pem, server_pem, server_key_pem, token: token.trim().to_owned() });
        }
        let (identity, ca_key_pem) = Identity::make(address)?;
        identity
            .save(dir, &ca_key_pem)
            .map_err(|source| ServeError::Files { dir: dir.to_owned(), source })?;
        Ok(identity)
    }

    fn make(address: IpAddr) -> Result<(Identity, String), ServeError> {
        let failed = |error: rcgen::Error| ServeError::Certificates(error.to_string());
        let ca_key = KeyPair::generate().map_err(failed)?;
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "krafla-ca");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let ca_pem = ca.self_signed(&ca_key).map_err(failed)?.pem();
        let issuer = Issuer::from_params(&ca, &ca_key);

        let key = KeyPair::generate().map_err(failed)?;
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
        if !addresses.contains(&address) && !address.is_unspecified() {
            addresses.push(address);
        }
        server.subject_alt_names.extend(addresses.into_iter().map(SanType::IpAddress));
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server_pem = server.signed_by(&key, &issuer).map_err(failed)?.pem();

        let token = random_token()?;
        let identity = Identity { ca_pem, server_pem, server_key_pem: key.serialize_pem(), token };
        Ok((identity, ca_key.serialize_pem()))
    }

    fn save(&self, dir: &Path, ca_key_pem: &str) -> io::Result<()> {
        std::fs::create_dir_all(dir)?;
        let contents = [&self.ca_pem, &self.server_pem, &self.server_key_pem, &self.token];
        let files = FILES.iter().zip(contents.map(String::as_str)).chain([(&"ca.key", ca_key_pem)]);
        let files: Vec<_> = files.map(|(file, content)| (dir.join(file), content)).collect();
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

    /// How connections are made private. A client may, but need not, show a certificate that our authority signed.
    pub(super) fn tls(&self) -> Result<rustls::ServerConfig, ServeError> {
        let failed =
            |what: &str, error: &dyn std::fmt::Display| ServeError::Certificates(format!("{what}: {error}"));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(self.server_pem.as_bytes()).collect();
        let chain = chain.map_err(|error| failed("server.crt", &error))?;
        let key = PrivateKeyDer::from_pem_slice(self.server_key_pem.as_bytes())
            .map_err(|error| failed("server.key", &error))?;
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
            .with_single_cert(chain, key)
            .map_err(|error| failed("server.crt", &error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
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
