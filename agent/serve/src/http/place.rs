//! A connection's place among all connections, as the connection holds it.

use super::places::{NoStream, Places};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Sender that ends a connection when it is dropped. A message before that says that the connection's place is taken.
pub(super) type End = oneshot::Sender<()>;

/// Places of all connections.
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

    /// Takes the place of one connection.
    pub(super) fn make_room(&self) {
        tell(self.lock().make_room());
    }

    /// Ends every stream; see [`Places::end_streams`].
    pub(super) fn end_streams(&self) {
        self.lock().end_streams();
    }
}

/// Lets a connection that has lost its place answer its request. A connection that has ended meanwhile needs no message.
fn tell(displaced: Option<End>) {
    if let Some(end) = displaced {
        let _ = end.send(());
    }
}

/// Place of a connection, which is freed when this is dropped.
pub(super) struct Place {
    id: u64,
    all: AllPlaces,
}

impl Place {
    /// Notes that the header is complete.
    pub(super) fn answer(&self) {
        self.all.lock().answer(self.id);
    }

    /// Returns true if another connection has the place now.
    pub(super) fn is_taken(&self) -> bool {
        !self.all.lock().has(self.id)
    }

    /// Turns the connection into a stream, if it may become one.
    pub(super) fn stream(&self) -> Result<(), NoStream> {
        self.all.lock().stream(self.id)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.lock().leave(self.id);
    }
}
