//! `nfscope agent`: binds its addresses, attaches the probes, serves, reloads and stops.

pub mod config;
pub mod replay;

use crate::agent::config::{Settings, changes};
use anyhow::Context;
use nfscope_api::probe_change;
use nfscope_baseline::store;
use nfscope_model::ProbeState;
use nfscope_model::status::{Status, group};
use nfscope_serve::endpoints;
use nfscope_serve::http::{self, Configuration, WebConfig};
use nfscope_serve::names::{Names, Site};
use nfscope_serve::service::answers::Answers;
use nfscope_serve::service::archive::Archive;
use nfscope_serve::service::http_process::HttpProcess;
use nfscope_serve::service::recordings::Recordings;
use nfscope_serve::service::source_thread::{SOURCE_ENDED, SourceHandle};
use nfscope_serve::service::{control, limits, notify};
use nfscope_source::Source;
use nfscope_source::{host_table, privileges};
use nfscope_text::console::{self, say, warn};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs the agent until SIGTERM or SIGINT. On SIGHUP, `reread` returns the new settings. `start` creates the source on a thread of its own,
/// because attaching takes seconds, and signals are handled meanwhile.
///
/// # Errors
/// When an address cannot be bound, or nothing can be measured.
pub fn run(
    settings: Settings,
    reread: impl Fn() -> Result<Settings, config::Error> + Send + Sync + 'static,
    start: impl FnOnce() -> anyhow::Result<Box<dyn Source>> + Send + 'static,
) -> anyhow::Result<()> {
    console::configure(settings.log_level, settings.log_json);
    limits::require()?;
    // Addresses are bound first: a second agent fails before it changes anything in the kernel.
    let listeners = listeners(&settings)?;
    let addresses: Vec<SocketAddr> = (listeners.iter())
        .map(TcpListener::local_addr)
        .collect::<Result<_, _>>()?;
    let ports: Vec<_> = addresses.iter().map(SocketAddr::port).collect();
    let asked = control::listen(&probe_change::directory(), &ports);

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // Signal handlers exist before the probe thread does, so that a signal during attach is handled.
    let (mut term, mut int, hangup) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        )
    };

    // The HTTP process starts while this thread still has the capability to change users.
    let http = HttpProcess::prepare(listeners)?;
    let (confined, go) = mpsc::channel::<()>();
    let late_attach = settings.source.late_attach;
    let begun = Instant::now();
    let (source, started) = SourceHandle::spawn(move || {
        // Capabilities belong to a thread. All others have dropped theirs before `go` is sent. An error means that the main thread has
        // ended.
        go.recv()?;
        let source = start()?;
        say(&privileges::confine(
            late_attach,
            privileges::may_read_maps,
        )?);
        Ok(source)
    })
    .context("cannot start the thread that owns the probes")?;
    // The main thread opens no more kernel files and loads no programs, so it needs no capability.
    privileges::drop_all().context("cannot drop the capabilities of the main thread")?;
    let reread = Arc::new(reread);
    let web = readable(&settings, &*reread)?;
    // Threads for names start after the drop of capabilities, and therefore have none.
    let names = names(&settings)?;
    source.name(names.clone())?;
    if let Some(archive) = (ports.first()).and_then(|port| archive(&settings, *port, names)) {
        source.keep_history(archive)?;
    }
    let recordings = settings
        .replay
        .clone()
        .unwrap_or_else(|| store::DEFAULT.into());
    source.show_recordings(Recordings::of(recordings));
    http.set(configuration(&settings, &web, own_hosts(), &http)?);
    confined.send(()).context(SOURCE_ENDED)?;

    let end = runtime.block_on(async {
        let source = Arc::new(source);
        let answers = Answers::new(source.clone(), &endpoints::ALL);
        let protection = Protection::of(&web);
        tokio::select! {
            _ = term.recv() => stopping("SIGTERM"),
            _ = int.recv() => stopping("SIGINT"),
            end = http.serve(&answers) => { end?; }
            end = control::serve(asked, source.clone()) => { end?; }
            end = reload(hangup, (settings, protection), reread, &source, &http) => { end?; }
            end = notify::watchdog(&source) => { end?; }
            end = async {
                // A source thread that ends without an error has panicked, and printed the reason.
                started.await.context(SOURCE_ENDED)??;
                announce(&addresses, protection);
                notify::ready();
                report(source.watch(), begun).await
            } => end?,
        }
        Ok(())
    });
    // Threads that wait for a disk or a path are not joined; they end with the process.
    runtime.shutdown_background();
    end
}

fn stopping(signal: &str) {
    say(&format!("stopping on {signal}"));
    notify::stopping();
}

