//! A connection's place among all, as the connection holds it.

use super::places::{NoStream, Places};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// What ends a connection when it is dropped.
pub(super) type End = oneshot::Sender<Infallible>;

/// The places of all connections.
#[derive(Clone, Default)]
pub(super) struct AllPlaces(Arc<Mutex<Places<End>>>);

impl AllPlaces {
    fn lock(&self) -> MutexGuard<'_, Places<End>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a place to a connection from this address.
    pub(super) fn admit(&self, from: IpAddr, end: End) -> Place {
        Place {
            id: self.lock().admit(from, end),
            all: self.clone(),
        }
    }

    /// Ends a connection.
    pub(super) fn make_room(&self) {
        self.lock().make_room();
    }

    /// Ends every stream; see [`Places::end_streams`].
    pub(super) fn end_streams(&self) {
        self.lock().end_streams();
    }
}

/// A connection's place. It is free again when this is dropped.
pub(super) struct Place {
    id: u64,
    all: AllPlaces,
}

impl Place {
    /// The header is complete.
    pub(super) fn answer(&self) {
        self.all.lock().answer(self.id);
    }

    /// The answer goes on, where it may.
    pub(super) fn stream(&self) -> Result<(), NoStream> {
        self.all.lock().stream(self.id)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.lock().leave(self.id);
    }
}
