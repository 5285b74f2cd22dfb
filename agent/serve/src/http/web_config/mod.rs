//! The web configuration file, in the form that Prometheus' exporter-toolkit defines for all exporters: TLS, certificates of
//! clients, passwords and headers.

mod any_certificate;
mod rate_limit;
mod tls;
mod yaml;

use super::basic_auth::Users;
use anyhow::{Context, bail, ensure};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use nfscope_source::bounded;
pub use rate_limit::RateLimit;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
pub(super) use tls::Tls;

/// Names of headers that the file may set.
const HEADERS: [&str; 5] = [
    "Content-Security-Policy",
    "X-Frame-Options",
    "X-Content-Type-Options",
    "X-XSS-Protection",
    "Strict-Transport-Security",
];

/// Contents of the file. After reading, it has the contents of the files that it names, in place of their names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Contents {
    tls_server_config: Option<tls::Section>,
    http_server_config: HttpSection,
    basic_auth_users: BTreeMap<String, String>,
    rate_limit: Option<rate_limit::Section>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HttpSection {
    /// Both values are accepted; HTTP/1.1 is served in either case.
    #[serde(rename = "http2")]
    _http2: Option<bool>,
    headers: BTreeMap<String, String>,
}

/// Rules for peers. Without a file: plain HTTP, open to every peer that can connect.
#[derive(Debug, Default)]
pub struct WebConfig {
    pub(super) tls: Option<Tls>,
    pub(super) users: Option<Users>,
    pub(super) headers: HeaderMap,
    pub(super) rate_limit: Option<RateLimit>,
    /// True if every peer that can connect may read answers that name files and clients.
    pub allow_details: bool,
    /// True if peers of other hosts that may read these may read answers that name users and their files, too.
    pub allow_file_names: bool,
    /// Host names that a request over loopback may have.
    pub hosts: Vec<String>,
    contents: Contents,
}

impl WebConfig {
    /// Reads the file, and the certificates that it names beside itself.
    ///
    /// # Errors
    /// With the file and the key that is wrong.
    pub fn load(path: &Path) -> anyhow::Result<WebConfig> {
        let read = || {
            let text = bounded::read_text(path, tls::MOST)?;
            WebConfig::of(&text, path.parent().unwrap_or(Path::new("")))
        };
        read().with_context(|| format!("web configuration {}", path.display()))
    }

    fn of(text: &str, beside: &Path) -> anyhow::Result<WebConfig> {
        let value = yaml::value(text)?;
        nothing_is_empty(&value)?;
        let mut contents: Contents = serde_json::from_value(value)?;
        if let Some(section) = &mut contents.tls_server_config {
            section.read(beside).context("tls_server_config")?;
        }
        WebConfig::new(contents)
    }

    /// Builds the configuration from contents that have been read. No file is read.
    ///
    /// # Errors
    /// With the key that is wrong.
    pub fn new(contents: Contents) -> anyhow::Result<WebConfig> {
        let users = &contents.basic_auth_users;
        Ok(WebConfig {
            tls: (contents.tls_server_config.as_ref())
                .map(|section| Tls::new(section).context("tls_server_config"))
                .transpose()?,
            users: (!users.is_empty())
                .then(|| Users::new(users.clone()).context("basic_auth_users"))
                .transpose()?,
            rate_limit: (contents.rate_limit.as_ref())
                .map(|section| RateLimit::new(section).context("rate_limit"))
                .transpose()?,
            headers: headers(&contents.http_server_config.headers).context("http_server_config")?,
            allow_details: false,
            allow_file_names: false,
            hosts: Vec::new(),
            contents,
        })
    }

    /// Contents of the file.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Returns true if passwords or certificates of clients keep strangers out.
    pub fn authenticates(&self) -> bool {
        self.users.is_some() || self.tls.as_ref().is_some_and(Tls::authenticates)
    }

    /// Returns true if clients show certificates that are verified.
    pub fn has_certificates(&self) -> bool {
        self.tls.as_ref().is_some_and(Tls::authenticates)
    }

