//! Credentials of a command for an agent or a Prometheus (a password, a certificate), and the certificates that it trusts.

use super::trust::Trust;
use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nfscope_api::address::{self, Whom};
use nfscope_api::fingerprint::Fingerprint;
use nfscope_text::console::warn;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Variable with the password.
const PASSWORD: &str = "NFSCOPE_PASSWORD";
/// Variable with a file of authorities, as OpenSSL has it.
const AUTHORITIES: &str = "SSL_CERT_FILE";
/// Files in which systems keep the authorities that they trust.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs/ca-bundle.crt",
];

/// Options of access that a user has given.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// CA certificates to trust when connecting.
    pub ca_file: Option<PathBuf>,
    /// Fingerprint of the only server certificate to trust, in place of authorities.
    pub fingerprint: Option<Fingerprint>,
    /// Client certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// User name for basic authentication.
    pub user: Option<String>,
    /// File with the user's password.
    pub password_file: Option<PathBuf>,
}

impl Access {
    /// Returns true if an option is given that only TLS has.
    pub(super) fn means_tls(&self) -> bool {
        self.ca_file.is_some() || self.fingerprint.is_some() || self.certificate.is_some()
    }

    /// Completes a URL as it was typed with its scheme and port.
    ///
    /// # Errors
    /// When it has no scheme, and it would be a guess whether a password is sent with encryption.
    pub fn complete(&self, url: &str, whom: Whom) -> anyhow::Result<String> {
        let encrypted = self.means_tls();
        ensure!(
            encrypted || self.user.is_none() || url.contains("://"),
            "`{url}`: with --user, say how the password is sent: https://{url} encrypts it, http://{url} does not"
        );
        Ok(address::complete(url, whom, encrypted))
    }
}

/// Access that all requests of this program use.
struct Ready {
    /// Value of the header `Authorization`.
    authorization: Option<String>,
    access: Access,
    tls: OnceLock<Arc<ClientConfig>>,
}

/// Access of this run of the program, which asks one agent or one Prometheus.
static READY: OnceLock<Ready> = OnceLock::new();

/// Sets the access for all requests, once.
///
/// # Errors
/// When there is no password for a name, or a file cannot be read.
pub fn set(access: Access) -> anyhow::Result<()> {
    let ready = Ready {
        authorization: authorization(&access)?,
        access,
        tls: OnceLock::new(),
    };
    ensure!(READY.set(ready).is_ok(), "access is set already");
    // Files are read here, because a command that watches would go on asking with a file that it cannot read.
    let access = READY.get().map(|ready| &ready.access);
    if access.is_some_and(|a| a.ca_file.is_some() || a.certificate.is_some()) {
        tls()?;
    }
    Ok(())
}

/// Value of the header `Authorization`, if a name is given. Warns if the password would be sent in the clear to another host.
pub(super) fn password(encrypted: bool, here: bool) -> Option<&'static str> {
    static WARNED: OnceLock<()> = OnceLock::new();
    let value = READY.get()?.authorization.as_deref()?;
    if !encrypted && !here && WARNED.set(()).is_ok() {
        warn(
            "the password is sent without encryption; https:// encrypts it where the other side has a certificate",
        );
    }
    Some(value)
}

fn authorization(access: &Access) -> anyhow::Result<Option<String>> {
    let Some(user) = &access.user else {
        return Ok(None);
    };
    ensure!(
        !user.contains(|c: char| c == ':' || c.is_control()),
        "--user: a name has no colon"
    );
    let password = match &access.password_file {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read password {}", path.display()))?;
            text.lines().next().unwrap_or_default().to_owned()
        }
        None => match std::env::var(PASSWORD) {
            Ok(password) => password,
            Err(_) => bail!("--user needs a password: give --password-file or set {PASSWORD}"),
        },
    };
    let both = STANDARD.encode(format!("{user}:{password}"));
    Ok(Some(format!("Basic {both}")))
}

/// TLS configuration of connections.
pub(super) fn tls() -> anyhow::Result<Arc<ClientConfig>> {
    static OTHERWISE: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    let none = Access::default();
    let (access, known) = match READY.get() {
        Some(ready) => (&ready.access, &ready.tls),
        None => (&none, &OTHERWISE),
    };
    match known.get() {
        Some(config) => Ok(config.clone()),
        None => {
            let made = Arc::new(config(access)?);
            Ok(known.get_or_init(|| made).clone())
        }
    }
}

fn config(access: &Access) -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let trust = match (access.fingerprint, &access.ca_file) {
        (Some(wanted), _) => Trust::in_fingerprint(provider.clone(), wanted),
        (None, Some(path)) => {
            let named = certificates(path)?;
            let mut roots = RootCertStore::empty();
            for certificate in &named {
                roots.add(certificate.clone())?;
            }
            Trust::in_authorities(provider.clone(), roots, named)?
        }
        (None, None) => {
            let mut roots = RootCertStore::empty();
            // Certificates of the system that are too old for this library are skipped.
            roots.add_parsable_certificates(certificates(&bundle()?)?);
            Trust::in_authorities(provider.clone(), roots, Vec::new())?
        }
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust));
    Ok(match &access.certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let of = || key.display().to_string();
            let chain = certificates(certificate)?;
            let key = std::fs::read(key).with_context(of)?;
            let key = PrivateKeyDer::from_pem_slice(&key)
                .with_context(|| format!("{}: no private key in it", of()))?;
            builder.with_client_auth_cert(chain, key)?
        }
    })
}

fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let of = || path.display().to_string();
    let pem = std::fs::read(path).with_context(of)?;
    let all: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .with_context(of)?;
    ensure!(!all.is_empty(), "{}: no certificate in it", of());
    Ok(all)
}

/// File with the authorities that this host trusts.
fn bundle() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os(AUTHORITIES).filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let usual = BUNDLES
        .into_iter()
        .map(Path::new)
        .find(|path| path.exists());
    usual
        .map(Path::to_owned)
        .context("this host has no file with trusted authorities; name one with --ca-file, or a certificate with --fingerprint")
}
