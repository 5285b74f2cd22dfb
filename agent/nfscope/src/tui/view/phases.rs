//! A time by what it went into.

use nfscope_model::{Family, Sample, Window};
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
    /// What the series of `family` hold whose labels before the phase are `labels`; `None` where there is none.
    pub(super) fn read<const N: usize>(
        window: &Window,
        family: &Family<N>,
        names: &'static [&'static str],
        labels: &[&str],
    ) -> Option<Phases> {
        let mut seconds = vec![None; names.len()];
        for s in window.delta.series(&family.info) {
            let Some((phase, before)) = s.labels.split_last() else {
                continue;
            };
            if before != labels {
                continue;
            }
            if let (Some(i), Sample::Counter(v)) =
                (names.iter().position(|n| n == phase), &s.sample)
            {
                seconds[i] = Some(*v);
            }
        }
        let known = seconds.iter().any(Option::is_some);
        known.then_some(Phases { names, seconds })
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
