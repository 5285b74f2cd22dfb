//! Configuration file in TOML. It is read as a tree with spans, so that every error has a line number.

use super::table::{SETTINGS, Settings};
use nfscope_text::suggest::nearest;
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml::de::{DeTable, DeValue};

/// Error of a configuration file or of the environment, with its place.
#[derive(Debug, Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read configuration {file}: {why}")]
    Unreadable {
        /// Path of the file.
        file: String,
        /// Error of the operating system.
        why: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{place}: {why}")]
    Malformed {
        /// FILE:LINE:COLUMN
        place: String,
        /// Message of the parser.
        why: String,
    },
    /// A key or a section that does not exist.
    #[error("unknown {what} ({place}){hint}")]
    Unknown {
        /// Unknown key and its section.
        what: String,
        /// FILE:LINE
        place: String,
        /// Nearest known name, or all of them.
        hint: String,
    },
    /// A value of the wrong type, or outside its range.
    #[error("{key} must be {wanted}, not {found} ({place})")]
    Type {
        /// Name of the key.
        key: &'static str,
        /// Type it must have, with an example.
        wanted: &'static str,
        /// Type that it has, or its value if only that is wrong.
        found: String,
        /// FILE:LINE
        place: String,
    },
}

/// Applies the settings in a file.
pub(super) fn apply(settings: &mut Settings, path: &Path, text: &str) -> Result<(), Error> {
    let file = File {
        path: path.to_owned(),
        text,
    };
    let root = DeTable::parse(text).map_err(|e| Error::Malformed {
        place: file.column(e.span().map_or(0, |s| s.start)),
        why: e.message().to_owned(),
    })?;
    for (name, value) in root.get_ref() {
        let at = name.span().start;
        let section = name.get_ref().as_ref();
        let known: Vec<_> = SETTINGS.iter().filter(|s| s.section == section).collect();
        if known.is_empty() {
            // A key before the first section most likely lacks its section.
            if let Some(s) = SETTINGS.iter().find(|s| s.key == section) {
                return Err(Error::Unknown {
                    what: format!("key `{section}` outside a section"),
                    place: file.line(at),
                    hint: format!("; put it under [{}]", s.section),
                });
            }
            return Err(Error::Unknown {
                what: match value.get_ref() {
                    DeValue::Table(_) => format!("section [{section}]"),
                    _ => format!("key `{section}`"),
                },
                place: file.line(at),
                hint: nearest(section, SETTINGS.iter().map(|s| s.section), |s| {
                    format!("[{s}]")
                }),
            });
        }
        let DeValue::Table(table) = value.get_ref() else {
            return Err(Error::Type {
                key: known[0].section,
                wanted: "a section in brackets",
                found: value.get_ref().type_str().to_owned(),
                place: file.line(at),
            });
        };
        for (key, value) in table {
            let at = key.span().start;
            let key = key.get_ref().as_ref();
            let Some(setting) = known.iter().find(|s| s.key == key) else {
                return Err(Error::Unknown {
                    what: format!("key `{key}` in [{section}]"),
                    place: file.line(at),
                    hint: nearest(key, known.iter().map(|s| s.key), |s| format!("`{s}`")),
                });
            };
            (setting.set)(settings, value.get_ref()).map_err(|wanted| Error::Type {
                key: setting.key,
                wanted,
                found: match value.get_ref() {
                    // The type is right and the value is not, so the message shows the value.
                    DeValue::Integer(n) if wanted.starts_with("a number") => n.as_str().to_owned(),
                    DeValue::String(s) if wanted.starts_with("one of") => format!("{s:?}"),
                    DeValue::String(s) if s.is_empty() => "an empty string".to_owned(),
                    other => other.type_str().to_owned(),
                },
                place: file.line(at),
            })?;
        }
    }
    Ok(())
}

/// Converts byte offsets into FILE:LINE:COLUMN.
struct File<'a> {
    path: PathBuf,
    text: &'a str,
}

impl File<'_> {
    fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        (
            before.matches('\n').count() + 1,
            before[start..].chars().count() + 1,
        )
    }

    fn line(&self, offset: usize) -> String {
        format!("{}:{}", self.path.display(), self.position(offset).0)
    }

    fn column(&self, offset: usize) -> String {
        let (line, column) = self.position(offset);
        format!("{}:{line}:{column}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        let mut settings = Settings::default();
        apply(&mut settings, Path::new("f.toml"), text).map_err(|e| e.to_string())?;
        Ok(settings)
    }

    #[test]
    fn a_whole_file() {
        let s = parse(
            "# all\n[web]\nlisten_address = \"[::1]:80\"\n[probes]\nlate_attach = false\nstatistics = true\n\
             phases = false\n[limits]\nclients = 0\nexports = 10_000\n",
        )
        .unwrap();
        assert_eq!(s.listen_addresses, ["[::1]:80"]);
        assert!(!s.source.late_attach);
        assert!(s.source.probe_stats);
        assert!(!s.source.phases);
        assert_eq!((s.source.max_clients, s.source.max_exports), (0, 10_000));
        assert_eq!(parse("").unwrap().listen_addresses, ["127.0.0.1:9943"]);
        let two = parse("[web]\nlisten_address = [\"a:1\", \"b:1\"]\n").unwrap();
        assert_eq!(two.listen_addresses, ["a:1", "b:1"]);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, message) in [
            (
                "[web]\nlisen_address = \"x\"",
                "unknown key `lisen_address` in [web] (f.toml:2); did you mean `listen_address`?",
            ),
            (
                "\n\n[wbe]\n",
                "unknown section [wbe] (f.toml:3); did you mean [web]?",
            ),
            (
                "zzz = 1",
                "unknown key `zzz` (f.toml:1); known are [web], [probes], [limits], [history], [names], [log]",
            ),
            (
                "statistics = true",
                "unknown key `statistics` outside a section (f.toml:1); put it under [probes]",
            ),
            (
                "[probes]\nlate_attach = \"no\"",
                "late_attach must be true or false, not string (f.toml:2)",
            ),
            (
                "web = 3",
                "web must be a section in brackets, not integer (f.toml:1)",
            ),
            (
                "[web]\nlisten_address = 9943",
                "listen_address must be a string in quotes, or several in brackets, not integer (f.toml:2)",
            ),
            (
                "[web]\nconfig_file = \"\"",
                "config_file must be a path in quotes, or no key at all for no web configuration, not an empty string (f.toml:2)",
            ),
            (
                "[limits]\nclients = 10_001",
                "clients must be a number from 0 to 10000, not 10001 (f.toml:2)",
            ),
            (
                "[log]\nlevel = \"loud\"",
                "level must be one of \"debug\", \"info\", \"warn\", \"error\", not \"loud\" (f.toml:2)",
            ),
            (
                "[log]\nformat = true",
                "format must be one of \"text\", \"json\", not boolean (f.toml:2)",
            ),
            (
                "[limits]\nexports = -1",
                "exports must be a number from 0 to 10000, not -1 (f.toml:2)",
            ),
            (
                "[limits]\nexports = \"all\"",
                "exports must be a number from 0 to 10000, not string (f.toml:2)",
            ),
            (
                "[limits]\nclient = 1",
                "unknown key `client` in [limits] (f.toml:2); did you mean `clients`?",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), message);
        }
    }

    #[test]
    fn malformed_toml_has_line_and_column() {
        for (text, place) in [
            ("[web]\nlisten_address = \n", "f.toml:2:"),
            ("[web\n", "f.toml:1:"),
            ("[web]\n[web]\n", "f.toml:2:"),
            ("ä = \u{0}", "f.toml:1:"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.starts_with(place), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
