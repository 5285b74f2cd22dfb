//! `nfscope metrics`

use crate::cli::MetricsArgs;
use nfscope_serve::exposition::reference;

/// The reference, as asked for.
pub fn run(args: &MetricsArgs) -> String {
    match args.markdown {
        true => reference::markdown(),
        false => reference::plain(),
    }
}
