//! OpenZFS's own tools, for facts that the kernel does not offer.

use crate::bounded;
use crate::lossless;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Output of a tool; `None` if [`answer`] fails.
pub fn output(tool: &str, args: &[&str]) -> Option<String> {
    answer(tool, args).ok()
}

/// Output of a tool. Its last argument names a pool or a dataset.
///
/// # Errors
/// Fails with a reason if the tool is missing, fails, or takes longer than [`bounded::PATIENCE`]: ZFS keeps a tool for ever that asks for a
/// suspended pool.
pub fn answer(tool: &str, args: &[&str]) -> Result<String, String> {
    answer_within(tool, args, bounded::PATIENCE)
}

fn answer_within(tool: &str, args: &[&str], patience: Duration) -> Result<String, String> {
    let pool = args.last().and_then(|name| name.split('/').next());
    // A pool that hangs costs one wait, however many of its datasets are exported.
    let place = PathBuf::from(format!("{tool} {}", pool.unwrap_or_default()));
    let program = tool.to_owned();
    let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
    let ask = move || Command::new(program).args(args).output();
    match bounded::within(&place, patience, ask) {
        Ok(out) if out.status.success() => Ok(lossless::text(&out.stdout)),
        Ok(out) => Err(format!("`{tool}` failed ({})", out.status)),
        Err(e) if e.kind() == io::ErrorKind::TimedOut => Err(format!(
            "`{tool}` did not answer within {} s",
            patience.as_secs_f64()
        )),
        Err(e) => Err(format!("`{tool}` cannot be run: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_tool_that_hangs_is_not_waited_for() {
        let begin = Instant::now();
        let said = answer_within("sleep", &["5"], Duration::from_millis(20));
        assert_eq!(said, Err("`sleep` did not answer within 0.02 s".to_owned()));
        // The second question finds that the first one still waits.
        assert!(answer_within("sleep", &["5"], Duration::from_secs(60)).is_err());
        assert!(begin.elapsed() < Duration::from_secs(4));
    }

    #[test]
    fn a_tool_that_is_missing_or_fails_has_a_reason() {
        let missing = answer("/nowhere/zfs", &["tank"]).unwrap_err();
        assert!(missing.contains("cannot be run"), "{missing}");
        let failed = answer("false", &["tank"]).unwrap_err();
        assert!(failed.contains("`false` failed (exit"), "{failed}");
        assert_eq!(answer("echo", &["tank"]), Ok("tank\n".to_owned()));
        assert_eq!(output("false", &["tank"]), None);
    }
}
