//! TLS, from a certificate and a key in PEM.

use std::path::Path;
use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::ServeError;
use super::config::Tls;

/// What connections are secured with.
pub(super) fn load(tls: &Tls) -> Result<RustlsConfig, ServeError> {
    let chain = CertificateDer::pem_file_iter(&tls.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable(&tls.cert, error))?;
    if chain.is_empty() {
        return Err(unusable(&tls.cert, "there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| unusable(&tls.key, error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| unusable(&tls.cert, error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(RustlsConfig::from_config(Arc::new(config)))
}

fn unusable(path: &Path, defect: impl std::fmt::Display) -> ServeError {
    ServeError::Tls { path: path.to_owned(), defect: defect.to_string() }
}
