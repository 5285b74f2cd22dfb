//! Answers that go on until the peer hangs up.

use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Lines in one frame.
const LINES_PER_FRAME: usize = 64;
/// Time for a peer to take some of its waiting lines; a user who stops a terminal for a while may continue.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

/// Deadline of a connection. A stream extends it as long as its peer reads.
#[derive(Debug, Clone)]
pub(super) struct Deadline {
    at: watch::Sender<Instant>,
    /// Time before the deadline by which an answer has to begin.
    last_words: Duration,
}

impl Deadline {
    /// Deadline after this time. Its last part, `last_words`, is for an answer that says that there is none.
    pub(super) fn after(time: Duration, last_words: Duration) -> Self {
        Deadline {
            at: watch::Sender::new(Instant::now() + time),
            last_words,
        }
    }

    /// Returns when the deadline has passed.
    pub(super) async fn passed(&self) {
        self.passed_but(Duration::ZERO).await;
    }

    /// Returns when an answer has to begin.
    pub(super) async fn calls_for_an_answer(&self) {
        self.passed_but(self.last_words).await;
    }

    async fn passed_but(&self, left: Duration) {
        let mut changes = self.at.subscribe();
        loop {
            let at = *changes.borrow_and_update();
            let now = Instant::now();
            if now + left >= at {
                return;
            }
            // `at` is later than `now` by more than `left`, so the subtraction does not underflow.
            tokio::select! {
                () = sleep_until(at - left) => {}
                _ = changes.changed() => {}
            }
        }
    }

    /// Sets the deadline to now.
    pub(super) fn pass(&self) {
        self.at.send_replace(Instant::now());
    }

    fn put_off(&self, time: Duration) {
        self.at.send_replace(Instant::now() + time);
    }
}

/// A body of lines that are sent as they come.
#[derive(Debug)]
pub(super) struct Stream {
    lines: Receiver<Bytes>,
    deadline: Deadline,
}

impl Stream {
    pub(super) fn new(lines: Receiver<Bytes>, deadline: Deadline) -> Self {
        deadline.put_off(READ_TIMEOUT);
        Stream { lines, deadline }
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        let mut lines = Vec::new();
        if ready!(this.lines.poll_recv_many(cx, &mut lines, LINES_PER_FRAME)) == 0 {
            return Poll::Ready(None);
        }
        // A poll for more lines means that the peer has taken the last ones.
        this.deadline.put_off(READ_TIMEOUT);
        Poll::Ready(Some(Ok(Frame::data(lines.concat().into()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_deadline_passes_unless_put_off() {
        let deadline = Deadline::after(Duration::from_millis(50), Duration::ZERO);
        deadline.put_off(Duration::from_millis(300));
        let begun = Instant::now();
        deadline.passed().await;
        assert!(begun.elapsed() >= Duration::from_millis(250));
    }
}
