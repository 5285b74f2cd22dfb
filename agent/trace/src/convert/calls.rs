//! Calls that wait for their reply.

use super::{ImportError, Imported};
use crate::format::Writer;
use crate::operation::Operation;
use std::collections::{HashMap, VecDeque};
use std::io::Write;

/// Calls that may wait at once. The oldest one is then taken as unanswered.
const WAITING: usize = 65_536;

/// Clients by address. Their names in the trace are c0, c1, c2, in the order of their first operation.
pub struct Clients(HashMap<String, u32>);

impl Clients {
    pub fn new() -> Clients {
        Clients(HashMap::new())
    }

    pub fn number<W: Write + Send>(&mut self, address: &str, writer: &mut Writer<W>) -> u32 {
        if let Some(number) = self.0.get(address) {
            return *number;
        }
        let header = writer.header_mut();
        let number = header.clients.len() as u32;
        header.clients.push(format!("c{number}"));
        self.0.insert(address.to_owned(), number);
        number
    }
}

/// Times of a trace, from that of its first call on.
#[derive(Default)]
pub struct Clock(Option<u64>);

impl Clock {
    /// Nanoseconds since the first time. A time before it counts as its beginning.
    pub fn since<W: Write + Send>(&mut self, at: u64, writer: &mut Writer<W>) -> u64 {
        let began = *self.0.get_or_insert_with(|| {
            writer.header_mut().began = at;
            at
        });
        at.saturating_sub(began)
    }
}

/// Call of a client, by its transaction.
pub type Key = (u32, u64);

/// Calls that wait for their reply; a COMPOUND has several operations.
pub struct Calls {
    waiting: HashMap<Key, Vec<Operation>>,
    order: VecDeque<Key>,
}

impl Calls {
    pub fn new() -> Calls {
        Calls {
            waiting: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Adds a call.
    pub fn call<W: Write + Send>(
        &mut self,
        key: Key,
        operations: Vec<Operation>,
        imported: &mut Imported,
        writer: &mut Writer<W>,
    ) -> Result<(), ImportError> {
        if self.waiting.contains_key(&key) {
            imported.repeated += 1;
            return Ok(());
        }
        self.waiting.insert(key, operations);
        self.order.push_back(key);
        // Keys of answered calls leave the order here, too.
        while self.waiting.len() > WAITING || self.order.len() > 4 * WAITING {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            self.give_up(oldest, imported, writer)?;
        }
        Ok(())
    }

    /// The call of a reply.
    pub fn reply(&mut self, key: Key, imported: &mut Imported) -> Option<Vec<Operation>> {
        let call = self.waiting.remove(&key);
        imported.without_call += u64::from(call.is_none());
        call
    }

    /// Writes the calls that still wait, as unanswered.
    pub fn finish<W: Write + Send>(
        mut self,
        imported: &mut Imported,
        writer: &mut Writer<W>,
    ) -> Result<(), ImportError> {
        while let Some(oldest) = self.order.pop_front() {
            self.give_up(oldest, imported, writer)?;
        }
        Ok(())
    }

    fn give_up<W: Write + Send>(
        &mut self,
        key: Key,
        imported: &mut Imported,
        writer: &mut Writer<W>,
    ) -> Result<(), ImportError> {
        for operation in self.waiting.remove(&key).unwrap_or_default() {
            imported.unanswered += 1;
            imported.operations += 1;
            writer.push(operation)?;
        }
        Ok(())
    }
}
