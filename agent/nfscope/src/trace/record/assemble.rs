//! Operations of a trace from those of the stream of single operations.
//!
//! Names and addresses do not pass here: files and clients get pseudonyms, by a hash whose key exists as long as this process.

use nfscope_model::SlowOp;
use nfscope_trace::{Op, Operation, Stability, Version};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// COMPOUNDs whose file handles are remembered: those in progress on any server, and the latest.
const COMPOUNDS: usize = 16 << 10;

/// A COMPOUND, as far as it was seen.
#[derive(Debug, Clone, Copy)]
struct Compound {
    number: u64,
    /// Current and saved file handle (RFC 8881, section 16.2.3).
    current: Option<u64>,
    saved: Option<u64>,
}

/// Makes operations of a trace.
#[derive(Debug)]
pub(super) struct Assembler {
    key: RandomState,
    one_in: u32,
    /// Arrival of the first operation.
    pub(super) began: Option<SystemTime>,
    clients: HashMap<Option<IpAddr>, u32>,
    compounds: HashMap<(u32, u32), Compound>,
    /// Keys of `compounds`, the oldest first.
    order: VecDeque<((u32, u32), u64)>,
    compound: u64,
    /// Operations that were left out because their file is not in the sample.
    pub(super) not_sampled: u64,
}

impl Assembler {
    /// Takes one file in `one_in`.
    pub(super) fn new(one_in: u32) -> Assembler {
        Assembler {
            key: RandomState::new(),
            one_in,
            began: None,
            clients: HashMap::new(),
            compounds: HashMap::new(),
            order: VecDeque::new(),
            compound: 0,
            not_sampled: 0,
        }
    }

    /// Number of clients so far.
    pub(super) fn clients(&self) -> u32 {
        self.clients.len() as u32
    }

    fn pseudonym(&self, handle: u64) -> u64 {
        self.key.hash_one(handle)
    }

    /// The operation; `None` if it is not in the sample, or of a version that traces do not know.
    pub(super) fn operation(&mut self, o: &SlowOp) -> Option<Operation> {
        let version = Version::named(&o.version).unwrap_or(Version::V4);
        let op = Op::named(&o.op)?;
        let next = self.clients.len() as u32;
        let client = *self.clients.entry(o.client).or_insert(next);
        let start = o.at.checked_sub(o.duration).unwrap_or(o.at);
        let began = *self.began.get_or_insert(start);
        let arrival = start.duration_since(began).unwrap_or(Duration::ZERO);
        let mut operation = Operation::new(nanoseconds(arrival), client, version, op);
        operation.duration = Some(nanoseconds(o.duration));
        let known = o.arguments;
        let failed = known.status_code != 0;
        let (file, other) = match version {
            Version::V2 | Version::V3 => (known.handle, known.other_handle),
            _ => self.of_compound(o, client, &mut operation),
        };
        operation.file = file.map(|f| self.pseudonym(f));
        operation.other = other.map(|f| self.pseudonym(f));
        operation.offset = known.offset;
        operation.length = match o.bytes {
            Some(bytes) if operation.op.is_read() && !failed => u32::try_from(bytes).ok(),
            _ => known.length,
        };
        let stability = o.stability.as_deref();
        operation.stability = stability.and_then(Stability::named);
        operation.status = Some(known.status_code);
        operation.size = known.size.filter(|_| !failed);
        if self.one_in > 1 {
            // The file of an OPEN or LOOKUP is the one that it finds, so that each file's story is whole.
            let of = operation.other.or(operation.file);
            if of.is_none_or(|f| f % u64::from(self.one_in) != 0) {
                self.not_sampled += 1;
                return None;
            }
        }
        Some(operation)
    }

