//! Settings: built-in values, overridden by a TOML file, then by the environment, then by flags.

mod environment;
mod file;
mod reference;
mod reload;
mod table;

pub use file::Error;
pub use reference::reference;
pub use reload::{Changes, changes};
pub use table::Settings;

use crate::cli::AgentArgs;
use nfscope_serve::http::Sandbox;
use nfscope_source::bounded;
use nfscope_text::console::Level;
use std::io::ErrorKind;
use std::path::Path;

/// Configuration file if no other is named; it may be missing.
pub const DEFAULT_FILE: &str = "/etc/nfscope/nfscope.toml";
/// Environment variable that names another file, as `--config` does.
const FILE_VARIABLE: &str = "NFSCOPE_CONFIG";

/// Environment variable with a default of `[web] sandbox`, which the packages' systemd unit sets. The file, the environment and flags
/// override it.
const SANDBOX_BY_DEFAULT: &str = "NFSCOPE_DEFAULT_SANDBOX";

/// Most bytes of the file. All settings with their comments take a hundredth of it.
const MOST: u64 = 1 << 20;

/// Settings from the file, the environment and these flags.
///
/// # Errors
/// When the file cannot be read, or a value in it or in the environment is wrong.
pub fn load(args: &AgentArgs) -> Result<Settings, Error> {
    let text = |s: std::ffi::OsString| s.to_string_lossy().into_owned();
    let variables: Vec<_> = std::env::vars_os()
        .map(|(name, value)| (text(name), text(value)))
        .collect();
    load_from(args, &variables, Path::new(DEFAULT_FILE))
}

fn load_from(
    args: &AgentArgs,
    variables: &[(String, String)],
    default: &Path,
) -> Result<Settings, Error> {
    let mut settings = Settings::default();
    let by_default = variables.iter().find(|(n, _)| n == SANDBOX_BY_DEFAULT);
    if let Some((_, word)) = by_default.filter(|(_, word)| !word.is_empty()) {
        settings.sandbox = Sandbox::of(word).ok_or_else(|| Error::Type {
            key: SANDBOX_BY_DEFAULT,
            wanted: table::SANDBOX,
            found: format!("`{word}`"),
            place: "environment".to_owned(),
        })?;
    }
    let set = |(name, value): &&(String, String)| name == FILE_VARIABLE && !value.is_empty();
    let variable = variables.iter().find(set);
    let named = (args.config.as_deref()).or_else(|| variable.map(|(_, v)| Path::new(v)));
    let path = named.unwrap_or(default);
    match bounded::read_text(path, MOST) {
        Ok(text) => file::apply(&mut settings, path, &text)?,
        Err(e) if named.is_none() && e.kind() == ErrorKind::NotFound => {}
        Err(why) => {
            return Err(Error::Unreadable {
                file: path.display().to_string(),
                why,
            });
        }
    }
    environment::apply(&mut settings, variables.iter().cloned())?;
    flags(&mut settings, args);
    Ok(settings)
}

