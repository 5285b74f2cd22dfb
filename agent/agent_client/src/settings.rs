//! `client.toml`: default URLs of agents and a Prometheus, and the access to them.

use super::access::Access;
use anyhow::Context;
use nfscope_api::address::{self, Whom};
use nfscope_api::fingerprint::Fingerprint;
use nfscope_text::console::warn;
use serde::Deserialize;
use std::env::var_os;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// File for all users.
const OF_THE_HOST: &str = "/etc/nfscope/client.toml";
/// File of one user, below the user's directory for settings.
const OF_A_USER: &str = "nfscope/client.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    agent: Option<Section>,
    prometheus: Option<Section>,
}

/// Access to an agent or a Prometheus. Paths are relative to the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    /// URL of the agent or Prometheus that commands without a URL ask.
    url: Option<String>,
    /// Other hosts for which the access holds as well.
    #[serde(default)]
    hosts: Vec<String>,
    ca_file: Option<PathBuf>,
    fingerprint: Option<Fingerprint>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    user: Option<String>,
    password_file: Option<PathBuf>,
}

/// Completes a command line from the user's file, or from this host's if there is none. It completes the URLs, too: `also` is the URL of
/// another agent that is asked with the same access.
///
/// # Errors
/// When the file cannot be read or has an error, and when it is not known whether a password would be encrypted.
pub fn complete(
    whom: Whom,
    url: &mut Option<String>,
    mut also: Option<&mut String>,
    access: &mut Access,
) -> anyhow::Result<()> {
    add(whom, url, also.as_deref_mut(), access)?;
    // URLs that the file has completed stay unchanged.
    for url in url.iter_mut().chain(also) {
        *url = access.complete(url, whom)?;
    }
    Ok(())
}

fn add(
    whom: Whom,
    url: &mut Option<String>,
    also: Option<&mut String>,
    access: &mut Access,
) -> anyhow::Result<()> {
    for path in places() {
        match std::fs::read_to_string(&path) {
            Ok(text) => return from(&path, &text, whom, url, also, access),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            // The file belongs to another user, whose home a program such as setpriv has left in HOME. A denied file of the host is an
            // error, because it is for all users.
            Err(e) if e.kind() == ErrorKind::PermissionDenied && path != Path::new(OF_THE_HOST) => {
                warn(&format!("settings {} are left out: {e}", path.display()));
            }
            Err(e) => {
                return Err(e).with_context(|| format!("cannot read settings {}", path.display()));
            }
        }
    }
    Ok(())
}

/// Places of the file, the first one to read first.
fn places() -> impl Iterator<Item = PathBuf> {
    let given = |name| var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let user = given("XDG_CONFIG_HOME").or_else(|| Some(given("HOME")?.join(".config")));
    let user = user.map(|dir| dir.join(OF_A_USER));
    user.into_iter().chain([OF_THE_HOST.into()])
}

fn from(
    path: &Path,
    text: &str,
    whom: Whom,
    url: &mut Option<String>,
    mut also: Option<&mut String>,
    access: &mut Access,
) -> anyhow::Result<()> {
    let settings: Settings = toml::from_str(text).with_context(|| path.display().to_string())?;
    let (name, section) = match whom {
        Whom::Agent => ("agent", settings.agent),
        Whom::Prometheus => ("prometheus", settings.prometheus),
    };
    let Some(section) = section else {
        return Ok(());
    };
    let wrong = |why: &str| anyhow::anyhow!("{}: [{name}]: {why}", path.display());
    if section.cert_file.is_some() != section.key_file.is_some() {
        return Err(wrong("cert_file and key_file need each other"));
    }
    if section.ca_file.is_some() && section.fingerprint.is_some() {
        return Err(wrong("give either ca_file or fingerprint"));
    }
    if section.password_file.is_some() && section.user.is_none() {
        return Err(wrong("password_file needs user"));
    }
    if section.url.is_none() && section.hosts.is_empty() {
        return Err(wrong("name whom it is about, as url or in hosts"));
    }
    if let Some(own) = &section.url {
        address::parse(own, "").ok_or_else(|| wrong(&address::BadUrl(own.clone()).to_string()))?;
    }
    for given in url.iter_mut().chain(also.as_deref_mut()) {
        *given = section.completed(given, whom, access)?;
    }
    let asked = match (&url, &section.url, whom) {
        (None, Some(own), _) => url.insert(own.clone()).clone(),
        (None, None, Whom::Agent) => address::default_url(),
        (None, None, Whom::Prometheus) => return Ok(()),
        (Some(given), _, _) => given.clone(),
    };
    if section.holds_for(&asked) && also.is_none_or(|also| section.holds_for(also)) {
        section.add_to(access, path.parent().unwrap_or(Path::new("/")));
    }
    Ok(())
}

