//! Table of the settings of `nfscope agent`. The configuration file, the environment, the reference file and SIGHUP all use it.

use crate::cli::{self, MOST_SERIES};
use nfscope_api::address::DEFAULT_ADDRESS;
use nfscope_serve::http::Sandbox;
use nfscope_serve::names;
use nfscope_source::{MOST_PAIRS, Options};
use nfscope_text::console::Level;
use nfscope_text::parse;
use std::path::PathBuf;
use std::time::Duration;
use toml::de::DeValue;

/// Every setting of `nfscope agent`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `[web] listen_address`
    pub listen_addresses: Vec<String>,
    /// `[web] config_file`
    pub web_config: Option<PathBuf>,
    /// `[web] systemd_socket`
    pub systemd_socket: bool,
    /// `[web] allow_details`
    pub allow_details: bool,
    /// `[web] allow_file_names`
    pub allow_file_names: bool,
    /// `[web] allow_open`
    pub allow_open: bool,
    /// `[web] sandbox`
    pub sandbox: Sandbox,
    /// `[web] allowed_hosts`
    pub allowed_hosts: Vec<String>,
    /// `[probes]` and `[limits]`
    pub source: Options,
    /// `[history] keep`; zero keeps no history on the disk.
    pub history: Duration,
    /// `[history] directory`
    pub history_directory: Option<PathBuf>,
    /// `[names]`
    pub names: names::Options,
    /// Recording that `--replay` serves instead of measurements; command line only.
    pub replay: Option<PathBuf>,
    /// `[log] level`
    pub log_level: Level,
    /// `[log] format`
    pub log_json: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            listen_addresses: vec![DEFAULT_ADDRESS.to_owned()],
            web_config: None,
            systemd_socket: false,
            allow_details: false,
            allow_file_names: false,
            allow_open: false,
            sandbox: Sandbox::Try,
            allowed_hosts: Vec::new(),
            source: Options::default(),
            history: Duration::from_secs(86_400),
            history_directory: None,
            names: names::Options {
                reverse_dns: true,
                file: None,
            },
            replay: None,
            log_level: Level::Info,
            log_json: false,
        }
    }
}

/// Setting: its section, its key, and functions that set and get its value.
pub(super) struct Setting {
    pub(super) section: &'static str,
    pub(super) key: &'static str,
    /// Environment variable.
    pub(super) variable: &'static str,
    /// Flag of the command line.
    pub(super) flag: &'static str,
    /// Description of the key; `None` if the flag's help has it.
    pub(super) about: Option<&'static str>,
    /// True if SIGHUP puts a new value into effect.
    pub(super) reloads: bool,
    /// Sets a value; an error says what it must be.
    pub(super) set: fn(&mut Settings, &DeValue) -> Result<(), &'static str>,
    /// Value as a file has it; empty if there is none.
    pub(super) get: fn(&Settings) -> String,
}

