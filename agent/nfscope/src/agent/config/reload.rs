//! Settings that SIGHUP changes in a running agent.

use super::table::{SETTINGS, Settings};

/// Settings whose values differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Settings that take effect at once, with their new values.
    pub applied: Vec<String>,
    /// Settings that take effect after a restart.
    pub waiting: Vec<String>,
}

/// Compares the settings of a running agent with new ones.
pub fn changes(running: &Settings, now: &Settings) -> Changes {
    let mut changes = Changes::default();
    for s in SETTINGS {
        let (before, after) = ((s.get)(running), (s.get)(now));
        if before != after {
            let list = match s.reloads {
                true => &mut changes.applied,
                false => &mut changes.waiting,
            };
            let after = match after.is_empty() {
                true => "is not set".to_owned(),
                false => format!("= {after}"),
            };
            list.push(format!("[{}] {} {after}", s.section, s.key));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_reloaded_is_told_apart() {
        let running = Settings::default();
        assert_eq!(changes(&running, &running), Changes::default());
        let mut now = Settings {
            listen_addresses: vec!["[::]:9943".into()],
            ..Settings::default()
        };
        now.source.max_clients = 500;
        let before = Settings {
            web_config: Some("web.yml".into()),
            ..Settings::default()
        };
        assert_eq!(
            changes(&before, &running).applied,
            ["[web] config_file is not set"]
        );
        assert_eq!(
            changes(&running, &now),
            Changes {
                applied: vec!["[limits] clients = 500".into()],
                waiting: vec!["[web] listen_address = \"[::]:9943\"".into()],
            }
        );
    }
}
