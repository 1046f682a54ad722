//! TLS: a rustls acceptor from a certificate chain and a key in PEM files.

use crate::error::ServeError;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// The acceptor of a certificate chain and its key.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, ServeError> {
    let refuse = |path: &Path, what: &dyn std::fmt::Display| {
        ServeError::Arguments(format!("{}: {what}", path.display()))
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| refuse(certificate, &error))?;
    if chain.is_empty() {
        return Err(refuse(certificate, &"there is no certificate in it"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| refuse(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refuse(certificate, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| refuse(certificate, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
