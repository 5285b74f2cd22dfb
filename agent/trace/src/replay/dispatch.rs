//! Turns operations into calls, in the order of their arrival, and gives them to connections.

use super::counterpart;
use super::engine::{Call, Done, Engine, Name};
use super::leaving::Leaving;
use super::nfs3::Procedure;
use super::plan::{NO_FILE, Plan};
use super::{Options, Pace};
use crate::{Operation, Stability};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const NOENT: u32 = 2;

/// An earlier call that a later one may have to follow.
#[derive(Debug)]
struct Earlier {
    /// End in the trace.
    end: u64,
    client: u32,
    done: Arc<Done>,
}

pub(super) struct Dispatch<'a> {
    plan: &'a Plan,
    pace: Pace,
    times: u32,
    connections: u32,
    read_size: u32,
    write_size: u32,
    pub(super) shortened: u64,
    pub(super) left_out: BTreeMap<(u16, &'static str), u64>,
    /// Files that were removed or renamed so far, by directory and letter; the copies do the same.
    numbers: HashMap<(u32, char), u32>,
    new_names: u32,
    leaving: Leaving,
    operations: u64,
    /// Closed loop: calls of each client that no later call waits for, by their end and number.
    by_client: HashMap<(u32, u32), BTreeMap<(u64, u64), Arc<Done>>>,
    /// Closed loop: calls of each file that were not answered when they were last looked at.
    by_file: HashMap<(u32, u32), Vec<Earlier>>,
    kinds: HashMap<KindKey, u16>,
}

type KindKey = (crate::Version, String, Option<Procedure>);

