//! QEMU's machine protocol (QMP, docs/interop/qmp-spec in QEMU): what stops a machine and lets it go on. Its clock stands meanwhile.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Has QEMU execute a command without arguments, and waits until it has.
pub fn execute(socket: &Path, command: &str) -> Result<()> {
    tell(socket, command).with_context(|| format!("telling QEMU to {command}"))
}

fn tell(socket: &Path, command: &str) -> Result<()> {
    let mut to = UnixStream::connect(socket)?;
    to.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut lines = BufReader::new(to.try_clone()?).lines();
    // It says nothing but its greeting before that.
    for command in ["qmp_capabilities", command] {
        writeln!(to, "{}", json!({ "execute": command }))?;
        loop {
            let line = lines.next().context("QEMU has closed the connection")?;
            let line = line.context("QEMU has not answered within a minute")?;
            let said: Value = serde_json::from_str(&line)?;
            if let Some(error) = said.get("error") {
                bail!("{command}: {error}");
            }
            // Else the greeting, or an event.
            if said.get("return").is_some() {
                break;
            }
        }
    }
    Ok(())
}
