//! A time by phase.

use nfscope_model::window_parts::PhaseSeconds;
use serde::{Serialize, Serializer};

/// Seconds by phase; `None` for a phase that this host does not measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Phases {
    /// [`nfscope_model::phase::OF_OP`] or [`nfscope_model::phase::OF_RPC`].
    pub names: &'static [&'static str],
    /// Seconds of each name.
    pub seconds: Vec<Option<f64>>,
}

impl Phases {
    /// Builds the phases from seconds in the order of the names.
    pub(crate) fn new<const N: usize>(
        names: &'static [&'static str; N],
        seconds: PhaseSeconds<N>,
    ) -> Phases {
        Phases {
            names,
            seconds: seconds.to_vec(),
        }
    }

    /// Seconds as numbers; an unknown phase counts as zero.
    pub fn parts(&self) -> Vec<f64> {
        self.seconds.iter().map(|s| s.unwrap_or(0.0)).collect()
    }
}

impl Serialize for Phases {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.names.iter().zip(&self.seconds))
    }
}
