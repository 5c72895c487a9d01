//! Private connections to servers of pods, as a kubelet makes them: whose certificate it is, is not asked.
//!
//! Nobody could vouch for a pod's certificate, which is often made at its start, and a probe tells no secrets.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Connects to a server at `host:port`. An error says what was wrong.
pub(super) async fn connect(address: &str) -> Result<TlsStream<TcpStream>, String> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned()).map_err(|error| format!("{address}: {error}"))?;
    let stream = TcpStream::connect(address).await.map_err(|error| format!("{address}: {error}"))?;
    let no_tls = |error: &dyn std::fmt::Display| format!("{address}: no TLS: {error}");
    let connector = TlsConnector::from(Arc::new(config().map_err(|error| no_tls(&error))?));
    connector.connect(name, stream).await.map_err(|error| no_tls(&error))
}

fn config() -> Result<ClientConfig, Error> {
    let provider = Arc::new(default_provider());
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody { schemes }))
        .with_no_client_auth();
    Ok(config)
}

/// Takes everybody for who they say they are.
#[derive(Debug)]
struct Anybody {
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    // A signature by a key that anybody may have shows nothing either.
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}
