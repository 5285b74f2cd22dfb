//! Runs commands of this program as child processes. A command that fails or hangs does not affect the server.

use serde_json::Value;
use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Most bytes of an answer. Assistants read less.
pub const MOST: u64 = 4 << 20;
/// Interval at which a child is polled.
const LOOK: Duration = Duration::from_millis(20);

/// Returns the JSON that a command prints, or its error text.
///
/// The exit code is ignored: it encodes the command's result, and not the presence of an answer.
pub fn printed_json(
    words: Vec<OsString>,
    patience: Duration,
    cancelled: &AtomicBool,
) -> Result<Value, String> {
    let program =
        std::env::current_exe().map_err(|e| format!("this program has no file any more: {e}"))?;
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot run this program: {e}"))?;
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("the program has no output".to_owned());
    };
    let (out, err) = (reader(out), reader(err));
    let ended = wait(&mut child, patience, cancelled);
    // The reader threads end with the child's pipes.
    let (out, err) = (
        out.join().unwrap_or_default(),
        err.join().unwrap_or_default(),
    );
    ended?;
    if out.len() as u64 > MOST {
        return Err(format!(
            "the answer has more than {} MiB: ask for less",
            MOST >> 20
        ));
    }
    serde_json::from_slice(&out).map_err(|_| {
        let said = String::from_utf8_lossy(&err);
        let said = said.trim().trim_start_matches("error: ");
        match said.is_empty() {
            true => "the command gave no answer".to_owned(),
            false => said.chars().take(2000).collect(),
        }
    })
}

fn reader(from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        // A read error makes the answer incomplete. The closed pipe then ends the child.
        let _ = from.take(MOST + 1).read_to_end(&mut all);
        all
    })
}

fn wait(child: &mut Child, patience: Duration, cancelled: &AtomicBool) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let over = match child.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) if cancelled.load(Ordering::Relaxed) => "it was cancelled".to_owned(),
            Ok(None) if began.elapsed() > patience => {
                format!("no answer within {} s", patience.as_secs())
            }
            Ok(None) => {
                thread::sleep(LOOK);
                continue;
            }
            Err(e) => e.to_string(),
        };
        // Both calls fail if the child has ended meanwhile.
        let _ = child.kill();
        let _ = child.wait();
        return Err(over);
    }
}
