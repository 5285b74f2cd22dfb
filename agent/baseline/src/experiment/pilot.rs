//! The smallest effect that an experiment will find, from recordings made before it.

use crate::experiment::plan::Plan;
use nfscope_stats::experiment::smallest_found;
use nfscope_text::units::percent;

/// Standard errors in half of a 95 % interval, for many windows.
const NORMAL: f64 = 1.96;
/// Power of the effect that is reported.
const POWER: f64 = 0.8;

/// A recording with the levels that all pilots have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pilot {
    /// Value of the response.
    pub value: f64,
    /// Half the width of its 95 % interval, relative to the value; `None` for too few windows.
    pub half_width: Option<f64>,
    /// Length of the recording.
    pub seconds: f64,
    /// Relative error of the value within the bucket of a histogram.
    pub hidden: f64,
}

/// Sentence about the smallest effect on a response, as a factor, that the plan will find with runs of this length.
///
/// # Errors
/// When it is unknown; the error has the reason.
pub fn pilot(
    plan: &Plan,
    response: &str,
    pilots: &[Pilot],
    seconds: f64,
) -> Result<String, String> {
    let design = plan.design().map_err(|e| e.to_string())?;
    let (corners, effects) = (design.combinations.len(), design.effects().len());
    let combinations = corners + usize::from(plan.centre > 0);
    let all = plan.runs().map_err(|e| e.to_string())?;
    let runs = all.len();
    let blocks = all.iter().map(|r| r.block + 1).max().unwrap_or(1);
    // Without replicates the noise is estimated from the effects (Lenth), with a third of their number as degrees of freedom.
    let left = (runs + 1).saturating_sub(combinations + blocks);
    let dof = match left {
        0 => effects as f64 / 3.0,
        left => left as f64,
    };
    if left == 0 && effects < 3 {
        return Err("so few runs tell no effect from noise; fix: add --replicates 2".into());
    }
    let (deviation, whence) = match pilots {
        [] => return Err("name a baseline".into()),
        [one] => {
            let half = one
                .half_width
                .ok_or("it has too few windows for an interval; fix: record longer")?;
            let deviation = half / NORMAL * (one.seconds / seconds.max(1.0)).sqrt();
            (
                deviation,
                "by what the windows of one pilot tell, and runs differ by more than that; several pilots tell by how much",
            )
        }
        several => (deviation_of(several), "by what the pilots differ by"),
    };
    let hidden = pilots.iter().map(|p| p.hidden.ln_1p()).fold(0.0, f64::max);
    let level = 0.05 / effects.max(1) as f64;
    let smallest = smallest_found(deviation, runs, dof, level, POWER) + hidden;
    let factor = (2.0 * smallest).exp();
    if !factor.is_finite() {
        return Err(format!("the pilots do not tell {response}"));
    }
    Ok(format!(
        "\n{response} varies by {} from run to run, {whence}.\n\
         Four of five such experiments find an effect by a factor of {factor:.2} or more.\n",
        percent(deviation.exp_m1())
    ))
}

/// Standard deviation of the logarithms.
fn deviation_of(pilots: &[Pilot]) -> f64 {
    let n = pilots.len() as f64;
    let logarithms: Vec<f64> = pilots.iter().map(|p| p.value.ln()).collect();
    let mean = logarithms.iter().sum::<f64>() / n;
    let square: f64 = logarithms.iter().map(|v| (v - mean).powi(2)).sum();
    (square / (n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Factor, Fraction};

    fn plan(replicates: usize, factors: usize) -> Plan {
        let factor = |i: usize| Factor {
            name: format!("f{i}"),
            levels: vec!["a".into(), "b".into()],
        };
        Plan {
            name: "x".into(),
            factors: (0..factors).map(factor).collect(),
            replicates,
            fraction: Fraction::Full,
            foldover: false,
            centre: 0,
            seed: 1,
            more: Vec::new(),
        }
    }

    fn one(value: f64) -> Pilot {
        Pilot {
            value,
            half_width: Some(0.05),
            seconds: 600.0,
            hidden: 0.0,
        }
    }

    /// Kalibera's rule by hand: 16 runs in two blocks, 7 degrees of freedom, t of 0.05 / 7 and of the power, times the error.
    #[test]
    fn the_smallest_effect_follows_the_number_of_runs_and_their_variation() {
        let pilots = [one(1.0), one(1.1), one(0.9)];
        let factor = |replicates| {
            let text = pilot(&plan(replicates, 3), "write mean", &pilots, 600.0).unwrap();
            let (_, rest) = text.split_once("factor of ").unwrap();
            rest.split_whitespace()
                .next()
                .unwrap()
                .parse::<f64>()
                .unwrap()
        };
        let (two, eight) = (factor(2), factor(8));
        // (3.76 + 0.896) * 0.1003 / 4, twice and as a factor.
        assert!((two - 1.25).abs() < 0.02, "{two}");
        assert!(eight < two && eight > 1.0, "{eight}");
        let once = pilot(&plan(2, 3), "write mean", &[one(1.0)], 2400.0).unwrap();
        assert!(
            once.contains("varies by 1.3 %") && once.contains("one pilot"),
            "{once}"
        );
        assert!(pilot(&plan(1, 1), "write mean", &pilots, 600.0).is_err());
        let unknown = Pilot {
            half_width: None,
            ..one(1.0)
        };
        assert!(pilot(&plan(2, 3), "write mean", &[unknown], 600.0).is_err());
    }
}