const PATH: &str = "a path in quotes, or no key at all for no web configuration";
const DIRECTORY: &str = "a path in quotes";
const FILE: &str = "a path in quotes";
const TIME: &str = "a time in quotes, such as \"24h\" or \"7d\", at most 7 days, or \"0\" for none";
const TEXTS: &str = "a string in quotes, or several in brackets";
const SWITCH: &str = "true or false";
const SERIES: &str = "a number from 0 to 10000";
const LEVEL: &str = "one of \"debug\", \"info\", \"warn\", \"error\"";
pub(super) const SANDBOX: &str = "one of \"require\", \"try\"";
const FORMAT: &str = "one of \"text\", \"json\"";
const PAIRS: &str = "a number from 64 to 16384";

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        section: "web",
        key: "listen_address",
        variable: "NFSCOPE_WEB_LISTEN_ADDRESS",
        flag: "web.listen-address",
        about: Some("Address to serve on, or several in brackets"),
        reloads: false,
        set: |s, v| {
            s.listen_addresses = texts(v).ok_or(TEXTS)?;
            Ok(())
        },
        get: |s| match &s.listen_addresses[..] {
            [one] => format!("{one:?}"),
            several => format!("{several:?}"),
        },
    },
    Setting {
        section: "web",
        key: "config_file",
        variable: "NFSCOPE_WEB_CONFIG_FILE",
        flag: "web.config.file",
        about: None,
        reloads: true,
        set: |s, v| {
            let path = v.as_str().filter(|path| !path.is_empty()).ok_or(PATH)?;
            s.web_config = Some(path.into());
            Ok(())
        },
        get: |s| (s.web_config.as_ref()).map_or(String::new(), |path| format!("{path:?}")),
    },
    Setting {
        section: "web",
        key: "systemd_socket",
        variable: "NFSCOPE_WEB_SYSTEMD_SOCKET",
        flag: "web.systemd-socket",
        about: None,
        reloads: false,
        set: |s, v| {
            s.systemd_socket = v.as_bool().ok_or(SWITCH)?;
            Ok(())
        },
        get: |s| s.systemd_socket.to_string(),
    },
    Setting {
        section: "web",
        key: "allow_details",
        variable: "NFSCOPE_WEB_ALLOW_DETAILS",
        flag: "web.allow-details",
        about: None,
        reloads: true,
        set: |s, v| {
            s.allow_details = v.as_bool().ok_or(SWITCH)?;
            Ok(())
        },
        get: |s| s.allow_details.to_string(),
    },
    Setting {
        section: "web",
        key: "allow_file_names",
        variable: "NFSCOPE_WEB_ALLOW_FILE_NAMES",
        flag: "web.allow-file-names",
        about: None,
        reloads: true,
        set: |s, v| {
            s.allow_file_names = v.as_bool().ok_or(SWITCH)?;
            Ok(())
        },
        get: |s| s.allow_file_names.to_string(),
    },
    Setting {
        section: "web",
        key: "allow_open",
        variable: "NFSCOPE_WEB_ALLOW_OPEN",
        flag: "web.allow-open",
        about: None,
        reloads: true,
        set: |s, v| {
            s.allow_open = v.as_bool().ok_or(SWITCH)?;
            Ok(())
        },
        get: |s| s.allow_open.to_string(),
    },
    Setting {
        section: "web",
        key: "sandbox",
        variable: "NFSCOPE_WEB_SANDBOX",
        flag: "sandbox",
        about: None,
        reloads: false,
        set: |s, v| {
            s.sandbox = v.as_str().and_then(Sandbox::of).ok_or(SANDBOX)?;
            Ok(())
        },
        get: |s| format!("{:?}", s.sandbox.word()),
    },
    Setting {
        section: "web",
        key: "allowed_hosts",
        variable: "NFSCOPE_WEB_ALLOWED_HOSTS",
        flag: "web.allowed-host",
        about: Some(
            "Names that a request over loopback may have in its Host header, beside localhost, addresses and the names of this host",
        ),
        reloads: true,
        set: |s, v| {
            s.allowed_hosts = match v {
                DeValue::Array(none) if none.is_empty() => Vec::new(),
                some => texts(some).ok_or(TEXTS)?,
            };
            Ok(())
        },
        get: |s| format!("{:?}", s.allowed_hosts),
    },
    Setting {
        section: "probes",
        key: "late_attach",
        variable: "NFSCOPE_PROBES_LATE_ATTACH",
        flag: "no-late-attach",
        about: Some(
            "Keep the privileges to attach again when nfsd or sunrpc is loaded later: four capabilities for as long as the agent runs. \
             With `false` every capability is dropped once the probes are attached, and neither slow operations nor the state \
             that NFSv4 clients hold is reported",
        ),
        reloads: false,
        set: |s, v| {
            s.source.late_attach = v.as_bool().ok_or(SWITCH)?;
            Ok(())
        },
        get: |s| s.source.late_attach.to_string(),
    },
    Setting {
        section: "probes",
        key: "statistics",
        variable: "NFSCOPE_PROBES_STATISTICS",
        flag: "probe-stats",
        about: None,
        reloads: false,
        set: |s, v| {
            s.source.probe_stats = v.as_bool().ok_or(SWITCH)?;
            Ok(())
        },
        get: |s| s.source.probe_stats.to_string(),
    },
    Setting {
        section: "probes",
        key: "phases",
        variable: "NFSCOPE_PROBES_PHASES",
        flag: "no-phases",
        about: Some(
            "Split operations into phases (CPU, run queue, log, disk, lock). With `false` the probe programs that time waits are not \
             attached",
        ),
        reloads: false,
        set: |s, v| {
            s.source.phases = v.as_bool().ok_or(SWITCH)?;
            Ok(())
        },
        get: |s| s.source.phases.to_string(),
    },
    Setting {
        section: "probes",
        key: "client",
        variable: "NFSCOPE_PROBES_CLIENT",
        flag: "client",
        about: None,
        reloads: false,
        set: |s, v| {
            s.source.client = v.as_bool().ok_or(SWITCH)?;
            Ok(())
        },
        get: |s| s.source.client.to_string(),
    },
    Setting {
        section: "limits",
        key: "clients",
        variable: "NFSCOPE_LIMITS_CLIENTS",
        flag: "max-clients",
        about: None,
        reloads: true,
        set: |s, v| {
            s.source.max_clients = series(v).ok_or(SERIES)?;
            Ok(())
        },
        get: |s| s.source.max_clients.to_string(),
    },
    Setting {
        section: "limits",
        key: "exports",
        variable: "NFSCOPE_LIMITS_EXPORTS",
        flag: "max-exports",
        about: None,
        reloads: true,
        set: |s, v| {
            s.source.max_exports = series(v).ok_or(SERIES)?;
            Ok(())
        },
        get: |s| s.source.max_exports.to_string(),
    },
    Setting {
        section: "limits",
        key: "pairs",
        variable: "NFSCOPE_LIMITS_PAIRS",
        flag: "max-pairs",
        about: None,
        reloads: false,
        set: |s, v| {
            s.source.max_pairs = number(v)
                .filter(|n| (64..=MOST_PAIRS).contains(n))
                .ok_or(PAIRS)?;
            Ok(())
        },
        get: |s| s.source.max_pairs.to_string(),
    },
    Setting {
        section: "history",
        key: "keep",
        variable: "NFSCOPE_HISTORY_KEEP",
        flag: "history",
        about: None,
        reloads: false,
        set: |s, v| {
            s.history = v.as_str().and_then(|t| cli::history(t).ok()).ok_or(TIME)?;
            Ok(())
        },
        get: |s| format!("{:?}", parse::exact(s.history)),
    },
    Setting {
        section: "history",
        key: "directory",
        variable: "NFSCOPE_HISTORY_DIRECTORY",
        flag: "history-directory",
        about: None,
        reloads: false,
        set: |s, v| {
            let path = v
                .as_str()
                .filter(|path| !path.is_empty())
                .ok_or(DIRECTORY)?;
            s.history_directory = Some(path.into());
            Ok(())
        },
        get: |s| (s.history_directory.as_ref()).map_or(String::new(), |path| format!("{path:?}")),
    },
    Setting {
        section: "names",
        key: "reverse_dns",
        variable: "NFSCOPE_NAMES_REVERSE_DNS",
        flag: "no-reverse-dns",
        about: Some(
            "Ask the name servers of /etc/resolv.conf for the names of clients. With `false` names come from the file below, from \
             /etc/hosts and from clients of NFSv4 themselves",
        ),
        reloads: false,
        set: |s, v| {
            s.names.reverse_dns = v.as_bool().ok_or(SWITCH)?;
            Ok(())
        },
        get: |s| s.names.reverse_dns.to_string(),
    },
    Setting {
        section: "names",
        key: "file",
        variable: "NFSCOPE_NAMES_FILE",
        flag: "names-file",
        about: None,
        reloads: false,
        set: |s, v| {
            let path = v.as_str().filter(|path| !path.is_empty()).ok_or(FILE)?;
            s.names.file = Some(path.into());
            Ok(())
        },
        get: |s| (s.names.file.as_ref()).map_or(String::new(), |path| format!("{path:?}")),
    },
    Setting {
        section: "log",
        key: "level",
        variable: "NFSCOPE_LOG_LEVEL",
        flag: "log.level",
        about: None,
        reloads: true,
        set: |s, v| {
            s.log_level = v.as_str().and_then(Level::of).ok_or(LEVEL)?;
            Ok(())
        },
        get: |s| format!("{:?}", s.log_level.word()),
    },
    Setting {
        section: "log",
        key: "format",
        variable: "NFSCOPE_LOG_FORMAT",
        flag: "log.format",
        about: None,
        reloads: true,
        set: |s, v| {
            s.log_json = match v.as_str() {
                Some("text") => false,
                Some("json") => true,
                _ => return Err(FORMAT),
            };
            Ok(())
        },
        get: |s| format!("{:?}", if s.log_json { "json" } else { "text" }),
    },
];