/// Names of clients and users; none for a recording, whose addresses belong to another site.
fn names(settings: &Settings) -> anyhow::Result<Names> {
    if settings.replay.is_some() {
        return Ok(Names::default());
    }
    let site = settings.names.file.as_deref().map(Site::read);
    let site = site.transpose()?.unwrap_or_default();
    Ok(Names::start(settings.names.clone(), site))
}

/// History on the disk, for a page that looks back further than 15 minutes; `None` if it is switched off or cannot be opened.
fn archive(settings: &Settings, port: u16, names: Names) -> Option<Archive> {
    let by_systemd = || {
        let directories = std::env::var_os("STATE_DIRECTORY")?;
        std::env::split_paths(&directories).next()
    };
    let directory = settings.history_directory.clone().or_else(by_systemd)?;
    if settings.history.is_zero() {
        return None;
    }
    Archive::open(&directory, port, settings.history, names)
        .inspect_err(|e| warn(&format!("there is no history on the disk: {e:#}")))
        .ok()
}

/// Names of this host: its host name, and its names in /etc/hosts.
pub(super) fn own_hosts() -> Vec<String> {
    let names = host_table::read("/etc/hosts").unwrap_or_default();
    http::of_this_host(&nfscope_source::hostname::own_name(), &names)
}

/// Configuration of the HTTP process, as JSON.
pub(super) fn configuration(
    settings: &Settings,
    web: &WebConfig,
    own_hosts: Vec<String>,
    process: &HttpProcess,
) -> anyhow::Result<Vec<u8>> {
    let configuration = Configuration {
        web: web.contents().clone(),
        allow_details: settings.allow_details,
        allow_file_names: settings.allow_file_names,
        hosts: {
            let mut hosts = own_hosts;
            hosts.extend(settings.allowed_hosts.iter().cloned());
            hosts
        },
        log_level: settings.log_level.word().to_owned(),
        log_json: settings.log_json,
        who: process.who().to_owned(),
        sandbox: settings.sandbox,
    };
    Ok(configuration.encode()?)
}

fn web_config(settings: &Settings) -> anyhow::Result<WebConfig> {
    let path = settings.web_config.as_deref();
    path.map_or_else(|| Ok(WebConfig::default()), WebConfig::load)
}

/// Reads the settings and the web configuration once without capabilities, as SIGHUP does. An unreadable file fails at the start, not at
/// the first reload.
fn readable(
    settings: &Settings,
    reread: impl Fn() -> Result<Settings, config::Error>,
) -> anyhow::Result<WebConfig> {
    let web = reread()
        .map_err(Into::into)
        .and_then(|_| web_config(settings));
    web.map_err(|e| match is_denied(&e) {
        true => {
            e.context("a file cannot be read without capabilities, which the agent has dropped")
        }
        false => e,
    })
}

fn is_denied(error: &anyhow::Error) -> bool {
    let denied = |e: &std::io::Error| e.kind() == ErrorKind::PermissionDenied;
    error
        .chain()
        .any(|cause| match cause.downcast_ref::<config::Error>() {
            Some(config::Error::Unreadable { why, .. }) => denied(why),
            _ => cause.downcast_ref::<std::io::Error>().is_some_and(denied),
        })
}

/// Prints the URLs that are served, and warnings about clients that are not kept out.
fn announce(addresses: &[SocketAddr], now: Protection) {
    let scheme = if now.encrypts { "https" } else { "http" };
    for address in addresses {
        say(&format!("serving {scheme}://{address}/metrics"));
    }
    for line in exposed(addresses, now) {
        warn(&line);
    }
}

/// Protection that a web configuration provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Protection {
    encrypts: bool,
    authenticates: bool,
    has_passwords: bool,
    has_certificates: bool,
}

impl Protection {
    fn of(web: &WebConfig) -> Protection {
        Protection {
            encrypts: web.encrypts(),
            authenticates: web.authenticates(),
            has_passwords: web.has_passwords(),
            has_certificates: web.has_certificates(),
        }
    }

    /// Kinds of protection that `before` has and this one lacks.
    fn lost(self, before: Protection) -> Vec<&'static str> {
        [
            (before.encrypts && !self.encrypts, "TLS"),
            (before.has_passwords && !self.has_passwords, "its passwords"),
            (
                before.has_certificates && !self.has_certificates,
                "the certificates of clients",
            ),
        ]
        .into_iter()
        .filter_map(|(lost, what)| lost.then_some(what))
        .collect()
    }

    fn bares_passwords(self) -> bool {
        self.has_passwords && !self.encrypts
    }
}

/// Web configuration that removes protection, and the time of its SIGHUP. A file that is half written looks like this, so that such a
/// configuration must be confirmed.
#[derive(Debug, Default)]
struct Refused(Option<(Vec<u8>, Instant)>);

