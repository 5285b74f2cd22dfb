//! Places of connections, and the one that is evicted when no place is left. There is no socket and no clock here.
//!
//! Every connection is accepted at once: a scrape that waits behind idle connections is lost. If places run out, the peer with the most
//! connections loses one: its oldest without a complete header, or else its oldest that still takes its answer. An evicted connection may
//! tell its peer, so the sender that ends it is returned.

use std::net::{IpAddr, Ipv6Addr};

/// Most connections at once. Each costs a descriptor, and 16 KiB while its header arrives.
const PLACES: usize = 320;
/// Most connections of one peer; the other places stay in reserve for other peers.
pub(super) const PEER_PLACES: usize = 256;
/// Most streams of one peer. A browser has six connections to a server, and pages that count or watch need one of them for everything else.
/// The service has [`MAX_SUBSCRIBERS`](crate::service::slow_subscribers::MAX_SUBSCRIBERS) for all.
pub const PEER_STREAMS: usize = 5;

/// Progress of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// The header is not complete.
    Header,
    /// The connection waits for its answer, or sends it.
    Answer,
    /// The connection sends lines for as long as its peer likes.
    Stream,
}

/// Reason why a connection may not become a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoStream {
    /// The peer has enough streams.
    TooMany,
    /// The connection came before the rules for streams that hold now.
    TooOld,
}

struct Connection<E> {
    id: u64,
    peer: IpAddr,
    stage: Stage,
    /// Value that ends the connection when it is dropped.
    end: E,
}

/// All connections, the oldest first.
pub(super) struct Places<E> {
    next: u64,
    /// Number of the first connection that may become a stream.
    streams_from: u64,
    connections: Vec<Connection<E>>,
}

impl<E> Default for Places<E> {
    fn default() -> Self {
        Places {
            next: 0,
            streams_from: 0,
            connections: Vec::new(),
        }
    }
}

impl<E> Places<E> {
    /// Gives a place to a connection from this address. Dropping `end` ends the connection. Also returns the `end` of the evicted
    /// connection, if there is one.
    pub(super) fn admit(&mut self, from: IpAddr, end: E) -> (u64, Option<E>) {
        let peer = peer(from);
        let own = self.count(peer);
        let displaced = if own >= PEER_PLACES {
            self.take_one(|p| p == peer)
        } else if self.connections.len() >= PLACES {
            self.make_room()
        } else {
            None
        };
        let id = self.next;
        self.next += 1;
        self.connections.push(Connection {
            id,
            peer,
            stage: Stage::Header,
            end,
        });
        (id, displaced)
    }

    /// Takes the place of a connection of the peer that has the most.
    pub(super) fn make_room(&mut self) -> Option<E> {
        let ended = |c: &Connection<E>| c.stage != Stage::Stream;
        let most = (self.connections.iter().filter(|c| ended(c)))
            .map(|c| self.count(c.peer))
            .max();
        let crowds: Vec<_> = (self.connections.iter())
            .filter(|c| Some(self.count(c.peer)) == most)
            .map(|c| c.peer)
            .collect();
        self.take_one(|peer| crowds.contains(&peer))
    }

    /// Notes that the header of a connection is complete.
    pub(super) fn answer(&mut self, id: u64) {
        self.set(id, Stage::Answer);
    }

    /// Turns a connection into a stream, if it may become one.
    pub(super) fn stream(&mut self, id: u64) -> Result<(), NoStream> {
        let own = self.find(id).map(|c| c.peer);
        let peer = own.filter(|_| id >= self.streams_from);
        let peer = peer.ok_or(NoStream::TooOld)?;
        let streams = |c: &&Connection<E>| c.peer == peer && c.stage == Stage::Stream;
        if self.connections.iter().filter(streams).count() >= PEER_STREAMS {
            return Err(NoStream::TooMany);
        }
        self.set(id, Stage::Stream);
        Ok(())
    }

    /// Ends every stream. No present connection may become one later, because it came by rules that hold no longer.
    pub(super) fn end_streams(&mut self) {
        self.connections.retain(|c| c.stage != Stage::Stream);
        self.streams_from = self.next;
    }

    /// Removes a connection that has ended.
    pub(super) fn leave(&mut self, id: u64) {
        self.connections.retain(|c| c.id != id);
    }

    /// Returns true if a connection still has its place.
    pub(super) fn has(&mut self, id: u64) -> bool {
        self.find(id).is_some()
    }

    fn find(&mut self, id: u64) -> Option<&mut Connection<E>> {
        self.connections.iter_mut().find(|c| c.id == id)
    }

    fn set(&mut self, id: u64, stage: Stage) {
        if let Some(c) = self.find(id) {
            c.stage = stage;
        }
    }

    fn count(&self, peer: IpAddr) -> usize {
        self.connections.iter().filter(|c| c.peer == peer).count()
    }