fn texts(value: &DeValue) -> Option<Vec<String>> {
    let text = |v: &DeValue| v.as_str().map(str::to_owned);
    match value {
        DeValue::Array(all) if !all.is_empty() => all.iter().map(|v| text(v.get_ref())).collect(),
        one => Some(vec![text(one)?]),
    }
}

fn series(value: &DeValue) -> Option<usize> {
    let n = u16::try_from(number(value)?).ok()?;
    (n <= MOST_SERIES).then(|| n.into())
}

fn number(value: &DeValue) -> Option<u32> {
    let n = value.as_integer()?;
    u32::from_str_radix(n.as_str(), n.radix()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn variables_are_named_by_their_keys_and_flags_exist() {
        let cli = Cli::command();
        let agent = cli.find_subcommand("agent").unwrap();
        let flags: Vec<_> = (agent.get_arguments())
            .filter(|a| !a.is_hide_set())
            .filter_map(|a| a.get_long())
            .filter(|f| !["config", "help", "replay"].contains(f))
            .collect();
        for s in SETTINGS {
            let name = format!("NFSCOPE_{}_{}", s.section, s.key).to_uppercase();
            assert_eq!(s.variable, name);
            assert!(flags.contains(&s.flag), "{}", s.flag);
        }
        for flag in flags {
            assert!(SETTINGS.iter().any(|s| s.flag == flag), "{flag} has no key");
        }
    }
}
