//! Settings from environment variables such as `NFSCOPE_LIMITS_CLIENTS=500`, for service managers and containers.

use super::file::Error;
use super::table::{SETTINGS, Settings};
use nfscope_text::suggest::nearest;
use std::borrow::Cow;
use toml::de::{DeTable, DeValue};

/// Applies these variables. Empty ones are skipped, and names outside of nfscope's sections. An unknown name in a section is an error.
pub(super) fn apply(
    settings: &mut Settings,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<(), Error> {
    for (name, value) in variables.filter(|(_, value)| !value.is_empty()) {
        let Some(setting) = SETTINGS.iter().find(|s| s.variable == name) else {
            if in_a_section(&name) {
                return Err(Error::Unknown {
                    what: format!("setting `{name}`"),
                    place: "environment".to_owned(),
                    hint: nearest(&name, SETTINGS.iter().map(|s| s.variable), |v| {
                        format!("`{v}`")
                    }),
                });
            }
            continue;
        };
        let line = format!("value = {value}");
        let parsed = DeTable::parse(&line).ok();
        let parsed = (parsed.as_ref()).and_then(|t| Some(t.get_ref().get("value")?.get_ref()));
        // Strings need no quotes in the environment.
        let text = DeValue::String(Cow::Borrowed(&value));
        parsed
            .is_some_and(|v| (setting.set)(settings, v).is_ok())
            .then_some(())
            .map_or_else(|| (setting.set)(settings, &text), Ok)
            .map_err(|wanted| Error::Type {
                key: setting.variable,
                wanted,
                found: format!("`{value}`"),
                place: "environment".to_owned(),
            })?;
    }
    Ok(())
}

/// Returns true if a variable begins like a setting: NFSCOPE, a section, and an underscore.
fn in_a_section(name: &str) -> bool {
    let of = |section: &str| format!("NFSCOPE_{}_", section.to_uppercase());
    SETTINGS.iter().any(|s| name.starts_with(&of(s.section)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let mut settings = Settings::default();
        let owned = variables
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        apply(&mut settings, owned).map_err(|e| e.to_string())?;
        Ok(settings)
    }

    #[test]
    fn values_need_no_quotes() {
        let s = parse(&[
            ("NFSCOPE_WEB_LISTEN_ADDRESS", "[::1]:80"),
            ("NFSCOPE_PROBES_PHASES", "false"),
            ("NFSCOPE_LIMITS_CLIENTS", "7"),
            ("NFSCOPE_REVISION", "of the build"),
            ("HOME", "/root"),
            ("NFSCOPE_PROBES_STATISTICS", ""),
            ("NFSCOPE_WEB_CONFIG_FILE", ""),
        ])
        .unwrap();
        assert_eq!(s.listen_addresses, ["[::1]:80"]);
        assert!(!s.source.phases);
        assert_eq!(s.source.max_clients, 7);
        let quoted = parse(&[("NFSCOPE_WEB_LISTEN_ADDRESS", "\"a:1\"")]).unwrap();
        let two = parse(&[("NFSCOPE_WEB_LISTEN_ADDRESS", "[\"a:1\", \"b:1\"]")]).unwrap();
        assert_eq!(two.listen_addresses, ["a:1", "b:1"]);
        assert_eq!(quoted.listen_addresses, ["a:1"]);
    }

    #[test]
    fn mistakes_are_named() {
        for (name, value, message) in [
            (
                "NFSCOPE_LIMITS_CLIENT",
                "7",
                "unknown setting `NFSCOPE_LIMITS_CLIENT` (environment); did you mean `NFSCOPE_LIMITS_CLIENTS`?",
            ),
            (
                "NFSCOPE_LIMITS_CLIENTS",
                "all",
                "NFSCOPE_LIMITS_CLIENTS must be a number from 0 to 10000, not `all` (environment)",
            ),
            (
                "NFSCOPE_PROBES_PHASES",
                "1",
                "NFSCOPE_PROBES_PHASES must be true or false, not `1` (environment)",
            ),
        ] {
            assert_eq!(parse(&[(name, value)]).unwrap_err(), message);
        }
    }
}