    /// Takes the place of the first connection in line of these peers.
    fn take_one(&mut self, of: impl Fn(IpAddr) -> bool) -> Option<E> {
        let candidates = self.connections.iter().enumerate();
        let first = candidates
            .filter(|(_, c)| c.stage != Stage::Stream && of(c.peer))
            .min_by_key(|(age, c)| (c.stage, *age));
        let (at, _) = first?;
        Some(self.connections.remove(at).end)
    }
}

/// Peer that a connection counts for: an IPv4 address, or the upper half of an IPv6 address, because a host chooses the lower half as it
/// likes.
pub(super) fn peer(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::{Rc, Weak};

    /// Places, and a handle of each connection that shows whether it still has its place.
    #[derive(Default)]
    struct Door {
        places: Places<Rc<()>>,
        admitted: Vec<(u64, Weak<()>)>,
    }

    impl Door {
        fn admit(&mut self, from: &str) -> u64 {
            let end = Rc::new(());
            let weak = Rc::downgrade(&end);
            let (id, _) = self.places.admit(from.parse().unwrap(), end);
            self.admitted.push((id, weak));
            id
        }

        fn ended(&self) -> Vec<u64> {
            let gone = self
                .admitted
                .iter()
                .filter(|(_, end)| end.strong_count() == 0);
            gone.map(|(id, _)| *id).collect()
        }
    }

    #[test]
    fn the_oldest_without_a_header_gives_way_and_then_the_oldest_answer() {
        let mut door = Door::default();
        let ids: Vec<_> = (0..PEER_PLACES).map(|_| door.admit("192.0.2.1")).collect();
        for id in [&ids[..2], &ids[4..]].concat() {
            door.places.answer(id);
        }
        assert!(door.ended().is_empty());
        for _ in 0..2 {
            let new = door.admit("192.0.2.1");
            door.places.answer(new);
        }
        assert_eq!(door.ended(), ids[2..4]);
        door.admit("192.0.2.1");
        assert_eq!(door.ended(), [ids[0], ids[2], ids[3]]);
    }

    #[test]
    fn whoever_has_the_most_gives_way_and_others_keep_their_places() {
        let mut door = Door::default();
        let other = door.admit("192.0.2.2");
        for _ in 0..10 * PLACES {
            door.admit("192.0.2.1");
        }
        // A second crowd takes the reserve. Then the first crowd shrinks until both have the same size.
        for _ in 0..10 * PLACES {
            door.admit("192.0.2.3");
        }
        assert!(!door.ended().contains(&other));
        assert_eq!(door.places.connections.len(), PLACES);
        let count = |p: &str| door.places.count(p.parse().unwrap());
        assert_eq!(count("192.0.2.1").abs_diff(count("192.0.2.3")), 1);
        let newcomer = door.admit("192.0.2.4");
        assert!(!door.ended().contains(&newcomer));
    }

    #[test]
    fn a_host_is_one_peer_whatever_its_address() {
        let mut door = Door::default();
        for i in 0..2 * PLACES {
            door.admit(&format!("2001:db8::{i:x}"));
        }
        assert_eq!(door.places.connections.len(), PEER_PLACES);
        door.admit("::ffff:192.0.2.1");
        let mapped = "192.0.2.1".parse().unwrap();
        assert_eq!(door.places.count(mapped), 1);
    }

    #[test]
    fn streams_stay_and_are_few() {
        let mut door = Door::default();
        let streams: Vec<_> = (0..PEER_STREAMS).map(|_| door.admit("::1")).collect();
        assert!(streams.iter().all(|id| door.places.stream(*id).is_ok()));
        let id = door.admit("::1");
        assert_eq!(door.places.stream(id), Err(NoStream::TooMany));
        let from_elsewhere = door.admit("2001:db8::1");
        assert_eq!(door.places.stream(from_elsewhere), Ok(()));
        for _ in 0..2 * PLACES {
            door.admit("::1");
        }
        assert!(streams.iter().all(|id| !door.ended().contains(id)));
        door.places.leave(streams[0]);
        let id = door.admit("::1");
        assert_eq!(door.places.stream(id), Ok(()));
        // If only streams are left, no connection is evicted.
        let mut only = Door::default();
        let id = only.admit("::1");
        assert_eq!(only.places.stream(id), Ok(()));
        assert_eq!(only.places.make_room(), None);
        assert!(only.ended().is_empty());
    }

    #[test]
    fn streams_end_when_the_rules_change_and_what_came_before_becomes_none() {
        let mut door = Door::default();
        let [stream, asks] = [door.admit("::1"), door.admit("::1")];
        assert_eq!(door.places.stream(stream), Ok(()));
        door.places.answer(asks);
        door.places.end_streams();
        assert_eq!(door.ended(), [stream]);
        assert_eq!(door.places.stream(asks), Err(NoStream::TooOld));
        let new = door.admit("::1");
        assert_eq!(door.places.stream(new), Ok(()));
    }
}
