//! Checks every page and every window of a store.

use crate::name;
use crate::store::database::Store;
use crate::store::entry::Entry;
use crate::store::error::Error;
use rusqlite::Connection;
use std::collections::HashSet;

/// The result of checking one baseline.
#[derive(Debug)]
pub struct Checked {
    /// Entry of the baseline.
    pub entry: Entry,
    /// Error that was found.
    pub fault: Option<Error>,
}

impl Store {
    /// Checks the pages of the file, and every window of these baselines; of all if none is named.
    ///
    /// # Errors
    /// When the file itself is damaged, or a name is unknown.
    pub fn check(&self, names: &[String]) -> Result<Vec<Checked>, Error> {
        // The transaction shows one moment: a recording in progress goes on meanwhile.
        let _moment = self.db.unchecked_transaction().map_err(self.wrong())?;
        match first_fault(&self.db).map_err(self.wrong())?.as_str() {
            "ok" => {}
            why => return Err(self.damaged(why.lines().next().unwrap_or_default())),
        }
        let entries = match names {
            [] => self.list()?,
            names => {
                let each = names.iter().map(|n| self.entry(n));
                each.collect::<Result<_, _>>()?
            }
        };
        let each = entries.into_iter().map(|entry| Checked {
            fault: self.check_one(&entry).err(),
            entry,
        });
        Ok(each.collect())
    }

    /// Checks every page and every window.
    pub(super) fn verify(&self) -> Result<(), Error> {
        match self.check(&[])?.into_iter().find_map(|c| c.fault) {
            None => Ok(()),
            Some(fault) => Err(fault),
        }
    }

    fn check_one(&self, entry: &Entry) -> Result<(), Error> {
        name::check(&entry.metadata.name).map_err(|why| self.damaged(why))?;
        let series = self.series(entry)?;
        let known: HashSet<u32> = series.iter().map(|l| l.id).collect();
        for w in self.windows(entry, |_| true) {
            if !w?.samples.iter().all(|(id, _)| known.contains(id)) {
                return Err(self.damaged("a window has a series without a name"));
            }
        }
        Ok(())
    }
}

/// Checks pages and indexes, and that they match each other.
fn first_fault(db: &Connection) -> rusqlite::Result<String> {
    db.query_row("PRAGMA integrity_check(1)", [], |r| r.get(0))
}
