//! QEMU's machine protocol (QMP, docs/interop/qmp-spec in QEMU): stops a machine, with its clock, and lets it go on.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// Executes a command of QEMU without arguments, and waits for its end.
pub fn execute(socket: &Path, command: &str) -> Result<()> {
    Connection::open(socket)?.execute(command)
}

/// A connection on which QEMU takes commands.
#[derive(Debug)]
pub struct Connection(BufReader<UnixStream>);

impl Connection {
    /// Connects. QEMU only sends its greeting before it is asked for its capabilities.
    pub fn open(socket: &Path) -> Result<Connection> {
        let to = UnixStream::connect(socket)
            .with_context(|| format!("connecting to QEMU at {}", socket.display()))?;
        to.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut connection = Connection(BufReader::new(to));
        connection.execute("qmp_capabilities")?;
        Ok(connection)
    }

    /// Executes a command of QEMU without arguments, and waits for its end.
    pub fn execute(&mut self, command: &str) -> Result<()> {
        self.tell(command)
            .with_context(|| format!("telling QEMU to {command}"))
    }

    fn tell(&mut self, command: &str) -> Result<()> {
        writeln!(self.0.get_mut(), "{}", json!({ "execute": command }))?;
        loop {
            let mut line = String::new();
            let read = self.0.read_line(&mut line);
            ensure!(
                read.context("QEMU has not answered within a minute")? > 0,
                "QEMU has closed the connection"
            );
            let said: Value = serde_json::from_str(&line)?;
            if let Some(error) = said.get("error") {
                bail!("{command}: {error}");
            }
            // Other lines are the greeting or events.
            if said.get("return").is_some() {
                return Ok(());
            }
        }
    }
}
