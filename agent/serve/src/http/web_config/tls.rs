//! The section `tls_server_config`.

use super::any_certificate::AnyCertificate;
use anyhow::{Context, bail, ensure};
use nfscope_source::bounded;
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Most bytes of a file of the web configuration: certificates of many authorities take a quarter.
pub(super) const MOST: u64 = 1 << 20;

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Section {
    cert: Option<String>,
    key: Option<String>,
    client_ca: Option<String>,
    cert_file: Option<String>,
    key_file: Option<String>,
    client_ca_file: Option<String>,
    client_auth_type: Option<String>,
    client_allowed_sans: Vec<String>,
    min_version: Option<String>,
    max_version: Option<String>,
    cipher_suites: Vec<String>,
    prefer_server_cipher_suites: Option<bool>,
    curve_preferences: Vec<String>,
}

/// Debug output without contents, because a key is among them.
impl std::fmt::Debug for Section {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Section").finish_non_exhaustive()
    }
}

impl Section {
    /// Puts the contents of files in place of their names.
    pub(super) fn read(&mut self, beside: &Path) -> anyhow::Result<()> {
        for (name, inline, file) in [
            ("cert", &mut self.cert, &mut self.cert_file),
            ("key", &mut self.key, &mut self.key_file),
            ("client_ca", &mut self.client_ca, &mut self.client_ca_file),
        ] {
            let Some(file) = file.take() else { continue };
            ensure!(inline.is_none(), "both {name} and {name}_file are given");
            let path = beside.join(file);
            let text = bounded::read_text(&path, MOST);
            *inline = Some(text.with_context(|| path.display().to_string())?);
        }
        Ok(())
    }
}

/// TLS of connections, and the clients that it admits.
pub struct Tls {
    pub(in crate::http) acceptor: TlsAcceptor,
    /// Names, of which a client's certificate must have one; without any, every certificate is admitted.
    names: Vec<ServerName<'static>>,
    required: bool,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("names", &self.names)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

impl Tls {
    pub(super) fn new(section: &Section) -> anyhow::Result<Tls> {
        let bytes = |text: &Option<String>| text.as_ref().map(|text| text.clone().into_bytes());
        let cert = bytes(&section.cert).context("cert_file or cert is missing")?;
        let key = bytes(&section.key).context("key_file or key is missing")?;
        let authorities = bytes(&section.client_ca);

        let provider = Arc::new(provider(section)?);
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions(section)?)?;
        let kind = section
            .client_auth_type
            .as_deref()
            .unwrap_or("NoClientCert");
        let verifier = || {
            let pem = authorities.as_deref();
            let pem =
                pem.with_context(|| format!("client_auth_type {kind} needs client_ca_file"))?;
            let mut roots = RootCertStore::empty();
            for certificate in certificates(pem).context("client_ca")? {
                roots.add(certificate)?;
            }
            Ok::<_, anyhow::Error>(WebPkiClientVerifier::builder_with_provider(
                roots.into(),
                provider.clone(),
            ))
        };
        let builder = match kind {
            "NoClientCert" | "" => {
                ensure!(
                    authorities.is_none(),
                    "client_ca_file has no effect: set client_auth_type to RequireAndVerifyClientCert"
                );
                builder.with_no_client_auth()
            }
            "VerifyClientCertIfGiven" => {
                builder.with_client_cert_verifier(verifier()?.allow_unauthenticated().build()?)
            }
            "RequireAndVerifyClientCert" => builder.with_client_cert_verifier(verifier()?.build()?),
            // `RequireClientCert` is the toolkit's older name.
            "RequestClientCert" | "RequireAnyClientCert" | "RequireClientCert" => {
                ensure!(
                    authorities.is_none(),
                    "client_ca_file has no effect: client_auth_type {kind} verifies nothing; set it to RequireAndVerifyClientCert"
                );
                builder.with_client_cert_verifier(Arc::new(AnyCertificate {
                    provider: provider.clone(),
                    mandatory: kind != "RequestClientCert",
                }))
            }
            other => bail!("client_auth_type: unknown `{other}`"),
        };
        let required = kind == "RequireAndVerifyClientCert";
        ensure!(
            required || section.client_allowed_sans.is_empty(),
            "client_allowed_sans needs client_auth_type RequireAndVerifyClientCert"
        );
        let names = section.client_allowed_sans.iter().map(|name| {
            ServerName::try_from(name.clone()).with_context(|| {
                format!("client_allowed_sans: `{name}` is neither a DNS name nor an address")
            })
        });
        let names = names.collect::<Result<_, _>>()?;

