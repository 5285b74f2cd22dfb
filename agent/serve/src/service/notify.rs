//! Messages to the service manager, if there is one (`sd_notify(3)`): ready, reloading, stopping, alive.

use crate::service::http_state;
use crate::service::source_thread::SourceHandle;
use nfscope_text::console::warn;
use sd_notify::NotifyState;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// Silence of the process that serves HTTP after which the watchdog is not notified. The agent replaces a process that has been silent for
/// half of this.
const SILENT: Duration = Duration::from_secs(20);

/// Reports that the agent measures, or waits for the modules that it is to measure.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Guard of a reload: it ends when this is dropped.
#[derive(Debug)]
pub struct Reloading(());

impl Drop for Reloading {
    fn drop(&mut self) {
        ready();
    }
}

/// Reports that settings are being read again, until the returned guard is dropped.
pub fn reloading() -> Reloading {
    // The time distinguishes this reload from an earlier one, for systemd 253 and later (`Type=notify-reload`).
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
    Reloading(())
}

/// Reports that the agent ends because it was asked to.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Sets the status line of `systemctl status`.
pub fn status(line: &str) {
    tell(&[NotifyState::Status(line)]);
}

/// Notifies the watchdog of the service manager, twice in its time, that the agent is alive. Before that the thread with the probes must
/// have answered, because an agent that cannot read its probes is of no use. The process that serves HTTP must have given a sign of life,
/// too.
///
/// # Errors
/// When the source's thread has ended.
pub async fn watchdog(source: &SourceHandle) -> anyhow::Result<Infallible> {
    let Some(time) = sd_notify::watchdog_enabled() else {
        return std::future::pending().await;
    };
    loop {
        source.answers().await?;
        // The agent replaces a silent process long before this limit. The check is for an agent that fails to replace it.
        if http_state::silent_for() < time.max(SILENT) {
            tell(&[NotifyState::Watchdog]);
        }
        sleep(time / 2).await;
    }
}

/// Sends a message. It has no effect if no service manager has given its socket.
fn tell(state: &[NotifyState<'_>]) {
    if let Err(e) = sd_notify::notify(state) {
        warn(&format!(
            "cannot tell the service manager through the socket in NOTIFY_SOCKET: {e}; the unit needs NotifyAccess=main"
        ));
    }
}