/// Time in which a second SIGHUP confirms a configuration that removes protection.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(300);

impl Refused {
    /// Reason to refuse a configuration that removes protection; `None` if it may take effect.
    fn reason(&mut self, before: Protection, now: Protection, contents: Vec<u8>) -> Option<String> {
        let lost = now.lost(before);
        if lost.is_empty() {
            self.0 = None;
            return None;
        }
        let asked = self.0.take();
        if asked.is_some_and(|(same, at)| same == contents && at.elapsed() < CONFIRMED_WITHIN) {
            return None;
        }
        self.0 = Some((contents, Instant::now()));
        Some(format!(
            "the web configuration has lost {}; if that is meant, send SIGHUP once more within {} minutes, or set [web] allow_open \
             (--web.allow-open)",
            lost.join(" and "),
            CONFIRMED_WITHIN.as_secs() / 60
        ))
    }
}

const BARE_PASSWORDS: &str =
    "passwords are sent without encryption; tls_server_config of the web configuration encrypts";

/// Warnings at the start about a configuration that an admin may not have intended.
fn exposed(addresses: &[SocketAddr], now: Protection) -> Vec<String> {
    let mut all = Vec::new();
    if now.bares_passwords() {
        all.push(BARE_PASSWORDS.to_owned());
    }
    let elsewhere = |a: &&SocketAddr| !a.ip().to_canonical().is_loopback();
    for address in addresses.iter().filter(elsewhere) {
        if !now.authenticates {
            all.push(format!(
                "everybody who can connect to {address} may read; passwords or certificates of clients in a web configuration \
                 prevent that"
            ));
        }
    }
    all
}

/// Warnings about protection that a reload removed.
fn loosened(before: Protection, now: Protection) -> Vec<&'static str> {
    [
        (
            before.encrypts && !now.encrypts,
            "connections are no longer encrypted",
        ),
        (
            before.authenticates && !now.authenticates,
            "everybody who can connect may read now",
        ),
        (
            !before.bares_passwords() && now.bares_passwords(),
            BARE_PASSWORDS,
        ),
    ]
    .into_iter()
    .filter_map(|(true_now, line)| true_now.then_some(line))
    .collect()
}

fn listeners(settings: &Settings) -> anyhow::Result<Vec<TcpListener>> {
    if settings.systemd_socket {
        return http::from_systemd();
    }
    (settings.listen_addresses.iter())
        .map(|address| http::listen(address))
        .collect()
}

/// Reloads the settings on each SIGHUP, and prints the result. An error changes nothing.
async fn reload(
    mut hangup: Signal,
    (mut running, mut protection): (Settings, Protection),
    reread: Arc<impl Fn() -> Result<Settings, config::Error> + Send + Sync + 'static>,
    source: &SourceHandle,
    http: &HttpProcess,
) -> anyhow::Result<Infallible> {
    let mut refused = Refused::default();
    while hangup.recv().await.is_some() {
        // The end of a reload would tell systemd that the agent is ready, which it is not while it attaches.
        let _told = (source.status() != Status::Attaching).then(notify::reloading);
        let reread = reread.clone();
        // A thread of its own reads them: a path may hang, and scrapes and signals must not wait.
        let all = limits::on_a_thread("settings", move || {
            let now = reread()?;
            let web = web_config(&now)?;
            Ok::<_, anyhow::Error>((now, web, own_hosts()))
        });
        let all = all.await.context("cannot read them").and_then(|all| all);
        let (now, web, own_hosts) = match all {
            Ok(all) => all,
            Err(e) => {
                warn(&format!("SIGHUP: the old settings stay in effect: {e:#}"));
                continue;
            }
        };
        let next = Protection::of(&web);
        let contents = serde_json::to_vec(web.contents())?;
        if !now.allow_open
            && let Some(why) = refused.reason(protection, next, contents)
        {
            warn(&format!("SIGHUP: the old settings stay in effect: {why}"));
            continue;
        }
        let changes = changes(&running, &now);
        // Certificates may be new although their path is not.
        if let Some(path) = &now.web_config {
            say(&format!("SIGHUP: {} is read again", path.display()));
        }
        running.web_config.clone_from(&now.web_config);
        running.allow_details = now.allow_details;
        running.allow_file_names = now.allow_file_names;
        running.allowed_hosts.clone_from(&now.allowed_hosts);
        (running.log_level, running.log_json) = (now.log_level, now.log_json);
        let before = std::mem::replace(&mut protection, next);
        if !http
            .configure(configuration(&running, &web, own_hosts, http)?)
            .await
        {
            warn(
                "SIGHUP: the process that serves HTTP does not answer; it gets these settings when it is started again",
            );
        }
        for line in loosened(before, protection) {
            warn(&format!("SIGHUP: {line}"));
        }
        if changes.applied.is_empty() && changes.waiting.is_empty() {
            say("SIGHUP: no setting has changed");
        }
        let limits = (now.source.max_clients, now.source.max_exports);
        (running.source.max_clients, running.source.max_exports) = limits;
        source.limit_series(limits.0, limits.1)?;
        // Printed before the log level changes: an admin who asks for less output sees that it was applied.
        for change in changes.applied {
            say(&format!("SIGHUP: now {change}"));
        }
        for change in changes.waiting {
            say(&format!(
                "SIGHUP: {change} takes effect after a restart of the agent"
            ));
        }
        console::configure(running.log_level, running.log_json);
    }
    anyhow::bail!("no more signals can be received")
}

