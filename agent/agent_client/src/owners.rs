//! Watches the owners of NFSv4 leases during a window: clients with the same owner name end each other's lease.
//!
//! The kernel lists one client at a time under such a name (`/proc/fs/nfsd/clients/*/info`), so the addresses of these clients alternate. A
//! client whose address changes does so once, and has an owner name of its own.

use nfscope_diagnose::observed::SharedOwner;
use nfscope_source::host_table;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const CLIENTS: &str = "/proc/fs/nfsd/clients";
/// Sampling interval. Clients with a shared name live for some tenths of a second at a time.
const INTERVAL: Duration = Duration::from_millis(200);
/// Limit of clients per sample, because the file of each is read.
const MOST_CLIENTS: usize = 200;
/// Most names that are followed.
const MOST_NAMES: usize = 1000;

/// Addresses under each owner name, in the order in which they appeared.
#[derive(Debug, Default)]
pub struct Seen {
    by_name: BTreeMap<String, Vec<String>>,
}

impl Seen {
    fn look(&mut self, clients: &Path) {
        let Ok(entries) = host_table::entries(CLIENTS, clients) else {
            return;
        };
        let infos = entries.take(MOST_CLIENTS);
        let mut infos: Vec<_> = infos
            .filter_map(|e| {
                let id: u64 = e.file_name().to_str()?.parse().ok()?;
                Some((id, host_table::read_at(CLIENTS, e.path().join("info"))?))
            })
            .collect();
        // The kernel numbers clients in the order in which they appear.
        infos.sort_by_key(|(id, _)| *id);
        for (_, info) in infos {
            self.add(&info);
        }
    }

    fn add(&mut self, info: &str) {
        let field = |name: &str| {
            let of = info.lines().filter_map(|line| line.split_once(':'));
            let mut of = of.filter(|(n, _)| *n == name);
            of.next()
                .map(|(_, value)| value.trim().trim_matches('"').to_owned())
        };
        let (Some(name), Some(address)) = (field("name"), field("address")) else {
            return;
        };
        let Ok(address) = address.parse::<SocketAddr>() else {
            return;
        };
        if self.by_name.len() >= MOST_NAMES && !self.by_name.contains_key(&name) {
            return;
        }
        let address = address.ip().to_canonical().to_string();
        let came = self.by_name.entry(name).or_default();
        // An address is kept only if it differs from the last one, which is enough to see an address come back.
        if came.last() != Some(&address) && came.len() < MOST_NAMES {
            came.push(address);
        }
    }

    /// Owner names under which an address came back after another one.
    fn shared(&self) -> Vec<SharedOwner> {
        let returned = |came: &&Vec<String>| {
            let before = |i: usize| came[..i].contains(&came[i]);
            (0..came.len()).any(before)
        };
        let shared = self.by_name.iter().filter(|(_, came)| returned(came));
        shared
            .map(|(name, came)| SharedOwner {
                name: name.clone(),
                addresses: came.iter().cloned().collect(),
            })
            .collect()
    }
}

/// A thread that watches the owners until this is dropped.
#[derive(Debug)]
pub struct Owners {
    seen: Arc<Mutex<Seen>>,
    ended: Arc<AtomicBool>,
}

impl Owners {
    /// Starts watching this host's server.
    pub fn watch() -> Owners {
        let owners = Owners {
            seen: Arc::default(),
            ended: Arc::default(),
        };
        let (seen, ended) = (owners.seen.clone(), owners.ended.clone());
        let looks = move || {
            while !ended.load(Ordering::Relaxed) {
                seen.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .look(Path::new(CLIENTS));
                std::thread::sleep(INTERVAL);
            }
        };
        // An error is ignored: without the thread no owners are known, and none are reported.
        let _ = std::thread::Builder::new()
            .name("owners".to_owned())
            .spawn(looks);
        owners
    }

    /// Ends watching, and returns the shared names.
    pub fn end(self) -> Vec<SharedOwner> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.shared()
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn client(folder: &Path, id: u64, name: &str, address: &str) {
        let of = folder.join(id.to_string());
        fs::create_dir(&of).unwrap();
        let info = format!(
            "clientid: 0x{id:x}\naddress: \"{address}\"\nstatus: confirmed\nname: \"{name}\"\nminor version: 2\n"
        );
        fs::write(of.join("info"), info).unwrap();
    }

    fn gone(folder: &Path, id: u64) {
        fs::remove_dir_all(folder.join(id.to_string())).unwrap();
    }

    #[test]
    fn addresses_that_come_in_turn_under_one_name_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut seen) = (folder.path(), Seen::default());
        client(path, 1, "Linux NFSv4.2 clone", "10.0.0.7:701");
        client(path, 2, "Linux NFSv4.2 other", "10.0.0.9:701");
        seen.look(path);
        gone(path, 1);
        client(path, 3, "Linux NFSv4.2 clone", "10.0.0.8:702");
        seen.look(path);
        // An address that changed once is not shared.
        assert_eq!(seen.shared(), []);
        gone(path, 3);
        client(path, 4, "Linux NFSv4.2 clone", "[::ffff:10.0.0.7]:703");
        seen.look(path);
        let shared = seen.shared();
        assert_eq!(shared.len(), 1);
        assert_eq!(shared[0].name, "Linux NFSv4.2 clone");
        assert!(shared[0].addresses.iter().eq(["10.0.0.7", "10.0.0.8"]));
    }

    #[test]
    fn two_of_one_name_at_a_time_are_in_turn_whichever_the_kernel_lists_first() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut seen) = (folder.path(), Seen::default());
        client(path, 9, "Linux NFSv4.2 clone", "10.0.0.7:701");
        client(path, 10, "Linux NFSv4.2 clone", "10.0.0.8:701");
        seen.look(path);
        assert_eq!(seen.shared(), []);
        seen.look(path);
        assert_eq!(seen.shared().len(), 1);
        // Without a list of clients no owners are known.
        let mut nothing = Seen::default();
        nothing.look(&path.join("missing"));
        assert_eq!(nothing.shared(), []);
    }
}
