//! Certificates that are trusted: those of an authority, a certificate in a file that the user names, or one with a fingerprint.

use nfscope_api::fingerprint::Fingerprint;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use std::fmt;
use std::sync::Arc;

/// Error for a certificate that no authority vouches for. A user who knows its fingerprint can trust it.
#[derive(Debug)]
pub(super) struct Untrusted {
    shown: Fingerprint,
    wanted: Option<Fingerprint>,
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.shown;
        match self.wanted {
            Some(_) => write!(
                f,
                "its certificate has another fingerprint, {shown}: somebody has replaced the certificate, or stands in between"
            ),
            None => write!(
                f,
                "its certificate is of an authority that is not trusted; name that authority with --ca-file, or where you know the \
                 certificate, trust it alone with --fingerprint {shown}"
            ),
        }
    }
}

impl std::error::Error for Untrusted {}

/// Decides whether the other side of a connection is trusted.
#[derive(Debug)]
pub(super) struct Trust {
    provider: Arc<CryptoProvider>,
    how: How,
}

#[derive(Debug)]
enum How {
    /// By the fingerprint that the certificate must have.
    Fingerprint(Fingerprint),
    /// By authorities, and by certificates in a file. The certificate of an appliance is often its own authority, with which no chain may
    /// end.
    Authorities {
        usual: Arc<WebPkiServerVerifier>,
        named: Vec<CertificateDer<'static>>,
    },
}

impl Trust {
    /// Trusts the certificate with this fingerprint alone.
    pub(super) fn in_fingerprint(provider: Arc<CryptoProvider>, wanted: Fingerprint) -> Trust {
        Trust {
            provider,
            how: How::Fingerprint(wanted),
        }
    }

    /// Trusts certificates that these authorities vouch for, and servers that show a certificate of `named` itself.
    ///
    /// # Errors
    /// Without authorities.
    pub(super) fn in_authorities(
        provider: Arc<CryptoProvider>,
        roots: RootCertStore,
        named: Vec<CertificateDer<'static>>,
    ) -> anyhow::Result<Trust> {
        let usual =
            WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone()).build()?;
        Ok(Trust {
            provider,
            how: How::Authorities { usual, named },
        })
    }
}

fn untrusted(shown: &CertificateDer<'_>, wanted: Option<Fingerprint>) -> Error {
    let why = Untrusted {
        shown: Fingerprint::of(shown),
        wanted,
    };
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(why))))
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (usual, named) = match &self.how {
            How::Fingerprint(wanted) if Fingerprint::of(end_entity) == *wanted => {
                return Ok(ServerCertVerified::assertion());
            }
            How::Fingerprint(wanted) => return Err(untrusted(end_entity, Some(*wanted))),
            How::Authorities { usual, named } => (usual, named),
        };
        match usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The server shows an authority's certificate as its own. The library has checked its validity period before its role.
            Err(Error::InvalidCertificate(CertificateError::Other(why))) if is_authority(&why) => {
                if !named.contains(end_entity) {
                    return Err(untrusted(end_entity, None));
                }
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            Err(Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) => Err(untrusted(end_entity, None)),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Returns true for this error of the library, which names it in its text alone.
fn is_authority(why: &OtherError) -> bool {
    why.0.to_string().contains("CaUsedAsEndEntity")
}
