//! A connection's place among all, as the connection holds it.

use super::places::{NoStream, Places};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// What ends a connection when it is dropped. Before that it may be sent that its place is taken.
pub(super) type End = oneshot::Sender<()>;

/// The places of all connections.
#[derive(Clone, Default)]
pub(super) struct AllPlaces(Arc<Mutex<Places<End>>>);

impl AllPlaces {
    fn lock(&self) -> MutexGuard<'_, Places<End>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a place to a connection from this address.
    pub(super) fn admit(&self, from: IpAddr, end: End) -> Place {
        let (id, displaced) = self.lock().admit(from, end);
        tell(displaced);
        Place {
            id,
            all: self.clone(),
        }
    }

    /// Takes its place from a connection.
    pub(super) fn make_room(&self) {
        tell(self.lock().make_room());
    }

    /// Ends every stream; see [`Places::end_streams`].
    pub(super) fn end_streams(&self) {
        self.lock().end_streams();
    }
}

/// Lets a connection that has lost its place answer what it was asked. One that has ended meanwhile needs no word.
fn tell(displaced: Option<End>) {
    if let Some(end) = displaced {
        let _ = end.send(());
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

    /// True where another connection has it now.
    pub(super) fn is_taken(&self) -> bool {
        !self.all.lock().has(self.id)
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
