//! A channel that several threads feed, so that none of them waits for another.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Events that may wait for the loop. If there are more, the sending threads wait.
const QUEUE: usize = 1024;

/// Sender of a thread's events.
#[derive(Debug)]
pub struct EventSender<E>(SyncSender<E>);

/// Creates the channel of one event loop.
pub fn channel<E>() -> (EventSender<E>, Receiver<E>) {
    let (sender, events) = sync_channel(QUEUE);
    (EventSender(sender), events)
}

impl<E: Send + 'static> EventSender<E> {
    /// Starts a thread that sends these events until there are no more, or until the receiver is gone. The thread is never joined: it ends
    /// with the program.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn spawn(
        &self,
        name: &str,
        events: impl Iterator<Item = E> + Send + 'static,
    ) -> io::Result<()> {
        let sender = self.0.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                for event in events {
                    if sender.send(event).is_err() {
                        return;
                    }
                }
            })?;
        Ok(())
    }
}

/// Results of `next` up to its first error, which is the last item.
pub fn until_error<T, E>(
    mut next: impl FnMut() -> Result<T, E>,
) -> impl Iterator<Item = Result<T, E>> {
    let mut failed = false;
    std::iter::from_fn(move || {
        if failed {
            return None;
        }
        let result = next();
        failed = result.is_err();
        Some(result)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_feed_one_channel_and_an_error_is_the_last_event() {
        let (sender, events) = channel();
        sender.spawn("numbers", [1, 2].into_iter().map(Ok)).unwrap();
        let mut left = 2;
        let next = move || {
            left -= 1;
            if left > 0 { Ok(3) } else { Err("end") }
        };
        sender.spawn("until", until_error(next)).unwrap();
        drop(sender);
        let mut all: Vec<_> = events.iter().collect();
        all.sort_unstable();
        assert_eq!(all, [Ok(1), Ok(2), Ok(3), Err("end")]);
    }
}