    /// Returns true if connections are encrypted.
    pub fn encrypts(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns true if clients send passwords.
    pub fn has_passwords(&self) -> bool {
        self.users.is_some()
    }

    /// Replaces another configuration, and keeps what that one knows about the passwords of its users.
    pub(super) fn succeed(&mut self, old: &WebConfig) {
        if let (Some(new), Some(old)) = (&mut self.users, &old.users) {
            new.succeed(old);
        }
    }
}

/// Refuses a file or a section without content, which it may have lost: it must not open the agent to every peer.
fn nothing_is_empty(value: &Value) -> anyhow::Result<()> {
    ensure!(
        !value.is_null(),
        "the file is empty; write {{}} for no TLS and no passwords"
    );
    for (section, without) in [
        ("tls_server_config", "TLS"),
        ("basic_auth_users", "passwords"),
    ] {
        ensure!(
            value.get(section) != Some(&Value::Null),
            "{section} is empty; remove the line for no {without}"
        );
    }
    Ok(())
}

fn headers(given: &BTreeMap<String, String>) -> anyhow::Result<HeaderMap> {
    let mut out = HeaderMap::new();
    for (name, value) in given.iter().filter(|(_, value)| !value.is_empty()) {
        if !HEADERS.contains(&name.as_str()) {
            bail!(
                "headers: `{name}` cannot be set; known are {}",
                HEADERS.join(", ")
            );
        }
        let value = HeaderValue::from_str(value).with_context(|| format!("headers: {name}"))?;
        out.insert(HeaderName::try_from(name)?, value);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "$2y$04$5SsxgLv9vKCVd9Fa2oRRSOuiQ7C0lCDHcQxVAPIYjyKzv5zNuwhXW";

    fn load(text: &str) -> anyhow::Result<WebConfig> {
        WebConfig::of(text, Path::new("/nonexistent"))
    }

    #[test]
    fn nothing_is_asked_where_nothing_is_said() {
        for text in [
            "{}",
            "# only a comment beside it\n{}\n",
            "http_server_config:\n  http2: false\n",
        ] {
            let web = load(text).unwrap();
            assert!(!web.authenticates() && !web.encrypts(), "{text}");
        }
    }

    #[test]
    fn users_and_headers() {
        let web = load(&format!(
            "basic_auth_users:\n  alice: {HASH}\nhttp_server_config:\n  headers:\n    X-Frame-Options: deny\n    \
             Content-Security-Policy: ''\n"
        ))
        .unwrap();
        assert!(web.authenticates() && !web.encrypts());
        assert_eq!(web.headers["X-Frame-Options"], "deny");
        assert_eq!(web.headers.len(), 1);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            (
                "",
                "the file is empty; write {} for no TLS and no passwords",
            ),
            ("# only a comment\n", "the file is empty; write {}"),
            ("~", "the file is empty; write {}"),
            (
                "tls_server_config:\nbasic_auth_users: {}\n",
                "tls_server_config is empty; remove the line for no TLS",
            ),
            (
                "basic_auth_users:\n",
                "basic_auth_users is empty; remove the line for no passwords",
            ),
            ("basic_auth_usrs: {}", "unknown field `basic_auth_usrs`"),
            (
                "basic_auth_users: {a: secret}",
                "basic_auth_users: a: not a bcrypt hash",
            ),
            ("basic_auth_users: [a]", "invalid type: sequence"),
            (
                "http_server_config: {headers: {Server: x}}",
                "`Server` cannot be set",
            ),
            (
                "rate_limit: {interval: 1s}",
                "rate_limit: burst: give the requests",
            ),
            (
                "rate_limit: {interval: often, burst: 9}",
                "rate_limit: interval: `often`: give a duration",
            ),
            (
                "tls_server_config: {}",
                "tls_server_config: cert_file or cert is missing",
            ),
            (
                "tls_server_config: {cert_file: c, cert: x, key_file: k}",
                "both cert and cert_file are given",
            ),
            (
                "tls_server_config: {cert_file: server.crt, key_file: k}",
                "/nonexistent/server.crt",
            ),
            (
                "tls_server_config: {cert: x, key: y}",
                "key: no private key in it",
            ),
            ("a: b: c", "line 1"),
            ("a: 1\n---\nb: 2\n", "more than one document"),
        ] {
            let why = format!("{:#}", load(text).unwrap_err());
            assert!(why.contains(message), "{text}: {why}");
        }
    }
}
