//! Connections on which calls are sent at their times, with any number of them in flight.

use super::image::{self, ImageCopy};
use super::nfs3::{self, Handle, Procedure};
use super::plan::{NO_FILE, Plan};
use super::quantiles::Durations;
use super::rpc::{self, Credentials};
use super::xdr::{Decoder, Encoder};
use super::{Options, Pace};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Calls that wait for their time on one connection.
const QUEUE: usize = 1024;
/// Calls of a closed loop that wait for others on one connection: each is compared with those before it.
const CLOSED_QUEUE: usize = 64;
/// Calls in flight on one connection. More would only wait in the server's socket.
const MAX_IN_FLIGHT: usize = 4096;
/// Time without any reply after which the server counts as gone, while calls are in flight.
const REPLY_TIMEOUT: Duration = Duration::from_secs(300);
/// Time after its due time from which a call counts as late.
pub(super) const LATE: Duration = Duration::from_millis(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Name that a call has in its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// Name of a file of the plan.
    Planned(u32),
    /// Letter and number of a file or directory that the image has for this purpose.
    Numbered(char, u32),
    /// Name that no file has.
    Absent,
    Dot,
    DotDot,
}

impl Name {
    fn text(self, plan: &Plan) -> String {
        match self {
            Name::Planned(file) => image::name(plan, file),
            Name::Numbered(letter, n) => format!("{letter}{n}"),
            Name::Absent => "absent".to_owned(),
            Name::Dot => ".".to_owned(),
            Name::DotDot => "..".to_owned(),
        }
    }
}

/// Completion of a call, for those that must come after it.
#[derive(Debug, Default)]
pub(super) struct Done {
    state: Mutex<(bool, Vec<u32>)>,
}

impl Done {
    pub(super) fn is_set(&self) -> bool {
        lock(&self.state).0
    }

    /// True if it is done. Otherwise the connection is woken when it is.
    fn or_wake(&self, connection: u32) -> bool {
        let mut state = lock(&self.state);
        if !state.0 && !state.1.contains(&connection) {
            state.1.push(connection);
        }
        state.0
    }
}

/// A call that stands for an operation of the trace.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) kind: u16,
    pub(super) procedure: Procedure,
    pub(super) copy: u32,
    /// File or directory; [`NO_FILE`] for the top.
    pub(super) file: u32,
    /// Directory of RENAME's target and of LINK.
    pub(super) other: u32,
    pub(super) name: Name,
    /// Name of RENAME's target.
    pub(super) new_name: Name,
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) stability: u32,
    pub(super) size: Option<u64>,
    /// File whose handle the result has.
    pub(super) makes: u32,
    pub(super) recorded_status: Option<u32>,
    /// Nanoseconds since the replay's start; `None` in a closed loop.
    pub(super) due: Option<u64>,
    /// Calls whose replies come first.
    pub(super) after: Vec<Arc<Done>>,
    pub(super) done: Option<Arc<Done>>,
}

/// Counts of one kind of operation.
#[derive(Debug, Clone, Default)]
pub(super) struct KindCounts {
    pub(super) issued: u64,
    pub(super) succeeded: u64,
    pub(super) bytes: u64,
    pub(super) errors: BTreeMap<u32, u64>,
    pub(super) other_status: u64,
    pub(super) not_made: u64,
    /// From the sending to the reply.
    pub(super) latency: Durations,
    /// From the time at which the call was due to the reply.
    pub(super) latency_from_due: Durations,
}

/// Counts of one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) kinds: Vec<KindCounts>,
    pub(super) lateness: Durations,
    pub(super) late: u64,
    pub(super) waited_for_handle: u64,
}

impl Counts {
    pub(super) fn merge(&mut self, other: &Counts) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.issued += theirs.issued;
            mine.succeeded += theirs.succeeded;
            mine.bytes += theirs.bytes;
            mine.other_status += theirs.other_status;
            mine.not_made += theirs.not_made;
            for (status, n) in &theirs.errors {
                *mine.errors.entry(*status).or_default() += n;
            }
            mine.latency.merge(&theirs.latency);
            mine.latency_from_due.merge(&theirs.latency_from_due);
        }
        self.lateness.merge(&other.lateness);
        self.late += other.late;
        self.waited_for_handle += other.waited_for_handle;
    }

    pub(super) fn new(kinds: usize) -> Counts {
        Counts {
            kinds: vec![KindCounts::default(); kinds],
            ..Counts::default()
        }
    }
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Call>,
    /// Calls whose file handle has come.
    released: VecDeque<Call>,
}

struct InFlight {
    call: Call,
    sent: u64,
}

