//! Reports refused passwords, but not each of them.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Time between two warnings.
pub(super) const PERIOD: Duration = Duration::from_secs(60);

/// Refused passwords that have not been reported.
#[derive(Default)]
pub(super) struct Refusals {
    untold: Mutex<Option<Untold>>,
    news: Notify,
}

#[derive(Clone, Copy)]
struct Untold {
    count: u64,
    last: IpAddr,
}

impl Refusals {
    /// Notes that a password from this address has been refused.
    pub(super) fn note(&self, from: IpAddr) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        let count = untold.map_or(0, |u| u.count) + 1;
        let last = from.to_canonical();
        *untold = Some(Untold { count, last });
        self.news.notify_one();
    }

    /// Reports the first refusal at once, and later ones at most once in this time.
    pub(super) async fn tell(&self, period: Duration, warn: impl Fn(&str)) -> Infallible {
        loop {
            self.news.notified().await;
            if let Some(line) = self.take() {
                warn(&line);
                sleep(period).await;
            }
        }
    }

    fn take(&self) -> Option<String> {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.take().map(|Untold { count, last }| match count {
            1 => format!("a password from {last} was refused"),
            _ => format!("{count} passwords were refused, the last from {last}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn the_first_is_told_at_once_and_the_others_together() {
        let refusals = Arc::new(Refusals::default());
        let (tell, mut told) = mpsc::unbounded_channel();
        let running = refusals.clone();
        let period = Duration::from_millis(200);
        tokio::spawn(async move {
            running
                .tell(period, |line| tell.send(line.to_owned()).unwrap())
                .await
        });
        refusals.note("::ffff:192.0.2.1".parse().unwrap());
        let first = told.recv().await.unwrap();
        assert_eq!(first, "a password from 192.0.2.1 was refused");
        for i in 2..=9 {
            refusals.note(IpAddr::from([192, 0, 2, i]));
        }
        assert_eq!(
            told.recv().await.unwrap(),
            "8 passwords were refused, the last from 192.0.2.9"
        );
    }
}
