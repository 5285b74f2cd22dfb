//! Memory for answers that requests do not share: windows of the page, which every peer may ask for with a range of its own.
//!
//! Expositions are made once for all requests at the same time. A range of the history is not: it may have megabytes, and stays in memory
//! while its peer reads it. These answers together have a limit here. A request beyond the limit is told to come again.

use crate::http::places;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// Most bytes of all such answers under way.
const MOST: usize = 96 << 20;
/// Most bytes for one peer, so that the pages of other peers find room.
const PEER_MOST: usize = 48 << 20;

/// Bytes of all answers, by peer.
#[derive(Debug, Clone, Default)]
pub(super) struct LargeAnswers(Arc<Mutex<HashMap<IpAddr, usize>>>);

impl LargeAnswers {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if even a small answer has no room. The check comes before the answer is made.
    pub(super) fn full(&self, address: IpAddr) -> bool {
        !self.fits(&self.lock(), places::peer(address), 1)
    }

    fn fits(&self, all: &HashMap<IpAddr, usize>, peer: IpAddr, more: usize) -> bool {
        let own = all.get(&peer).copied().unwrap_or_default();
        // The first answer of a peer may exceed the limit of one peer.
        (own == 0 || own + more <= PEER_MOST) && all.values().sum::<usize>() + more <= MOST
    }

    /// Reserves memory for this answer until it is sent; `None` if there is none.
    pub(super) fn hold(&self, address: IpAddr, body: Bytes) -> Option<Held> {
        let peer = places::peer(address);
        let mut all = self.lock();
        if !self.fits(&all, peer, body.len()) {
            return None;
        }
        let bytes = body.len();
        *all.entry(peer).or_default() += bytes;
        drop(all);
        Some(Held {
            left: body,
            bytes,
            peer,
            of: self.clone(),
        })
    }
}

/// An answer whose bytes count until it is sent, or until its connection has ended.
#[derive(Debug)]
pub(super) struct Held {
    left: Bytes,
    bytes: usize,
    peer: IpAddr,
    of: LargeAnswers,
}

/// Bytes that a connection gets at once. They are copied, because a slice of the answer would keep all of it in memory.
const PIECE: usize = 64 << 10;

impl Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.left.len().min(PIECE);
        if length == 0 {
            return Poll::Ready(None);
        }
        let piece = Bytes::copy_from_slice(&self.left.split_to(length));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut all = self.of.lock();
        let left = (all.get(&self.peer).copied().unwrap_or_default()).saturating_sub(self.bytes);
        match left {
            0 => drop(all.remove(&self.peer)),
            left => drop(all.insert(self.peer, left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn one_peer_takes_no_more_than_its_part() {
        let all = LargeAnswers::default();
        let body = Bytes::from(vec![0; PEER_MOST / 4]);
        let hold = |last| all.hold(ip(last), body.clone());
        let mut first: Vec<_> = (0..4).map(|_| hold(1).unwrap()).collect();
        assert!(hold(1).is_none() && all.full(ip(1)));
        assert!(!all.full(ip(2)), "somebody else finds room");
        let second: Vec<_> = (0..4).map(|_| hold(2).unwrap()).collect();
        assert!(all.full(ip(3)), "both have taken all");
        first.pop();
        let third = hold(3).unwrap();
        drop((first, second, third));
        assert!(all.lock().is_empty());
    }
}