impl Section {
    /// Completes a URL as it was typed. The section says whether a host that it names speaks TLS.
    fn completed(&self, typed: &str, whom: Whom, access: &Access) -> anyhow::Result<String> {
        if access.means_tls() || typed.contains("://") {
            return access.complete(typed, whom);
        }
        let own = self.url.as_deref().and_then(|own| address::parse(own, ""));
        let encrypted = own.as_ref().is_none_or(|own| own.encrypted);
        if let (Some(own), Some(url)) = (&own, &self.url)
            && own.name().eq_ignore_ascii_case(typed)
        {
            return Ok(url.clone());
        }
        let url = address::complete(typed, whom, encrypted);
        match self.holds_for(&url) {
            true => Ok(url),
            false => access.complete(typed, whom),
        }
    }

    /// Returns true if the section's access is for this host. A password and a certificate are for those hosts alone that the section
    /// names. They go to no host without TLS unless the section's URL has none.
    fn holds_for(&self, asked: &str) -> bool {
        let Some(asked) = address::parse(asked, "") else {
            return false;
        };
        let own = self.url.as_deref().and_then(|own| address::parse(own, ""));
        let encrypted = own.as_ref().is_none_or(|own| own.encrypted);
        let named = own.is_some_and(|own| own.address.eq_ignore_ascii_case(&asked.address))
            || self.hosts.iter().any(|host| is_named(host, asked.name()));
        named && (asked.encrypted || !encrypted)
    }

    fn add_to(self, access: &mut Access, beside: &Path) {
        let at = |file: PathBuf| beside.join(file);
        // The command line gives one of the two options, and the file must not add the other one.
        if access.ca_file.is_none() && access.fingerprint.is_none() {
            access.ca_file = self.ca_file.map(at);
            access.fingerprint = self.fingerprint;
        }
        let certificate = self.cert_file.map(at).zip(self.key_file.map(at));
        access.certificate = access.certificate.take().or(certificate);
        // A password belongs to its user: it is added only together with the user.
        if access.user.is_none() {
            access.user = self.user;
            access.password_file = self.password_file.map(at);
        } else if access.user == self.user && access.password_file.is_none() {
            access.password_file = self.password_file.map(at);
        }
    }
}

