//! The comparison of two baselines.
//!
//! [`sides`] and [`options`] say what is asked. [`selection`] chooses what is compared, [`quantities`] estimates each quantity in
//! each recording ([`errors`] those of failures), [`hypothesis`] tests them ([`matching`] pairs hours, [`families`] corrects for
//! their number), [`confounders`] finds what else
//! differs, [`headline`] sums up in one paragraph, [`plot_data`] collects what is drawn. [`text`] and [`html`] render the
//! result.

mod comparison;
mod confounders;
mod errors;
mod evidence;
mod families;
mod headline;
pub mod html;
mod hypothesis;
mod labels;
mod matching;
mod method;
mod next;
pub mod options;
mod plot_data;
mod quantities;
pub mod result;
mod selection;
mod sides;
pub mod text;
mod times;

pub use comparison::{FAMILIES, compare, compare_sides};
pub use errors::share_of_all;
pub use options::{Match, Options};
pub use plot_data::mark_changes;
pub use sides::Sides;
