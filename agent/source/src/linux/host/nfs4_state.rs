//! State that NFSv4 clients hold, as the kernel lists it: a directory for each client in /proc/fs/nfsd/clients, with files `info` and
//! `states` (fs/nfsd/nfs4state.c, Linux 5.3 and later). The list is that of the server in the network namespace in which the file system
//! nfsd was mounted.

use crate::{host_table, lossless, nfs4_names};
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

const CLIENTS: &str = "/proc/fs/nfsd/clients";
const STATES: &str = "/proc/fs/nfsd/clients/ID/states";

/// Interval of readings: the kernel holds a client's lock while it lists some of its states.
const READ_AGAIN: Duration = Duration::from_secs(10);
/// Limits of clients, and of bytes of their states, which are some ten thousand states.
const MOST_CLIENTS: usize = 2000;
const MOST_BYTES: u64 = 2 << 20;
/// Limit of clients with locks that have series of their own.
const MOST_HOLDERS: usize = 100;

/// State of clients, kept between readings.
#[derive(Debug, Default)]
pub struct Nfs4State {
    read: Option<Instant>,
    found: Option<Found>,
}

/// Totals of all clients.
#[derive(Debug, Default, PartialEq)]
struct Found {
    clients: BTreeMap<String, u64>,
    callbacks: BTreeMap<String, u64>,
    states: BTreeMap<&'static str, u64>,
    /// Lock states by the address of their client, without port.
    locks: BTreeMap<String, u64>,
    /// Client whose files are being read.
    client: Option<String>,
    /// Names that clients give themselves.
    names: BTreeMap<IpAddr, String>,
    /// Number of states that an administrator revoked, summed over clients; `None` before Linux 6.9, and without clients.
    revoked: Option<u64>,
    oldest: u64,
    /// True if a limit left out clients or states.
    partial: bool,
}

/// Values of the labels. Each has a series even without a client.
const STATUSES: [&str; 4] = ["confirmed", "unconfirmed", "courtesy", "expirable"];
const CALLBACKS: [&str; 4] = ["up", "unknown", "down", "fault"];
const TYPES: [&str; 6] = [
    "open",
    "lock",
    "delegation_read",
    "delegation_write",
    "layout",
    "other",
];

impl Nfs4State {
    /// Adds the state of clients, if this host lists it.
    pub fn read(&mut self, s: &mut Snapshot) {
        if self.read.is_none_or(|at| at.elapsed() >= READ_AGAIN) {
            self.found = Found::read(Path::new(CLIENTS), MOST_CLIENTS, MOST_BYTES).ok();
            let names = self.found.as_mut().map(|f| std::mem::take(&mut f.names));
            nfs4_names::publish(names.unwrap_or_default());
            self.read = Some(Instant::now());
        }
        if let Some(found) = &self.found {
            found.fill(s);
        }
    }
}

impl Found {
    fn read(clients: &Path, most_clients: usize, most_bytes: u64) -> io::Result<Found> {
        let mut found = Found::default();
        let mut left = most_bytes;
        for (n, entry) in host_table::entries(CLIENTS, clients)?.enumerate() {
            if n >= most_clients {
                found.partial = true;
                break;
            }
            let directory = entry.path();
            let info = match host_table::try_read_at(
                "/proc/fs/nfsd/clients/ID/info",
                directory.join("info"),
            ) {
                Ok(info) => info,
                // The client has gone meanwhile.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                // Without permission to read the directories, no client's state is known.
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Err(e),
                Err(_) => continue,
            };
            found.add_info(&info);
            let Ok(states) = host_table::open(STATES, directory.join("states")) else {
                continue;
            };
            // Reading a byte beyond the limit shows that there is more.
            let states = BufReader::new(states.take(left + 1));
            let read = found.add_states(states, left);
            left = left.saturating_sub(read);
            found.partial |= left == 0;
        }
        Ok(found)
    }

