//! The scale of a response, logarithmic where effects are factors.

use crate::experiment::result::{Analysed, Unit};
use crate::html::ticks;

/// Scale that maps values to places on an axis.
pub(super) struct Scale {
    logarithm: bool,
    unit: Unit,
    from: f64,
    to: f64,
}

impl Scale {
    /// Scale on which all of these values have a place.
    pub(super) fn of(a: &Analysed, values: impl Iterator<Item = f64>) -> Scale {
        let sound = |v: &f64| v.is_finite() && (!a.logarithm || *v > 0.0);
        let ends = values
            .filter(sound)
            .fold(None, |ends: Option<(f64, f64)>, v| {
                Some(ends.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
            });
        let (low, high) = ends.unwrap_or((1.0, 1.0));
        let (from, to) = match a.logarithm {
            true => (low / 1.15, high * 1.15),
            // Differences on a linear scale are read from zero.
            false => (low.min(0.0) * 1.08, high.max(0.0) * 1.08),
        };
        let to = if to > from { to } else { from + 1.0 };
        Scale {
            logarithm: a.logarithm,
            unit: a.unit,
            from,
            to,
        }
    }

    /// Place of a value, from 0 to 1.
    pub(super) fn at(&self, v: f64) -> f64 {
        match self.logarithm {
            true => (v / self.from).ln() / (self.to / self.from).ln(),
            false => (v - self.from) / (self.to - self.from),
        }
    }

    /// Ticks with their labels.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let label = |v: f64| match self.unit {
            Unit::PerSecond => format!("{}/s", ticks::count(v)),
            Unit::Seconds => ticks::time(v),
            Unit::Share | Unit::Number => self.unit.shown(v),
        };
        let all = match self.logarithm {
            true => ticks::powers(self.from, self.to),
            false => {
                let all = ticks::upwards(self.to, label);
                all.into_iter().map(|(v, _)| v).collect()
            }
        };
        let inside = all
            .into_iter()
            .filter(|v| (self.from..=self.to).contains(v));
        let places: Vec<(f64, String)> = inside.map(|v| (v, label(v))).collect();
        match places.len() {
            // Levels that hardly differ have no round number between them, so the ends have labels.
            0 | 1 => [self.from, self.to].map(|v| (v, self.unit.shown(v))).into(),
            _ => places,
        }
    }
}

/// Mean of runs on the scale of the analysis: the geometric one if effects are factors. `None` without values.
pub(super) fn mean(a: &Analysed, values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    (!values.is_empty()).then(|| match a.logarithm {
        true => (values.iter().map(|v| v.ln()).sum::<f64>() / n).exp(),
        false => values.iter().sum::<f64>() / n,
    })
}
