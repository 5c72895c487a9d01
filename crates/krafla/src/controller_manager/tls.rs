//! Health over TLS, if three files are named: `--ca-cert-file`, `--tls-cert-file` and `--tls-private-key-file`.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::cli::TlsFiles;

/// How connections are made private; none if they are not, because not all three files are named. Clients may show a
/// certificate, which must be good then, but need not.
pub(super) fn acceptor(files: &TlsFiles) -> Result<Option<TlsAcceptor>> {
    let (Some(authority), Some(certificate), Some(key)) =
        (&files.ca_cert_file, &files.tls_cert_file, &files.tls_private_key_file)
    else {
        return Ok(None);
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates("--ca-cert-file", authority)? {
        roots.add(certificate).with_context(|| format!("--ca-cert-file {}", authority.display()))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()
        .with_context(|| format!("--ca-cert-file {}", authority.display()))?;
    let private = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("cannot use --tls-private-key-file {}", key.display()))?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(certificates("--tls-cert-file", certificate)?, private)
        .with_context(|| {
            format!("--tls-cert-file {} does not match the private key", certificate.display())
        })?;
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

fn certificates(flag: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let found: Vec<_> = read.with_context(|| format!("cannot use {flag} {}", file.display()))?;
    anyhow::ensure!(!found.is_empty(), "{flag} {}: the file contains no certificate", file.display());
    Ok(found)
}