    /// Files of an operation of a COMPOUND, by the file handles that its operations leave.
    fn of_compound(
        &mut self,
        o: &SlowOp,
        client: u32,
        operation: &mut Operation,
    ) -> (Option<u64>, Option<u64>) {
        let after = o.arguments.handle;
        let Some(xid) = o.xid else {
            return (after, None);
        };
        let key = (client, xid);
        // SEQUENCE begins a COMPOUND of NFSv4.1 and later. A client does not use a transaction id again before its reply.
        let known = self.compounds.get(&key).copied();
        let mut compound = match known.filter(|_| o.op != "sequence") {
            Some(compound) => compound,
            None => {
                self.compound += 1;
                self.order.push_back((key, self.compound));
                Compound {
                    number: self.compound,
                    current: None,
                    saved: None,
                }
            }
        };
        let before = std::mem::replace(&mut compound.current, after);
        let saved = compound.saved;
        if o.op == "savefh" {
            compound.saved = after;
        }
        operation.compound = Some(compound.number);
        self.compounds.insert(key, compound);
        while self.order.len() > COMPOUNDS {
            let oldest = self.order.pop_front();
            if let Some((key, number)) = oldest
                && self.compounds.get(&key).is_some_and(|c| c.number == number)
            {
                self.compounds.remove(&key);
            }
        }
        let ok = o.arguments.status_code == 0;
        match o.op.as_str() {
            "open" | "lookup" | "lookupp" | "create" => match before {
                Some(before) => (Some(before), after.filter(|_| ok)),
                None if ok => (None, after),
                None => (after, None),
            },
            "rename" | "link" => match saved {
                Some(saved) => (Some(saved), after),
                None => (None, after),
            },
            _ => (after, None),
        }
    }
}

fn nanoseconds(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::OpArguments;

    fn op(version: &str, name: &str, xid: u32, handle: Option<u64>) -> SlowOp {
        SlowOp {
            at: SystemTime::UNIX_EPOCH + Duration::from_secs(100),
            client: "192.0.2.7".parse().ok(),
            version: version.into(),
            op: name.into(),
            export: None,
            dataset: None,
            inode: None,
            path: None,
            xid: Some(xid),
            bytes: None,
            stability: None,
            status: "ok".into(),
            duration: Duration::from_micros(5),
            phases: None,
            arguments: OpArguments {
                handle,
                ..OpArguments::default()
            },
        }
    }

    #[test]
    fn an_open_works_in_the_directory_before_it_and_finds_the_file_behind_it() {
        let mut a = Assembler::new(1);
        let mut next = |name, handle| a.operation(&op("4.2", name, 7, handle)).unwrap();
        let sequence = next("sequence", None);
        let putfh = next("putfh", Some(1));
        let open = next("open", Some(2));
        let write = next("write", Some(2));
        assert_eq!((open.file, open.other), (putfh.file, write.file));
        assert_ne!(open.file, open.other);
        assert_eq!(sequence.compound, write.compound);
        let again = next("sequence", None);
        assert_ne!(again.compound, write.compound);
    }

    #[test]
    fn a_rename_has_the_saved_directory_and_the_current_one() {
        let mut a = Assembler::new(1);
        let mut next = |name, handle| a.operation(&op("4.0", name, 9, handle)).unwrap();
        let from = next("putfh", Some(1));
        next("savefh", Some(1));
        let to = next("putfh", Some(2));
        let rename = next("rename", Some(2));
        assert_eq!((rename.file, rename.other), (from.file, to.file));
    }

    #[test]
    fn two_recordings_give_a_file_two_pseudonyms_and_one_keeps_its_own() {
        let (mut a, mut b) = (Assembler::new(1), Assembler::new(1));
        let write = op("3", "write", 1, Some(5));
        let (one, two) = (a.operation(&write).unwrap(), a.operation(&write).unwrap());
        assert_eq!(one.file, two.file);
        assert_ne!(one.file, b.operation(&write).unwrap().file);
        assert_ne!(one.file, Some(5));
    }

    #[test]
    fn a_sample_has_all_operations_of_a_file_or_none() {
        let mut a = Assembler::new(4);
        let mut taken = 0;
        for file in 0..400 {
            let write = op("3", "write", 1, Some(file));
            let both = [a.operation(&write), a.operation(&write)];
            assert_eq!(both[0].is_some(), both[1].is_some());
            taken += u32::from(both[0].is_some());
        }
        assert!((50..150).contains(&taken), "{taken}");
        assert_eq!(a.not_sampled, 2 * (400 - u64::from(taken)));
    }

    #[test]
    fn a_read_has_the_bytes_that_it_returned_and_a_failed_one_those_that_it_asked_for() {
        let mut a = Assembler::new(1);
        let mut read = op("3", "read", 1, Some(5));
        read.bytes = Some(10);
        read.arguments.length = Some(4096);
        read.arguments.offset = Some(1 << 40);
        let o = a.operation(&read).unwrap();
        assert_eq!(
            (o.offset, o.length, o.status),
            (Some(1 << 40), Some(10), Some(0))
        );
        read.arguments.status_code = 70;
        let o = a.operation(&read).unwrap();
        assert_eq!((o.length, o.status), (Some(4096), Some(70)));
    }
}
