//! TLS configuration: the CAs that we trust, and our certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// Where machines keep the authorities that they trust.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// A certificate that we show, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate, and those of the authorities between it and one that the server knows.
    pub chain: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
}

/// Why connections can not be made private.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// What should name authorities does not.
    #[error("{0}")]
    Authorities(String),
    /// What should be a certificate with its key is not.
    #[error("client certificate: {0}")]
    Certificate(String),
    /// The library refuses.
    #[error("{0}")]
    Library(#[from] rustls::Error),
}

/// Connections to servers that these authorities vouch for, or those that the machine trusts if there are none.
pub fn trusting(authorities: &[u8], shown: Option<&Certificate>) -> Result<ClientConfig, TlsError> {
    let failed = |error: &dyn std::fmt::Display| TlsError::Authorities(error.to_string());
    let mut roots = RootCertStore::empty();
    let pem = if authorities.is_empty() { of_this_machine() } else { authorities.to_vec() };
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    showing(builder, shown)
}

/// Connections in which this side shows a certificate, or none.
pub fn showing(
    builder: rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>,
    shown: Option<&Certificate>,
) -> Result<ClientConfig, TlsError> {
    let Some(shown) = shown else { return Ok(builder.with_no_client_auth()) };
    let unusable = |error: rustls::pki_types::pem::Error| TlsError::Certificate(error.to_string());
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&shown.chain).collect::<Result<_, _>>().map_err(unusable)?;
    let key = PrivateKeyDer::from_pem_slice(&shown.key).map_err(unusable)?;
    Ok(builder.with_client_auth_cert(chain, key)?)
}

fn of_this_machine() -> Vec<u8> {
    AUTHORITIES.iter().find_map(|file| std::fs::read(Path::new(file)).ok()).unwrap_or_default()
}
