//! Flags for TLS and passwords.

use clap::Args;
use nfscope_api::fingerprint::Fingerprint;
use std::path::PathBuf;

/// Flags of every command that asks an agent or a Prometheus.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "TLS and passwords")]
pub struct AccessArgs {
    /// PEM file with the authority of the certificate that the URL shows, or with that certificate itself [default: authorities that
    /// this host trusts]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// SHA-256 fingerprint of the certificate that the URL shows, which is then trusted whatever name and authority it has
    #[arg(long, value_name = "HEX", conflicts_with = "ca_file")]
    pub fingerprint: Option<Fingerprint>,
    /// PEM file with a certificate for this command
    #[arg(long, value_name = "FILE", requires = "key_file")]
    pub cert_file: Option<PathBuf>,
    /// PEM file with the key of that certificate
    #[arg(long, value_name = "FILE", requires = "cert_file")]
    pub key_file: Option<PathBuf>,
    /// Name to log in with. The password is in --password-file or in the variable NFSCOPE_PASSWORD
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// File whose first line is the password
    #[arg(long, value_name = "FILE", requires = "user")]
    pub password_file: Option<PathBuf>,
}

impl AccessArgs {
    /// Flags and values, to pass to another process of this program.
    pub fn words(&self) -> Vec<std::ffi::OsString> {
        let files = [
            ("--ca-file", &self.ca_file),
            ("--cert-file", &self.cert_file),
            ("--key-file", &self.key_file),
            ("--password-file", &self.password_file),
        ];
        let files = files.into_iter().filter_map(|(flag, file)| {
            let file = file.as_ref()?;
            Some([flag.into(), file.into()])
        });
        let user = self.user.iter().map(|user| ["--user".into(), user.into()]);
        let fingerprint =
            (self.fingerprint.iter()).map(|f| ["--fingerprint".into(), f.to_string().into()]);
        files.chain(user).chain(fingerprint).flatten().collect()
    }
}
