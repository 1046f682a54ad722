//! The cryptography of TLS (ring), for judges behind `https://` and a Redis behind `rediss://`.

/// Makes ring the provider of rustls. It fails only where the process has chosen another already, which then serves as
/// well.
pub(crate) fn install_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
