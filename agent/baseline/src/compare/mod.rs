//! The comparison of two baselines.
//!
//! [`sides`] and [`options`] are the input. [`selection`] chooses the subjects, [`quantities`] estimates each quantity in each recording
//! ([`errors`] those of failures), [`hypothesis`] tests them ([`matching`] pairs hours, [`primary`] chooses the quantity that is tested
//! first, [`families`] corrects for their number, [`variance`] decides if anything can be judged), [`explained`] withdraws verdicts that
//! failures, durability or another [`mix`] may explain ([`other_work`]: of sizes and stabilities; [`one_mix`]: totals at the same mix;
//! [`thread_wait`]: waits of other work), [`confounders`] finds other differences, [`course`] checks whether a recording is steady
//! ([`one_side`]: on one side alone), [`headline`] sums up in one paragraph, [`plot_data`] collects the data of plots. [`text`] and
//! [`html`] render the result. [`response`] takes a row of one recording as the response of an experiment.

mod cause;
mod comparison;
mod configuration;
mod confounders;
mod course;
mod errors;
mod evidence;
mod explained;
mod families;
mod headline;
pub mod html;
mod hypothesis;
mod labels;
mod matching;
mod method;
mod mix;
mod next;
mod one_mix;
mod one_side;
pub mod options;
mod other_work;
mod plot_data;
mod primary;
mod quantities;
mod response;
pub mod result;
mod selection;
mod sides;
pub mod text;
mod thread_wait;
mod times;
mod variance;

pub use comparison::{FAMILIES, compare_sides};
pub use configuration::Configuration;
pub use errors::share_of_all;
pub use options::{Match, Options};
pub use plot_data::mark_changes;
pub use response::ResponseRow;
pub use sides::Sides;
pub use times::in_common;
