//! OpenZFS's own tools, for what only they tell.

use crate::lossless;
use std::process::Command;

/// What a tool prints; `None` where it is missing or fails.
pub fn output(tool: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(tool).args(args).output().ok()?;
    output
        .status
        .success()
        .then(|| lossless::text(&output.stdout))
}