impl<'a> Dispatch<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        options: &Options,
        connections: u32,
        (read_size, write_size): (u32, u32),
    ) -> Dispatch<'a> {
        let kinds = plan.kinds.iter().enumerate();
        Dispatch {
            plan,
            pace: options.pace,
            times: options.times,
            connections,
            read_size,
            write_size,
            shortened: 0,
            left_out: BTreeMap::new(),
            numbers: HashMap::new(),
            new_names: 0,
            leaving: Leaving::new(&plan.files),
            operations: 0,
            by_client: HashMap::new(),
            by_file: HashMap::new(),
            kinds: kinds
                .map(|(at, (v, op, p))| ((*v, op.clone(), p.ok()), at as u16))
                .collect(),
        }
    }

    /// Dispatches an operation for each copy. False once the replay has failed.
    ///
    /// # Errors
    /// When the operation was not in the trace when it was planned.
    pub(super) fn operation(&mut self, engine: &Engine<'_>, o: &Operation) -> anyhow::Result<bool> {
        const CHANGED: &str = "the trace has changed since it was planned";
        self.operations += 1;
        let counterpart = counterpart::of(o);
        let key = (o.version, o.op.name().to_owned(), counterpart.ok());
        let Some(&kind) = self.kinds.get(&key) else {
            anyhow::bail!(CHANGED);
        };
        let procedure = match counterpart {
            Ok(procedure) => procedure,
            Err(reason) => {
                self.leave_out(kind, reason);
                return Ok(true);
            }
        };
        let template = match self.template(kind, procedure, o) {
            Ok(template) => template,
            Err(reason) => {
                self.leave_out(kind, reason);
                return Ok(true);
            }
        };
        for file in [template.file, template.other, template.makes] {
            anyhow::ensure!(
                file == NO_FILE || (file as usize) < self.plan.files.len(),
                CHANGED
            );
        }
        for copy in 0..self.times {
            let mut call = Call {
                copy,
                after: Vec::new(),
                done: None,
                ..template
            };
            match self.pace {
                Pace::Open { speed } => {
                    let since = o.arrival.saturating_sub(self.plan.first);
                    call.due = Some((since as f64 / speed) as u64);
                }
                Pace::Closed => self.order(&mut call, o),
            }
            let connection = u64::from(copy) * u64::from(self.plan.clients) + u64::from(o.client);
            let connection = (connection % u64::from(self.connections)) as u32;
            if !engine.push(connection, call) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn leave_out(&mut self, kind: u16, reason: &'static str) {
        *self.left_out.entry((kind, reason)).or_default() += u64::from(self.times);
    }

    fn index(&self, pseudonym: Option<u64>) -> u32 {
        pseudonym
            .and_then(|p| self.plan.index.get(&p).copied())
            .unwrap_or(NO_FILE)
    }

    fn parent(&self, file: u32) -> u32 {
        self.plan
            .files
            .get(file as usize)
            .map_or(NO_FILE, |f| f.parent)
    }

    /// Next number of a name with this letter in a directory.
    fn number(&mut self, directory: u32, letter: char) -> Name {
        let n = self.numbers.entry((directory, letter)).or_default();
        *n += 1;
        Name::Numbered(letter, *n - 1)
    }

    fn new_name(&mut self, letter: char) -> Name {
        self.new_names += 1;
        Name::Numbered(letter, self.new_names - 1)
    }

    /// Call of each copy, without its time.
    fn template(
        &mut self,
        kind: u16,
        procedure: Procedure,
        o: &Operation,
    ) -> Result<Call, &'static str> {
        use Procedure as P;
        let (file, other) = (self.index(o.file), self.index(o.other));
        let mut call = Call {
            kind,
            procedure,
            copy: 0,
            file,
            other: NO_FILE,
            name: Name::Absent,
            new_name: Name::Absent,
            offset: o.offset.unwrap_or(0),
            length: o.length.unwrap_or(0),
            stability: match o.stability {
                None | Some(Stability::Unstable) => 0,
                Some(Stability::DataSync) => 1,
                Some(Stability::FileSync) => 2,
            },
            size: o
                .size
                .filter(|_| matches!(procedure, P::SetAttr | P::Create)),
            makes: NO_FILE,
            recorded_status: o.status,
            due: None,
            after: Vec::new(),
            done: None,
        };
        let ok = o.succeeded();
        match procedure {
            P::Read | P::Write => {
                if o.offset.is_none() || o.length.is_none() {
                    return Err("the trace has no offset or length of it");
                }
                let most = match procedure {
                    P::Read => self.read_size,
                    _ => self.write_size,
                };
                if call.length > most {
                    call.length = most;
                    self.shortened += u64::from(self.times);
                }
            }
            P::Lookup => match o.op.name() {
                _ if o.status == Some(NOENT) => {}
                "lookupp" => call.name = Name::DotDot,
                _ if other != NO_FILE => {
                    (call.file, call.name) = (self.parent(other), Name::Planned(other));
                }
                _ => call.name = Name::Dot,
            },
            P::Create | P::MkDir | P::SymLink => {
                let planned = other != NO_FILE && ok;
                if planned {
                    (call.file, call.name) = (self.parent(other), Name::Planned(other));
                    if !self.plan.files[other as usize].in_image {
                        call.makes = other;
                    }
                } else {
                    call.name = self.new_name(if procedure == P::MkDir { 'e' } else { 'n' });
                }
            }
            P::MkNod => call.name = self.new_name('n'),
            P::Remove | P::RmDir | P::Rename if ok => {
                let letter = match procedure {
                    P::Remove => 'r',
                    P::RmDir => 'k',
                    _ => 'm',
                };
                let files = &self.plan.files;
                let taken = self.leaving.take(files, file, self.operations, procedure);
                call.name = match taken {
                    Some(taken) => Name::Planned(taken),
                    None => self.number(file, letter),
                };
                if procedure == P::Rename {
                    call.other = if other == NO_FILE { file } else { other };
                    call.new_name = self.new_name('n');
                }
            }
            P::Rename => call.other = file,
            P::Link => {
                call.other = other;
                call.name = self.new_name('n');
            }
            _ => {}
        }
        Ok(call)
    }

    /// Puts a call behind those that had ended when it arrived.
    fn order(&mut self, call: &mut Call, o: &Operation) {
        let done = Arc::new(Done::default());
        let earlier = || Earlier {
            end: o.arrival.saturating_add(o.duration.unwrap_or(0)),
            client: o.client,
            done: done.clone(),
        };
        // A connection sends in this order, so a call that one call of the client waits for needs no second one that does.
        let client = self.by_client.entry((call.copy, o.client)).or_default();
        while let Some(first) = client.first_entry().filter(|e| e.key().0 <= o.arrival) {
            call.after.push(first.remove());
        }
        client.insert((earlier().end, self.operations), done.clone());
        for file in [call.file, call.other, call.makes] {
            if file == NO_FILE {
                continue;
            }
            let of_file = self.by_file.entry((call.copy, file)).or_default();
            of_file.retain(|e| !e.done.is_set());
            let ended = of_file
                .iter()
                .filter(|e| e.end <= o.arrival && e.client != o.client);
            call.after.extend(ended.map(|e| e.done.clone()));
            of_file.push(earlier());
        }
        call.after.retain(|d| !d.is_set());
        call.done = Some(done);
    }
}
