//! What the service manager is told, where one listens (`sd_notify(3)`): ready, reloading, stopping, alive.

use crate::service::http_state;
use crate::service::source_thread::SourceHandle;
use nfscope_text::console::warn;
use sd_notify::NotifyState;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// The process that serves HTTP is replaced when it has been silent for half of this.
const SILENT: Duration = Duration::from_secs(20);

/// The agent measures, or waits for the modules that it is to measure.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Settings are being read again, until this is dropped.
#[derive(Debug)]
pub struct Reloading(());

impl Drop for Reloading {
    fn drop(&mut self) {
        ready();
    }
}

/// Settings are being read again, as long as what this returns lives.
pub fn reloading() -> Reloading {
    // With the time, by which systemd 253 and later tell this reload from one before (`Type=notify-reload`).
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
    Reloading(())
}

/// The agent ends because it was asked to.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// What `systemctl status` shows in a line of its own.
pub fn status(line: &str) {
    tell(&[NotifyState::Status(line)]);
}

/// Tells the watchdog of the service manager, twice in its time, that the agent is alive. Each time the thread with the probes has
/// answered before, because an agent that serves HTTP and cannot read its probes is of no use. So must the process that serves HTTP.
///
/// # Errors
/// When the source's thread has ended.
pub async fn watchdog(source: &SourceHandle) -> anyhow::Result<Infallible> {
    let Some(time) = sd_notify::watchdog_enabled() else {
        return std::future::pending().await;
    };
    loop {
        source.answers().await?;
        // One that does not answer is replaced long before that: this is for the case that nobody replaces it.
        if http_state::silent_for() < time.max(SILENT) {
            tell(&[NotifyState::Watchdog]);
        }
        sleep(time / 2).await;
    }
}

/// Without effect where no service manager has named its socket.
fn tell(state: &[NotifyState<'_>]) {
    if let Err(e) = sd_notify::notify(state) {
        warn(&format!(
            "cannot tell the service manager through the socket in NOTIFY_SOCKET: {e}; the unit needs NotifyAccess=main"
        ));
    }
}