/// Connection to the server.
pub(super) struct Connection {
    stream: TcpStream,
    queue: Mutex<Queue>,
    /// Something about the queue, the calls in flight or a completion has changed.
    changed: Condvar,
    in_flight: Mutex<HashMap<u32, InFlight>>,
    pub(super) counts: Mutex<Counts>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, kinds: usize) -> Connection {
        Connection {
            stream,
            queue: Mutex::default(),
            changed: Condvar::new(),
            in_flight: Mutex::default(),
            counts: Mutex::new(Counts::new(kinds)),
        }
    }
}

/// All connections of a replay.
pub(super) struct Engine<'a> {
    pub(super) plan: &'a Plan,
    pub(super) copies: Vec<ImageCopy>,
    pub(super) connections: Vec<Connection>,
    pub(super) who: Credentials,
    pub(super) data: Vec<u8>,
    pub(super) began: Instant,
    queue: usize,
    /// Calls whose file handle is not known yet, by copy and file.
    parked: Mutex<HashMap<(u32, u32), Vec<(u32, Call)>>>,
    outstanding: Mutex<u64>,
    idle: Condvar,
    stopped: AtomicBool,
    failure: Mutex<Option<String>>,
    pub(super) finished: AtomicU64,
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        copies: Vec<ImageCopy>,
        connections: Vec<Connection>,
        options: &Options,
        data: Vec<u8>,
    ) -> Engine<'a> {
        Engine {
            queue: match options.pace {
                Pace::Open { .. } => QUEUE,
                Pace::Closed => CLOSED_QUEUE,
            },
            plan,
            copies,
            connections,
            who: options.who,
            data,
            began: Instant::now(),
            parked: Mutex::default(),
            outstanding: Mutex::new(0),
            idle: Condvar::new(),
            stopped: AtomicBool::new(false),
            failure: Mutex::default(),
            finished: AtomicU64::new(0),
        }
    }

    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Gives a call to a connection; waits while its queue is full. False once the replay has failed.
    pub(super) fn push(&self, connection: u32, call: Call) -> bool {
        let c = &self.connections[connection as usize];
        let mut queue = lock(&c.queue);
        while queue.waiting.len() >= self.queue && !self.has_stopped() {
            queue = c
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if self.has_stopped() {
            return false;
        }
        *lock(&self.outstanding) += 1;
        queue.waiting.push_back(call);
        drop(queue);
        c.changed.notify_all();
        true
    }

    fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Waits for the last reply, and ends the threads.
    ///
    /// # Errors
    /// The failure of a connection.
    pub(super) fn wait(&self) -> anyhow::Result<()> {
        let mut outstanding = lock(&self.outstanding);
        while *outstanding > 0 && !self.has_stopped() {
            outstanding = self
                .idle
                .wait(outstanding)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(outstanding);
        self.stop(None);
        match lock(&self.failure).take() {
            Some(why) => anyhow::bail!(why),
            None => Ok(()),
        }
    }

    /// Ends the threads, with the first reason if it is a failure.
    pub(super) fn stop(&self, why: Option<String>) {
        {
            let mut failure = lock(&self.failure);
            if !self.has_stopped() && failure.is_none() {
                *failure = why;
            }
            self.stopped.store(true, Ordering::Release);
        }
        for c in &self.connections {
            let _ = c.stream.shutdown(Shutdown::Both);
            // The lock makes sure that a thread that has just looked is already waiting.
            drop(lock(&c.queue));
            c.changed.notify_all();
        }
        drop(lock(&self.outstanding));
        self.idle.notify_all();
    }

    /// Sends the calls of a connection until the replay stops.
    pub(super) fn send_all(&self, connection: u32) {
        let mut xid = 1u32;
        while let Some(call) = self.next(connection) {
            xid = xid.wrapping_add(1);
            if let Err(e) = self.send(connection, xid, call) {
                self.stop(Some(format!("a call cannot be sent: {e}")));
            }
        }
    }

    /// Next call whose time and whose predecessors have come.
    fn next(&self, connection: u32) -> Option<Call> {
        let c = &self.connections[connection as usize];
        let mut queue = lock(&c.queue);
        loop {
            if self.has_stopped() {
                return None;
            }
            let room = lock(&c.in_flight).len() < MAX_IN_FLIGHT;
            let mut wait = None;
            if room {
                if let Some(call) = queue.released.pop_front() {
                    return Some(call);
                }
                if let Some(call) = queue.waiting.front_mut() {
                    while call.after.last().is_some_and(|d| d.or_wake(connection)) {
                        call.after.pop();
                    }
                    let early = call.due.map_or(0, |due| due.saturating_sub(self.now()));
                    if call.after.is_empty() && early == 0 {
                        let call = queue.waiting.pop_front();
                        drop(queue);
                        c.changed.notify_all();
                        return call;
                    }
                    if call.after.is_empty() {
                        wait = Some(Duration::from_nanos(early));
                    }
                }
            }
            queue = match wait {
                Some(time) => {
                    let waited = c.changed.wait_timeout(queue, time);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => c
                    .changed
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Handle of a file of the call's copy: `Err(true)` if it comes later, `Err(false)` if never.
    fn handle(&self, copy: u32, file: u32) -> Result<&Handle, bool> {
        let copy = &self.copies[copy as usize];
        if file == NO_FILE {
            return Ok(&copy.top);
        }
        match copy.slots[file as usize].get() {
            Some(Some(handle)) => Ok(handle),
            Some(None) => Err(false),
            None => Err(true),
        }
    }

    fn send(&self, connection: u32, xid: u32, call: Call) -> io::Result<()> {
        let mut missing = None;
        let mut handles: [&[u8]; 2] = [&[], &[]];
        for (at, file) in [call.file, call.other].into_iter().enumerate() {
            match self.handle(call.copy, file) {
                Ok(handle) => handles[at] = handle,
                Err(later) => missing = Some((file, later)),
            }
        }
        if let Some((file, later)) = missing {
            if later {
                self.park(connection, file, call);
            } else {
                self.not_made(connection, call);
            }
            return Ok(());
        }
        let c = &self.connections[connection as usize];
        let head = self.encode(xid, &call, handles);
        let start = (call.offset as usize & !7) % (self.data.len() / 2);
        let data = match call.procedure {
            Procedure::Write => &self.data[start..start + call.length as usize],
            _ => &[],
        };
        let now = self.now();
        {
            let mut counts = lock(&c.counts);
            counts.kinds[usize::from(call.kind)].issued += 1;
            if let Some(due) = call.due {
                let late = now.saturating_sub(due);
                counts.lateness.add(late);
                counts.late += u64::from(late > LATE.as_nanos() as u64);
            }
        }
        lock(&c.in_flight).insert(xid, InFlight { call, sent: now });
        rpc::send(&mut &c.stream, head, data)
    }

    fn encode(&self, xid: u32, call: &Call, [file, other]: [&[u8]; 2]) -> Encoder {
        use Procedure as P;
        let mut e = rpc::call(xid, rpc::NFS, call.procedure as u32, self.who);
        let name = || call.name.text(self.plan);
        match call.procedure {
            P::Null => {}
            P::GetAttr | P::ReadLink | P::FsStat | P::FsInfo | P::PathConf => {
                e.opaque(file);
            }
            P::Access => {
                e.opaque(file).u32(0x3f);
            }
            P::SetAttr => {
                e.opaque(file);
                let mode = call.size.is_none().then_some(0o600);
                nfs3::attributes(&mut e, mode, call.size);
                e.u32(0);
            }
            P::Lookup | P::Remove | P::RmDir => {
                e.opaque(file).opaque(name().as_bytes());
            }
            P::Read | P::Commit => {
                e.opaque(file).u64(call.offset).u32(call.length);
            }
            P::Write => {
                e.opaque(file).u64(call.offset).u32(call.length);
                e.u32(call.stability).u32(call.length);
            }
            P::Create => {
                // UNCHECKED: a file that exists is no error.
                e.opaque(file).opaque(name().as_bytes()).u32(0);
                nfs3::attributes(&mut e, Some(0o600), call.size);
            }
            P::MkDir => {
                e.opaque(file).opaque(name().as_bytes());
                nfs3::attributes(&mut e, Some(0o700), None);
            }
            P::SymLink => {
                e.opaque(file).opaque(name().as_bytes());
                nfs3::attributes(&mut e, None, None);
                e.opaque(b"target");
            }
            P::MkNod => {
                // NF3FIFO, which needs no privileges.
                e.opaque(file).opaque(name().as_bytes()).u32(7);
                nfs3::attributes(&mut e, Some(0o600), None);
            }
            P::Rename => {
                e.opaque(file).opaque(name().as_bytes()).opaque(other);
                e.opaque(call.new_name.text(self.plan).as_bytes());
            }
            P::Link => {
                e.opaque(file).opaque(other).opaque(name().as_bytes());
            }
            P::ReadDir => {
                e.opaque(file).u64(0).u64(0).u32(32 << 10);
            }
            P::ReadDirPlus => {
                e.opaque(file).u64(0).u64(0).u32(8 << 10).u32(32 << 10);
            }
        }
        e
    }

    /// Keeps a call until the handle of this file is known.
    fn park(&self, connection: u32, file: u32, call: Call) {
        let mut parked = lock(&self.parked);
        // The handle may have come since the caller looked.
        if self.handle(call.copy, file) == Err(true) {
            lock(&self.connections[connection as usize].counts).waited_for_handle += 1;
            let of_file = parked.entry((call.copy, file)).or_default();
            of_file.push((connection, call));
            return;
        }
        drop(parked);
        self.release(connection, call);
    }

    fn release(&self, connection: u32, call: Call) {
        let c = &self.connections[connection as usize];
        lock(&c.queue).released.push_back(call);
        c.changed.notify_all();
    }

    /// A file has got its handle, or will have none.
    fn made(&self, copy: u32, file: u32, handle: Option<Handle>) {
        let _ = self.copies[copy as usize].slots[file as usize].set(handle);
        let calls = lock(&self.parked).remove(&(copy, file)).unwrap_or_default();
        for (connection, call) in calls {
            self.release(connection, call);
        }
    }

    /// Ends a call that cannot be made, because its file could not be.
    fn not_made(&self, connection: u32, call: Call) {
        lock(&self.connections[connection as usize].counts).kinds[usize::from(call.kind)]
            .not_made += 1;
        if call.makes != NO_FILE {
            self.made(call.copy, call.makes, None);
        }
        self.complete(call.done);
    }

    fn complete(&self, done: Option<Arc<Done>>) {
        if let Some(done) = done {
            let wake = {
                let mut state = lock(&done.state);
                state.0 = true;
                std::mem::take(&mut state.1)
            };
            for connection in wake {
                let c = &self.connections[connection as usize];
                drop(lock(&c.queue));
                c.changed.notify_all();
            }
        }
        self.finished.fetch_add(1, Ordering::Relaxed);
        let mut outstanding = lock(&self.outstanding);
        *outstanding -= 1;
        if *outstanding == 0 {
            self.idle.notify_all();
        }
    }

    /// Takes the replies of a connection until the replay stops.
    pub(super) fn receive_all(&self, connection: u32) {
        let mut record = Vec::new();
        let mut silent = Instant::now();
        while !self.has_stopped() {
            match self.readable(connection) {
                Ok(true) => {}
                Ok(false) => {
                    let c = &self.connections[connection as usize];
                    if lock(&c.in_flight).is_empty() {
                        silent = Instant::now();
                    } else if silent.elapsed() > REPLY_TIMEOUT {
                        let seconds = REPLY_TIMEOUT.as_secs();
                        self.stop(Some(format!("the server has not answered for {seconds} s")));
                    }
                    continue;
                }
                Err(e) => return self.stop(Some(format!("the connection failed: {e}"))),
            }
            silent = Instant::now();
            let stream = &mut &self.connections[connection as usize].stream;
            match rpc::receive(stream, &mut record).and_then(|open| {
                if open {
                    self.reply(connection, &record)?;
                }
                Ok(open)
            }) {
                Ok(true) => {}
                Ok(false) => return self.stop(Some("the server closed a connection".to_owned())),
                Err(e) => return self.stop(Some(format!("a reply cannot be read: {e}"))),
            }
        }
    }

    fn readable(&self, connection: u32) -> io::Result<bool> {
        let stream = &self.connections[connection as usize].stream;
        let second = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        match poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&second)) {
            Ok(n) => Ok(n > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    fn reply(&self, connection: u32, record: &[u8]) -> io::Result<()> {
        let now = self.now();
        let (xid, results) = rpc::reply(record)?;
        let c = &self.connections[connection as usize];
        let Some(InFlight { call, sent }) = lock(&c.in_flight).remove(&xid) else {
            return Ok(());
        };
        drop(lock(&c.queue));
        c.changed.notify_all();
        let mut results = results.map_err(io::Error::other)?;
        let status = match call.procedure {
            Procedure::Null => 0,
            _ => results.u32()?,
        };
        let mut handle = None;
        let mut bytes = 0;
        if status == 0 {
            (bytes, handle) = self.results(&call, &mut results)?;
        }
        {
            let mut counts = lock(&c.counts);
            let kind = &mut counts.kinds[usize::from(call.kind)];
            match status {
                0 => kind.succeeded += 1,
                status => *kind.errors.entry(status).or_default() += 1,
            }
            kind.other_status += u64::from(call.recorded_status.is_some_and(|s| s != status));
            kind.bytes += u64::from(bytes);
            kind.latency.add(now.saturating_sub(sent));
            if let Some(due) = call.due {
                kind.latency_from_due.add(now.saturating_sub(due));
            }
        }
        if call.makes != NO_FILE {
            self.made(call.copy, call.makes, handle);
        }
        self.complete(call.done);
        Ok(())
    }

    /// Bytes that were moved, and the handle of what was made.
    fn results(&self, call: &Call, d: &mut Decoder<'_>) -> io::Result<(u32, Option<Handle>)> {
        Ok(match call.procedure {
            Procedure::Read => (nfs3::read_bytes(d)?, None),
            Procedure::Write => (nfs3::written_bytes(d)?, None),
            _ if call.makes != NO_FILE => (0, nfs3::made(d)?),
            _ => (0, None),
        })
    }
}
