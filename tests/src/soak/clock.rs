//! Running time of a soak, without its pauses.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::onlookers::Onlookers;
use crate::server::Server;

/// Time since the beginning, and its pauses.
#[derive(Clone, Debug)]
pub struct Clock {
    started: Instant,
    paused: Duration,
    pauses: usize,
    asked_by: PathBuf,
}

impl Clock {
    /// Begins now. A file with this name asks for a pause; one of an earlier run is removed.
    pub fn start(asked_by: &Path) -> Clock {
        // The file rarely exists.
        let _ = fs::remove_file(asked_by);
        Clock {
            started: Instant::now(),
            paused: Duration::ZERO,
            pauses: 0,
            asked_by: asked_by.to_owned(),
        }
    }

    /// Time that the machine has run.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.paused)
    }

    /// Number of pauses.
    pub fn pauses(&self) -> usize {
        self.pauses
    }

    /// Stops the machine and its clock while the file asks for it, and waits. Onlookers ask nothing meanwhile.
    ///
    /// # Errors
    /// When QEMU does not answer, or has ended.
    pub fn pause_if_asked(&mut self, server: &Server, onlookers: &Onlookers) -> Result<()> {
        if !self.asked_by.exists() {
            return Ok(());
        }
        let _nobody = onlookers.pause();
        server.halt()?;
        let since = Instant::now();
        eprintln!(
            "the machine stands still; to let it go on: rm {}",
            self.asked_by.display()
        );
        while self.asked_by.exists() {
            ensure!(
                !server.has_ended(),
                "the machine ended while it stood still"
            );
            thread::sleep(Duration::from_millis(500));
        }
        server.go_on()?;
        self.pauses += 1;
        self.paused += since.elapsed();
        Ok(())
    }
}
