//! A time by what it went into.

use nfscope_model::window_parts::PhaseSeconds;
use serde::{Serialize, Serializer};

/// Seconds by phase, `None` for a phase that this host does not tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Phases {
    /// [`nfscope_model::phase::OF_OP`] or [`nfscope_model::phase::OF_RPC`].
    pub names: &'static [&'static str],
    /// As many as there are names.
    pub seconds: Vec<Option<f64>>,
}

impl Phases {
    /// As many seconds as there are names.
    pub(super) fn new<const N: usize>(
        names: &'static [&'static str; N],
        seconds: PhaseSeconds<N>,
    ) -> Phases {
        Phases {
            names,
            seconds: seconds.to_vec(),
        }
    }

    /// The parts as numbers; what is not known takes no room.
    pub fn parts(&self) -> Vec<f64> {
        self.seconds.iter().map(|s| s.unwrap_or(0.0)).collect()
    }
}

impl Serialize for Phases {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.names.iter().zip(&self.seconds))
    }
}