    fn add_info(&mut self, info: &str) {
        let mut status = "confirmed";
        let (mut ip, mut called) = (None, None);
        self.client = None;
        for line in info.lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            match name {
                "status" => {
                    let known = STATUSES.iter().find(|s| **s == value);
                    status = known.unwrap_or(&"unconfirmed");
                }
                "address" => {
                    let address: Option<SocketAddr> = value.trim_matches('"').parse().ok();
                    ip = address.map(|a| a.ip().to_canonical());
                    self.client = ip.map(|ip| ip.to_string());
                }
                "name" => called = Some(nfs4_names::host_in(value.trim_matches('"'))),
                "seconds from last renew" => {
                    self.oldest = self.oldest.max(value.parse().unwrap_or(0));
                }
                "admin-revoked states" => {
                    let revoked = self.revoked.get_or_insert(0);
                    *revoked = revoked.saturating_add(value.parse().unwrap_or(0));
                }
                "callback state" => {
                    let state = value.to_ascii_lowercase();
                    let known = CALLBACKS.iter().find(|s| **s == state);
                    let known = known.unwrap_or(&"unknown");
                    *self.callbacks.entry((*known).to_owned()).or_default() += 1;
                }
                _ => {}
            }
        }
        *self.clients.entry(status.to_owned()).or_default() += 1;
        if let (Some(ip), Some(called)) = (ip, called) {
            self.names.insert(ip, called.to_owned());
        }
    }

    /// Adds whole lines until they have `most` bytes, and returns the number of their bytes. The kernel does not escape names of files:
    /// they may be in any encoding.
    fn add_states(&mut self, mut states: impl BufRead, most: u64) -> u64 {
        let (mut line, mut read) = (Vec::new(), 0);
        while read < most {
            line.clear();
            match states.read_until(b'\n', &mut line) {
                Ok(0) => break,
                Err(e) => {
                    host_table::failed(STATES, e);
                    break;
                }
                Ok(n) => read += n as u64,
            }
            if line.ends_with(b"\n") {
                self.add_state(&lossless::text(&line));
            }
        }
        read
    }

    /// `- 0x01000000...: { type: deleg, access: r, superblock: "fd:10:13649", filename: "a/b" }`: names come last. A name with a new
    /// line in it goes on in a line of its own, which is no state.
    fn add_state(&mut self, line: &str) {
        let state = line.strip_prefix("- ");
        let Some((_, fields)) = state.and_then(|s| s.split_once("type: ")) else {
            return;
        };
        let fields = fields
            .split_once("filename:")
            .map_or(fields, |(before, _)| before);
        let mut words = fields.split([',', ' ', '}']);
        let access = fields
            .split_once("access: ")
            .map_or("", |(_, a)| a.split(',').next().unwrap_or(""));
        let kind = match words.next().unwrap_or("") {
            "open" => "open",
            "lock" => "lock",
            // A delegation that includes attributes has an `a` behind its access.
            "deleg" if access.starts_with('w') || access.starts_with("rw") => "delegation_write",
            "deleg" => "delegation_read",
            "layout" => "layout",
            _ => "other",
        };
        *self.states.entry(kind).or_default() += 1;
        if let (Some(client), "lock") = (&self.client, kind) {
            *self.locks.entry(client.clone()).or_default() += 1;
        }
    }

    fn fill(&self, s: &mut Snapshot) {
        for status in STATUSES {
            let n = self.clients.get(status).copied().unwrap_or(0);
            s.gauge(&f::NFS4_CLIENTS, [status], n as f64);
        }
        for state in CALLBACKS {
            let n = self.callbacks.get(state).copied().unwrap_or(0);
            s.gauge(&f::NFS4_CALLBACKS, [state], n as f64);
        }
        for kind in TYPES {
            let n = self.states.get(kind).copied().unwrap_or(0);
            s.gauge(&f::NFS4_STATES, [kind], n as f64);
        }
        let mut locks: Vec<_> = self.locks.iter().collect();
        locks.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        for (client, n) in locks.into_iter().take(MOST_HOLDERS) {
            s.gauge(&f::CLIENT_LOCKS_HELD, [client], *n as f64);
        }
        if let Some(revoked) = self.revoked {
            s.gauge(&f::NFS4_REVOKED, [], revoked as f64);
        }
        s.gauge(&f::NFS4_OLDEST_RENEWAL, [], self.oldest as f64);
        s.gauge(&f::NFS4_PARTIAL, [], f64::from(u8::from(self.partial)));
    }
}