/// Prints the result of attaching, and then every change of a probe's state.
async fn report(
    mut status: tokio::sync::watch::Receiver<Status>,
    begun: Instant,
) -> anyhow::Result<()> {
    let mut known: BTreeMap<(String, String), ProbeState> = BTreeMap::new();
    let (mut healthy, mut first) = (None, true);
    loop {
        let now = status.borrow_and_update().clone();
        let changed = now.probes().iter().filter(|p| {
            let old = known.insert((p.probe.clone(), p.program.clone()), p.state);
            use ProbeState::{Attached, Unused};
            let plain = first && matches!(p.state, Attached | Unused);
            old != Some(p.state) && !plain
        });
        for g in group(changed) {
            say(&g.to_string());
        }
        if first {
            say(&format!(
                "attached {} of {} probe programs in {} ms",
                now.probes().iter().filter(|p| p.state.measures()).count(),
                now.probes().len(),
                begun.elapsed().as_millis()
            ));
            first = false;
        }
        let health = now.health();
        if healthy != Some(health.is_ok()) {
            healthy = Some(health.is_ok());
            match health {
                Ok(()) => {
                    say(now.measures());
                    notify::status(now.measures());
                }
                Err(why) => {
                    warn(&why);
                    notify::status(&why);
                }
            }
        }
        status.changed().await.context(SOURCE_ENDED)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Protection = Protection {
        encrypts: false,
        authenticates: false,
        has_passwords: false,
        has_certificates: false,
    };
    const CLOSED: Protection = Protection {
        encrypts: true,
        authenticates: true,
        has_passwords: true,
        has_certificates: false,
    };
    const BARE: Protection = Protection {
        encrypts: false,
        ..CLOSED
    };

    #[test]
    fn who_is_not_kept_out_is_said_at_the_start() {
        let all = ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "[::]:1"];
        let addresses = all.map(|a| a.parse().unwrap());
        let said = exposed(&addresses, OPEN);
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("everybody who can connect to [::]:1 may read;"));
        assert!(exposed(&addresses[..3], OPEN).is_empty());
        assert!(exposed(&addresses, CLOSED).is_empty());
        assert_eq!(exposed(&addresses, BARE), [BARE_PASSWORDS]);
    }

    #[test]
    fn what_opens_is_refused_once_and_confirmed_by_the_same_once_more() {
        let mut refused = Refused::default();
        assert_eq!(refused.reason(OPEN, CLOSED, b"a".to_vec()), None);
        let why = refused.reason(CLOSED, OPEN, b"{}".to_vec()).unwrap();
        assert!(why.contains("has lost TLS and its passwords;"), "{why}");
        assert!(refused.reason(CLOSED, OPEN, b"other".to_vec()).is_some());
        assert!(refused.reason(CLOSED, OPEN, b"{}".to_vec()).is_some());
        assert_eq!(refused.reason(CLOSED, OPEN, b"{}".to_vec()), None);
        assert!(refused.reason(CLOSED, BARE, b"{}".to_vec()).is_some());
        // A configuration with full protection cancels the pending confirmation.
        assert_eq!(refused.reason(CLOSED, CLOSED, b"a".to_vec()), None);
        assert!(refused.reason(CLOSED, BARE, b"{}".to_vec()).is_some());
        let certificates = Protection {
            has_certificates: true,
            ..CLOSED
        };
        let why = refused.reason(certificates, CLOSED, b"a".to_vec()).unwrap();
        assert!(
            why.contains("has lost the certificates of clients;"),
            "{why}"
        );
    }

    #[test]
    fn a_change_that_opens_is_said() {
        assert!(loosened(OPEN, CLOSED).is_empty());
        assert!(loosened(BARE, BARE).is_empty());
        assert_eq!(loosened(CLOSED, OPEN).len(), 2);
        assert_eq!(
            loosened(CLOSED, BARE),
            ["connections are no longer encrypted", BARE_PASSWORDS]
        );
        assert_eq!(
            loosened(BARE, OPEN),
            ["everybody who can connect may read now"]
        );
    }
}
