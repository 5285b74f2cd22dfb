//! OpenZFS's own tools, for facts that the kernel does not offer.

use crate::lossless;
use std::process::Command;

/// Output of a tool; `None` if the tool is missing or fails.
pub fn output(tool: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(tool).args(args).output().ok()?;
    output
        .status
        .success()
        .then(|| lossless::text(&output.stdout))
}
