//! Rows of a comparison as responses of an experiment: found by name, and measured in one recording.

use crate::compare::evidence::Evidence;
use crate::compare::labels;
use crate::compare::quantities;
use crate::compare::result::{Quantity, Subject};
use crate::compare::selection;
use crate::estimate;
use crate::experiment::Unit;
use crate::series::SeriesSet;
use nfscope_model::phase;
use nfscope_text::suggest::near;

/// A row of a comparison, without its sides.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseRow {
    subject: Subject,
    quantity: Quantity,
}

/// Subject and quantity of every row that a comparison of this recording could have.
fn rows(c: &SeriesSet) -> Vec<ResponseRow> {
    let subjects = selection::every(c).into_iter();
    subjects
        .flat_map(|subject| {
            let mut all: Vec<Quantity> = quantities::of(&[c], &subject)
                .into_iter()
                .map(|of| of.quantity)
                .filter(|q| !matches!(q, Quantity::Phase { .. }))
                .collect();
            if let Subject::Op { version, op } = &subject {
                let known = quantities::phases(c, version, op).into_iter().flatten();
                let each = phase::OF_OP.iter().zip(known);
                let each = each.filter(|(_, seconds)| seconds.is_some());
                all.extend(each.map(|(phase, _)| Quantity::Phase { phase }));
            }
            let row = move |quantity| ResponseRow {
                subject: subject.clone(),
                quantity,
            };
            all.into_iter().map(row).collect::<Vec<_>>()
        })
        .collect()
}

/// Normal form of a name: `write 3 in log`, without the letter case and the comma of a heading.
fn key(name: &str) -> String {
    let words = name.to_lowercase().replace([',', ':'], " ");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl ResponseRow {
    /// Finds the row of a recording by its name: `WRITE 3 in log`.
    ///
    /// # Errors
    /// When there is no such row; the error lists similar names, or all.
    pub fn find(c: &SeriesSet, name: &str) -> Result<ResponseRow, String> {
        let all = rows(c);
        if let Some(row) = all.iter().find(|r| key(&r.name()) == key(name)) {
            return Ok(row.clone());
        }
        let names: Vec<String> = all.iter().map(ResponseRow::name).collect();
        let keys: Vec<String> = names.iter().map(|n| key(n)).collect();
        let hint = match near(&key(name), keys.iter().map(String::as_str)) {
            Some(like) => format!("did you mean \"{like}\"?"),
            None => format!("known are: {}", names.join("; ")),
        };
        Err(format!("there is no row \"{name}\" here; {hint}"))
    }

    /// `WRITE 3 in log`
    pub fn name(&self) -> String {
        format!(
            "{} {}",
            labels::subject(&self.subject),
            labels::quantity(&self.quantity)
        )
    }

    /// The unit of its values.
    pub fn unit(&self) -> Unit {
        match self.quantity {
            Quantity::Rate => Unit::PerSecond,
            Quantity::Share => Unit::Share,
            _ => Unit::Seconds,
        }
    }

    /// Value in a recording, and its relative error within the bucket of a histogram; `None` if it is not measured, or if there were no
    /// events.
    pub fn value(&self, c: &SeriesSet) -> Option<(f64, f64)> {
        if let (Subject::Op { version, op }, Quantity::Phase { phase }) =
            (&self.subject, &self.quantity)
        {
            let at = phase::OF_OP.iter().position(|p| p == phase)?;
            return Some((quantities::phases(c, version, op)?[at]?, 0.0));
        }
        if let Some(times) = quantities::durations_of(c, &self.subject) {
            let value = match self.quantity {
                Quantity::Mean => estimate::mean(&times),
                Quantity::Quantile { .. } if c.metadata.has_few_edges() => None,
                Quantity::Quantile { percent } => {
                    estimate::quantile(&times, f64::from(percent) / 100.0)
                }
                Quantity::Rate => estimate::rate(&times, &c.lengths),
                _ => None,
            };
            return value.map(|v| (v.value, v.hidden));
        }
        let all = quantities::of(&[c], &self.subject);
        let one = all.into_iter().find(|of| of.quantity == self.quantity)?;
        match one.evidence.first()? {
            Evidence::Known { estimate } => Some((estimate.value, estimate.hidden().exp_m1())),
            Evidence::None { .. } => Some((0.0, 0.0)),
            Evidence::NotMeasured | Evidence::TooLittle | Evidence::Mixed => None,
        }
    }
}