fn flags(settings: &mut Settings, args: &AgentArgs) {
    if !args.listen_addresses.is_empty() {
        settings.listen_addresses.clone_from(&args.listen_addresses);
        settings.systemd_socket = false;
    }
    settings.allow_details |= args.allow_details;
    settings.allow_file_names |= args.allow_file_names;
    settings.allow_open |= args.allow_open;
    if let Some(sandbox) = args.sandbox.as_deref().and_then(Sandbox::of) {
        settings.sandbox = sandbox;
    }
    if !args.allowed_hosts.is_empty() {
        settings.allowed_hosts.clone_from(&args.allowed_hosts);
    }
    if let Some(path) = &args.web_config {
        settings.web_config = Some(path.clone());
    }
    if let Some(keep) = args.history {
        settings.history = keep;
    }
    if let Some(directory) = &args.history_directory {
        settings.history_directory = Some(directory.clone());
    }
    settings.names.reverse_dns &= !args.no_reverse_dns;
    if let Some(file) = &args.names_file {
        settings.names.file = Some(file.clone());
    }
    settings.replay.clone_from(&args.replay);
    if let Some(level) = args.log_level.as_deref().and_then(Level::of) {
        settings.log_level = level;
    }
    if let Some(format) = &args.log_format {
        settings.log_json = format == "json";
    }
    settings.systemd_socket |= args.systemd_socket;
    let source = &mut settings.source;
    source.late_attach &= !args.no_late_attach;
    source.probe_stats |= args.probe_stats;
    source.phases &= !args.no_phases;
    source.client |= args.client;
    if let Some(n) = args.max_clients {
        source.max_clients = n.into();
    }
    if let Some(n) = args.max_exports {
        source.max_exports = n.into();
    }
    if let Some(n) = args.max_pairs {
        source.max_pairs = n;
    }
    source.skip_one_in = args.test_skip_one_in;
    source.nfsd_object.clone_from(&args.test_nfsd_object);
    source.breakdown_rows = args.test_breakdown_rows;
    source.books = !args.test_no_books;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_override_the_environment_and_that_the_file() {
        let file = std::env::temp_dir().join(format!("nfscope-config-{}.toml", std::process::id()));
        std::fs::write(
            &file,
            "[web]\nlisten_address = \"a:1\"\n[probes]\nlate_attach = true\n[limits]\nclients = 7\nexports = 8\n",
        )
        .unwrap();
        let nowhere = Path::new("/nonexistent/nfscope.toml");
        let mut args = AgentArgs {
            config: Some(file.clone()),
            ..AgentArgs::default()
        };
        assert_eq!(
            load_from(&args, &[], nowhere).unwrap().listen_addresses,
            ["a:1"]
        );
        let variables = [
            ("NFSCOPE_LIMITS_EXPORTS", "88"),
            ("NFSCOPE_LIMITS_CLIENTS", "77"),
            ("NFSCOPE_CONFIG", "/nonexistent/other.toml"),
        ]
        .map(|(n, v)| (n.to_owned(), v.to_owned()));
        args.listen_addresses = vec!["b:2".into()];
        args.no_late_attach = true;
        args.probe_stats = true;
        args.no_phases = true;
        args.max_clients = Some(9);
        let s = load_from(&args, &variables, nowhere).unwrap();
        assert_eq!(s.listen_addresses, ["b:2"]);
        assert!(!s.source.late_attach && s.source.probe_stats && !s.source.phases);
        assert_eq!((s.source.max_clients, s.source.max_exports), (9, 88));
        // The flag names the file, else the variable, else the default file is read if it exists.
        args.config = None;
        let gone = load_from(&args, &variables, &file).unwrap_err().to_string();
        assert!(
            gone.starts_with("cannot read configuration /nonexistent/other.toml"),
            "{gone}"
        );
        let empty = [("NFSCOPE_CONFIG".to_owned(), String::new())];
        let usual = load_from(&AgentArgs::default(), &empty, &file).unwrap();
        assert_eq!(usual.source.max_exports, 8);
        let none = load_from(&AgentArgs::default(), &[], nowhere).unwrap();
        assert_eq!(none.source.max_exports, 100);
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn what_the_unit_would_have_is_the_last_word_of_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("nfscope.toml");
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let unit = of(SANDBOX_BY_DEFAULT, "require");
        let sandbox = |args: &AgentArgs, more: &[(String, String)], text: &str| {
            std::fs::write(&file, text).unwrap();
            let all = [std::slice::from_ref(&unit), more].concat();
            load_from(args, &all, &file).unwrap().sandbox
        };
        let none = AgentArgs::default();
        assert_eq!(sandbox(&none, &[], ""), Sandbox::Require);
        assert_eq!(sandbox(&none, &[], "web.sandbox = \"try\""), Sandbox::Try);
        let variable = [of("NFSCOPE_WEB_SANDBOX", "try")];
        assert_eq!(sandbox(&none, &variable, ""), Sandbox::Try);
        let flag = AgentArgs {
            sandbox: Some("try".to_owned()),
            ..AgentArgs::default()
        };
        assert_eq!(sandbox(&flag, &[], ""), Sandbox::Try);
        let wrong = [of(SANDBOX_BY_DEFAULT, "never")];
        let error = load_from(&none, &wrong, &file).unwrap_err().to_string();
        assert!(error.contains(SANDBOX_BY_DEFAULT), "{error}");
        let usual = load_from(&none, &[], Path::new("/nonexistent/file")).unwrap();
        assert_eq!(usual.sandbox, Sandbox::Try);
    }

    #[test]
    fn an_address_on_the_command_line_is_served_whatever_the_file_says_of_sockets() {
        let mut settings = Settings {
            systemd_socket: true,
            ..Settings::default()
        };
        flags(&mut settings, &AgentArgs::default());
        assert!(settings.systemd_socket);
        let args = AgentArgs {
            listen_addresses: vec!["b:2".into()],
            ..AgentArgs::default()
        };
        flags(&mut settings, &args);
        assert!(!settings.systemd_socket);
        assert_eq!(settings.listen_addresses, ["b:2"]);
    }
}
