//! `nfscope metrics`: prints the reference of all metrics.

use crate::cli::MetricsArgs;
use nfscope_serve::exposition::reference;

/// Reference as text or as Markdown.
pub fn run(args: &MetricsArgs) -> String {
    match args.markdown {
        true => reference::markdown(),
        false => reference::plain(),
    }
}
