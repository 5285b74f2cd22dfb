//! The comparison of two baselines.
//!
//! [`selection`] chooses what is compared, [`hypothesis`] estimates and tests each quantity, [`confounders`] finds what else
//! differs, [`headline`] sums up in one paragraph, [`plot_data`] collects what is drawn. [`text`] and [`html`] render the
//! result.

mod comparison;
mod confounders;
mod headline;
pub mod html;
mod hypothesis;
mod labels;
mod plot_data;
pub mod result;
mod selection;
pub mod text;

pub use comparison::{FAMILIES, compare};
