//! Clients, exports, operations, users and files with most of the time of a finding's operations.

use crate::rules::evidence::percent;
use nfscope_model::breakdown::Moved;
use nfscope_text::units::seconds;
use serde::{Deserialize, Serialize};

/// Operations of a finding by each dimension, as the agent counted them for some seconds after the finding had begun.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Talkers {
    /// End of counting, in seconds since 1970.
    pub at: f64,
    /// Time for which operations were counted, in seconds.
    pub seconds: f64,
    /// Number of the finding's operations in that time.
    pub count: u64,
    /// Sum of the times of these operations, in seconds.
    pub sum_seconds: f64,
    /// Bytes that these operations moved.
    pub moved: Moved,
    /// Seconds of operations of any kind that found no room in the kernel's table. Shares are lower bounds if there are any.
    pub without_row_seconds: f64,
    /// Addresses of clients; `local` for one without an address.
    pub client: Vec<Talker>,
    /// Paths of exports; `none` and `unknown` as in `/breakdown`.
    pub export: Vec<Talker>,
    /// Operations, as in the label `op`.
    pub op: Vec<Talker>,
    /// User ids that the calls carry.
    pub user: Vec<Talker>,
    /// Files and directories as `EXPORT:FILE`, with the names of `/breakdown`.
    pub file: Vec<Talker>,
    /// Reasons for what was not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_known: Vec<String>,
}

/// A value of a dimension, and its part of a finding's operations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Talker {
    /// Value of the dimension.
    pub value: String,
    /// Name of the client or user, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Part of the time of the finding's operations, 0 to 1.
    pub share: f64,
    /// Number of operations.
    pub count: u64,
    /// Sum of their times, in seconds.
    pub sum_seconds: f64,
    /// Bytes that they moved.
    pub moved: Moved,
}

impl Talkers {
    /// Removes users and files, for readers that may not see them.
    pub fn remove_private(&mut self) {
        self.user.clear();
        self.file.clear();
    }

    /// The first value of each dimension with its share, in a sentence; `None` if nothing was counted.
    pub fn sentence(&self) -> Option<String> {
        let first = [
            ("client", &self.client),
            ("export", &self.export),
            ("operation", &self.op),
            ("user", &self.user),
            ("file", &self.file),
        ];
        let first = first.into_iter().filter_map(|(by, all)| {
            let t = all.first()?;
            let name = t.name.as_ref().map(|n| format!(" ({n})"));
            let name = name.unwrap_or_default();
            Some(format!("{by} {}{name} {}", t.value, percent(t.share)))
        });
        let first: Vec<_> = first.collect();
        (!first.is_empty()).then(|| {
            format!(
                "{} of the {} that {} operations took in {}",
                first.join(", "),
                seconds(self.sum_seconds),
                self.count,
                seconds(self.seconds)
            )
        })
    }

    /// Adds names of clients and users.
    pub fn set_names(
        &mut self,
        client: impl Fn(&str) -> Option<String>,
        user: impl Fn(&str) -> Option<String>,
    ) {
        for c in &mut self.client {
            c.name = client(&c.value);
        }
        for u in &mut self.user {
            u.name = user(&u.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_the_first_of_each_dimension_with_its_name() {
        let talker = |value: &str, share| Talker {
            value: value.to_owned(),
            share,
            ..Talker::default()
        };
        let mut who = Talkers {
            seconds: 5.0,
            count: 160,
            sum_seconds: 4.0,
            client: vec![talker("10.9.0.2", 0.8), talker("10.9.0.3", 0.2)],
            user: vec![talker("1000", 0.75)],
            file: vec![talker("/srv:12", 0.5)],
            ..Talkers::default()
        };
        who.set_names(|_| Some("web03".to_owned()), |_| None);
        assert_eq!(
            who.sentence().unwrap(),
            "client 10.9.0.2 (web03) 80 %, user 1000 75 %, file /srv:12 50 % of the 4.00 s that 160 operations took in 5.00 s"
        );
        who.remove_private();
        assert!(!who.sentence().unwrap().contains("user"));
        assert_eq!(Talkers::default().sentence(), None);
    }
}