        let key = PrivateKeyDer::from_pem_slice(&key).context("key: no private key in it")?;
        let chain = certificates(&cert).context("cert")?;
        let mut config = builder.with_single_cert(chain, key)?;
        config.ignore_client_order = section.prefer_server_cipher_suites.unwrap_or(true);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls {
            acceptor: Arc::new(config).into(),
            names,
            required,
        })
    }

    /// Returns true if every client must have a certificate.
    pub(super) fn authenticates(&self) -> bool {
        self.required
    }

    /// Returns true if the client's certificate, which has been verified, has one of the required names.
    pub(in crate::http) fn admits(&self, certificates: Option<&[CertificateDer<'_>]>) -> bool {
        if self.names.is_empty() {
            return true;
        }
        let Some(first) = certificates.and_then(<[_]>::first) else {
            return false;
        };
        ParsedCertificate::try_from(first).is_ok_and(|certificate| {
            (self.names.iter()).any(|name| verify_server_name(&certificate, name).is_ok())
        })
    }
}

fn certificates(pem: &[u8]) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
    ensure!(!all.is_empty(), "no certificate in it");
    Ok(all)
}

/// Cipher suites and curves by the names of Go.
fn provider(section: &Section) -> anyhow::Result<CryptoProvider> {
    let mut provider = ring::default_provider();
    if !section.cipher_suites.is_empty() {
        // The setting selects suites of TLS 1.2 only, as in Go; those of 1.3 are all secure.
        let all = provider.cipher_suites;
        let name = |s: &rustls::SupportedCipherSuite| format!("{:?}", s.suite());
        let (new, old): (Vec<_>, Vec<_>) = all.into_iter().partition(|s| s.tls13().is_some());
        let mut chosen = new;
        for wanted in &section.cipher_suites {
            // Newer names of Go end in the hash, older ones do not.
            let found = old
                .iter()
                .find(|s| name(s) == *wanted || name(s) == format!("{wanted}_SHA256"));
            let is_new = chosen
                .iter()
                .any(|s| name(s).replace("TLS13", "TLS") == *wanted);
            match found {
                Some(suite) => chosen.push(*suite),
                None if is_new => {}
                None => bail!("cipher_suites: `{wanted}` is not supported"),
            }
        }
        provider.cipher_suites = chosen;
    }
    if !section.curve_preferences.is_empty() {
        let all = provider.kx_groups;
        provider.kx_groups = Vec::new();
        for wanted in &section.curve_preferences {
            let name = match wanted.as_str() {
                "CurveP256" => "secp256r1",
                "CurveP384" => "secp384r1",
                other => other,
            };
            let found = all.iter().find(|g| format!("{:?}", g.name()) == name);
            let found = found.with_context(|| {
                format!("curve_preferences: `{wanted}` is not supported; known are CurveP256, CurveP384, X25519")
            })?;
            provider.kx_groups.push(*found);
        }
    }
    Ok(provider)
}

fn versions(section: &Section) -> anyhow::Result<Vec<&'static SupportedProtocolVersion>> {
    let all = [&TLS12, &TLS13];
    let place = |key: &str, given: &Option<String>, default| match given.as_deref() {
        None | Some("") => Ok(default),
        Some("TLS12") => Ok(0),
        Some("TLS13") => Ok(1),
        Some(other) => bail!("{key}: `{other}` is not supported; known are TLS12, TLS13"),
    };
    let from = place("min_version", &section.min_version, 0)?;
    let to = place("max_version", &section.max_version, 1)?;
    ensure!(from <= to, "min_version is above max_version");
    Ok(all[from..=to].to_vec())
}