/// No content of these files causes a panic.
#[cfg(test)]
pub fn fuzzed(text: &[u8]) {
    let mut found = Found::default();
    found.add_info(&lossless::text(text));
    let read = found.add_states(text, MOST_BYTES);
    assert_eq!(read, text.len() as u64);
    found.fill(&mut Snapshot::default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    const INFO: &str = "clientid: 0x3b1a\naddress: \"10.9.0.2:830\"\nstatus: courtesy\nseconds from last renew: 97\nname: \"Linux: status: confirmed\"\nminor version: 2\ncallback state: DOWN\ncallback address: 10.9.0.2:0\nadmin-revoked states: 2\n";
    const STATES: &str = "- 0x1: { type: open, access: rw, deny: --, superblock: \"fd:10:1\", filename: \"type: lock\", owner: \"open id:1\" }
- 0x2: { type: deleg, access: r, superblock: \"fd:10:1\", filename: \"access: w revoked\" }
- 0x3: { type: deleg, access: wa, superblock: \"fd:10:2\", filename: \"b\" }
- 0x4: { type: lock, superblock: \"fd:10:1\", filename: \"a\", owner: \"lock id:2\" }
- 0x5: { type: layout, superblock: \"fd:10:1\", filename: \"a\" }
- 0x6: { type: deleg, access: r, admin-revoked }
";

    fn clients(n: usize) -> PathBuf {
        let name = format!("nfscope-clients-{}-{n}", std::process::id());
        let all = std::env::temp_dir().join(name);
        for client in 0..n {
            let directory = all.join(client.to_string());
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("info"), INFO).unwrap();
            fs::write(directory.join("states"), STATES).unwrap();
        }
        all
    }

    #[test]
    fn what_clients_hold_is_added_up() {
        let all = clients(2);
        let found = Found::read(&all, 10, 10_000).unwrap();
        fs::remove_dir_all(&all).unwrap();
        let mut s = Snapshot::default();
        found.fill(&mut s);
        assert_eq!(s.value(&f::NFS4_CLIENTS, ["courtesy"]), Some(2.0));
        assert_eq!(s.value(&f::NFS4_CLIENTS, ["confirmed"]), Some(0.0));
        assert_eq!(s.value(&f::NFS4_CALLBACKS, ["down"]), Some(2.0));
        for (kind, n) in TYPES.iter().zip([2.0, 2.0, 4.0, 2.0, 2.0, 0.0]) {
            assert_eq!(s.value(&f::NFS4_STATES, [kind]), Some(n), "{kind}");
        }
        assert_eq!(s.value(&f::NFS4_REVOKED, []), Some(4.0));
        assert_eq!(s.value(&f::CLIENT_LOCKS_HELD, ["10.9.0.2"]), Some(2.0));
        assert_eq!(s.value(&f::NFS4_OLDEST_RENEWAL, []), Some(97.0));
        assert_eq!(s.value(&f::NFS4_PARTIAL, []), Some(0.0));
        let called: Vec<_> = found.names.into_iter().collect();
        let ip = "10.9.0.2".parse().unwrap();
        assert_eq!(called, [(ip, "Linux: status: confirmed".to_owned())]);
    }

    #[test]
    fn a_kernel_without_the_sum_tells_of_no_revoked_states() {
        let mut found = Found::default();
        found.add_info(INFO.split("admin-revoked").next().unwrap());
        let mut s = Snapshot::default();
        found.fill(&mut s);
        assert_eq!(s.value(&f::NFS4_REVOKED, []), None);
        assert_eq!(s.value(&f::NFS4_CLIENTS, ["courtesy"]), Some(1.0));
    }

    /// Clients choose names of files, and the kernel lists them as they are.
    #[test]
    fn a_name_in_another_encoding_hides_no_state_and_one_with_lines_makes_none() {
        let mut found = Found::default();
        let mut states =
            b"- 0x1: { type: open, access: rw, filename: \"caf\xe9\", owner: \"\xff\" }\n".to_vec();
        states.extend(b"- 0x2: { type: lock, filename: \"a\ntype: layout\n\" }\n");
        states.extend(STATES.as_bytes());
        assert_eq!(
            found.add_states(&states[..], MOST_BYTES),
            states.len() as u64
        );
        for (kind, n) in TYPES.iter().zip([2, 2, 2, 1, 1]) {
            assert_eq!(found.states.get(kind), Some(&n), "{kind}");
        }
        assert_eq!(found.states.get("other"), None);
    }

    #[test]
    fn of_very_many_not_all_are_looked_at() {
        let all = clients(3);
        let few = Found::read(&all, 2, 10_000).unwrap();
        assert_eq!((few.clients["courtesy"], few.partial), (2, true));
        let short = Found::read(&all, 10, STATES.len() as u64 + 10).unwrap();
        assert_eq!((short.states["open"], short.partial), (1, true));
        assert_eq!(short.clients["courtesy"], 3);
        assert!(Found::read(&all.join("none"), 2, 10).is_err());
        fs::remove_dir_all(&all).unwrap();
    }
}
