//! Flags for TLS and passwords.

use clap::Args;
use nfscope_api::fingerprint::Fingerprint;
use std::path::PathBuf;

/// Flags of every command that asks an agent or a Prometheus.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "TLS and passwords")]
pub struct AccessArgs {
    /// PEM file with the CA of the server's certificate, or with that certificate itself [default: CAs that this host trusts]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// SHA-256 fingerprint of the server's certificate. That certificate is then trusted, whatever its name and its CA
    #[arg(long, value_name = "HEX", conflicts_with = "ca_file")]
    pub fingerprint: Option<Fingerprint>,
    /// PEM file with a client certificate for this command
    #[arg(long, value_name = "FILE", requires = "key_file")]
    pub cert_file: Option<PathBuf>,
    /// PEM file with the private key of the client certificate
    #[arg(long, value_name = "FILE", requires = "cert_file")]
    pub key_file: Option<PathBuf>,
    /// User name for basic authentication. The password is in --password-file or in the variable NFSCOPE_PASSWORD
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