/// Matches a host with a pattern; `*` at the front stands for any text.
fn is_named(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.to_ascii_lowercase());
    match pattern.strip_prefix('*') {
        Some(end) => host.ends_with(end),
        None => host == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[agent]\nurl = \"https://nfs1:9943\"\nhosts = [\"*.example\"]\nca_file = \"ca.crt\"\nuser = \"alice\"\n\
                        password_file = \"/run/secret\"\n";

    fn of(
        text: &str,
        url: Option<&str>,
        access: Access,
    ) -> Result<(Option<String>, Access), String> {
        let (mut url, mut access) = (url.map(str::to_owned), access);
        let path = Path::new("/etc/nfscope/client.toml");
        from(path, text, Whom::Agent, &mut url, None, &mut access).map_err(|e| format!("{e:#}"))?;
        Ok((url, access))
    }

    #[test]
    fn a_section_says_whether_a_short_url_means_tls() {
        for (typed, url, named) in [
            ("nfs1", "https://nfs1:9943", true),
            ("NFS1", "https://nfs1:9943", true),
            ("nfs1:9943", "https://nfs1:9943", true),
            ("nfs1/prefix", "https://nfs1:9943/prefix", true),
            ("a.example", "https://a.example:9943", true),
            ("a.example:80", "https://a.example:80", true),
            ("nfs2", "http://nfs2:9943", false),
            ("nfs1:80", "http://nfs1:80", false),
            ("http://nfs1:9943", "http://nfs1:9943", false),
        ] {
            let (asked, access) = of(FILE, Some(typed), Access::default()).unwrap();
            assert_eq!(asked.as_deref(), Some(url), "{typed}");
            assert_eq!(access.user.is_some(), named, "{typed}");
        }
        let plain = "[agent]\nurl = \"http://nfs1:9943\"\nuser = \"alice\"\n";
        let (asked, access) = of(plain, Some("nfs1"), Access::default()).unwrap();
        assert_eq!(asked.as_deref(), Some("http://nfs1:9943"));
        assert!(access.user.is_some());
        let other_port = "[agent]\nurl = \"https://nfs1\"\nuser = \"alice\"\n";
        let (asked, _) = of(other_port, Some("nfs1"), Access::default()).unwrap();
        assert_eq!(asked.as_deref(), Some("https://nfs1"));
        let alice = Access {
            user: Some("alice".to_owned()),
            ..Access::default()
        };
        let (asked, _) = of(FILE, Some("nfs1"), alice.clone()).unwrap();
        assert_eq!(asked.as_deref(), Some("https://nfs1:9943"));
        let e = of(FILE, Some("nfs2"), alice).unwrap_err();
        assert!(e.contains("say how the password is sent"), "{e}");
    }

    #[test]
    fn a_second_agent_is_completed_likewise_and_has_no_secret_of_others() {
        let with = |server: &str| {
            let (mut url, mut also) = (None, server.to_owned());
            let mut access = Access::default();
            let path = Path::new("/etc/nfscope/client.toml");
            from(
                path,
                FILE,
                Whom::Agent,
                &mut url,
                Some(&mut also),
                &mut access,
            )
            .unwrap();
            (also, access.user.is_some())
        };
        assert_eq!(with("nfs1"), ("https://nfs1:9943".to_owned(), true));
        assert_eq!(
            with("a.example"),
            ("https://a.example:9943".to_owned(), true)
        );
        assert_eq!(with("nfs2"), ("http://nfs2:9943".to_owned(), false));
    }

    #[test]
    fn its_url_is_asked_where_none_is_given_and_its_secrets_go_to_the_hosts_that_it_names() {
        let (url, access) = of(FILE, None, Access::default()).unwrap();
        assert_eq!(url.as_deref(), Some("https://nfs1:9943"));
        assert_eq!(access.ca_file, Some("/etc/nfscope/ca.crt".into()));
        assert_eq!(access.user.as_deref(), Some("alice"));
        assert_eq!(access.password_file, Some("/run/secret".into()));
        for (url, named) in [
            ("https://NFS1:9943", true),
            ("https://a.example", true),
            ("https://[::1]", false),
            ("https://nfs1:9944", false),
            ("https://nfs1.example.org", false),
            // Without TLS the password could be read on the network.
            ("http://nfs1:9943", false),
            ("http://a.example", false),
        ] {
            let (asked, access) = of(FILE, Some(url), Access::default()).unwrap();
            assert_eq!(asked.as_deref(), Some(url));
            assert_eq!(access.user.is_some(), named, "{url}");
            assert_eq!(access.ca_file.is_some(), named, "{url}");
        }
        let plain = "[agent]\nurl = \"http://nfs1:9943\"\nuser = \"alice\"\n";
        let (_, access) = of(plain, Some("http://nfs1:9943"), Access::default()).unwrap();
        assert!(access.user.is_some());
        let other = "[prometheus]\nurl = \"http://prometheus:9090\"\n";
        assert_eq!(of(other, None, Access::default()).unwrap().0, None);
    }

    #[test]
    fn the_command_line_comes_first() {
        let given = Access {
            ca_file: Some("mine.crt".into()),
            user: Some("bob".to_owned()),
            ..Access::default()
        };
        let (_, access) = of(FILE, None, given).unwrap();
        assert_eq!(access.ca_file, Some("mine.crt".into()));
        assert_eq!(access.user.as_deref(), Some("bob"));
        // The password of alice is not used for another user.
        assert_eq!(access.password_file, None);
    }

    #[test]
    fn mistakes_name_the_file_and_what_is_wrong() {
        for (text, why) in [
            ("[agnet]\n", "unknown field `agnet`"),
            ("[agent]\nurl = \"nfs1\"\n", "cannot read `nfs1`"),
            (
                "[agent]\nhosts = [\"a\"]\ncert_file = \"c\"\n",
                "need each other",
            ),
            (
                "[agent]\nhosts = [\"a\"]\npassword_file = \"p\"\n",
                "needs user",
            ),
            ("[agent]\nuser = \"alice\"\n", "name whom it is about"),
            ("[agent]\nurl = 3\n", "line 2"),
        ] {
            let e = of(text, None, Access::default()).unwrap_err();
            assert!(
                e.starts_with("/etc/nfscope/client.toml") && e.contains(why),
                "{text}: {e}"
            );
        }
    }
}
