//! A discrete-event simulation of a server.
//!
//! The method is that of A. M. Law, Simulation Modeling and Analysis, chapters 1 and 9: a list of events in order of time, a
//! warm-up that is not counted, and batch means for the error of the result. A run is a function of the server and the seed.

use crate::durations::pick;
use crate::event::{At, Event};
use crate::outcome::{BATCHES, Outcome, Tally};
use crate::server::{Log, Pace, Server};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Events of a run by request: more than any request needs.
const MAX_EVENTS_PER_REQUEST: usize = 60;

/// How long a run is.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    /// Requests that are counted.
    pub requests: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Outside,
    Receive,
    FirstCpu,
    Sleep,
    Disk,
    Log,
    LastCpu,
    Reply,
}

struct Stream {
    group: usize,
    class: usize,
    pool: usize,
    step: Step,
    disk_left: u32,
    log_left: u32,
    cpu: f64,
    due: f64,
    arrived: f64,
    began: f64,
    waits_since: f64,
}

struct Run<'a> {
    server: &'a Server,
    random: SmallRng,
    now: f64,
    next: u64,
    events: BinaryHeap<Reverse<At>>,
    streams: Vec<Stream>,
    free_threads: Vec<usize>,
    queues: Vec<VecDeque<usize>>,
    free_cpus: usize,
    ready: VecDeque<(usize, f64)>,
    open_commit: Vec<usize>,
    gathering: bool,
    commits: Vec<Vec<usize>>,
    idle_commits: Vec<usize>,
    disk_queue: VecDeque<usize>,
    disk_busy: usize,
    tally: Tally,
}

/// Simulates the server.
pub fn simulate(server: &Server, length: Length) -> Outcome {
    let mut run = Run::new(server, length.seed);
    let warm_up = (length.requests / 5).max(4 * run.streams.len());
    let all = warm_up + length.requests;
    let batch = (length.requests / BATCHES).max(1);
    let mut counting = false;
    for _ in 0..all * MAX_EVENTS_PER_REQUEST {
        let before = run.tally.done;
        if !run.step() {
            break;
        }
        if run.tally.done == before {
            continue;
        }
        if !counting && run.tally.done >= warm_up {
            counting = true;
            run.tally = Tally {
                since: run.now,
                log_since: run.now,
                classes: vec![Vec::new(); server.classes.len()],
                ..Tally::default()
            };
        } else if counting && run.tally.done.is_multiple_of(batch) {
            run.tally.batch_ends.push(run.now);
            if run.tally.batch_ends.len() == BATCHES {
                break;
            }
        }
    }
    run.tally.outcome(run.now, server)
}

impl<'a> Run<'a> {
    fn new(server: &'a Server, seed: u64) -> Run<'a> {
        let commits = match &server.log {
            Log::Group { at_once, .. } => *at_once,
            Log::Delay(_) => 0,
        };
        let mut run = Run {
            server,
            random: SmallRng::seed_from_u64(seed),
            now: 0.0,
            next: 0,
            events: BinaryHeap::new(),
            streams: Vec::new(),
            free_threads: server.pools.iter().map(|p| p.threads).collect(),
            queues: vec![VecDeque::new(); server.pools.len()],
            free_cpus: server.cpus,
            ready: VecDeque::new(),
            open_commit: Vec::new(),
            gathering: false,
            commits: vec![Vec::new(); commits],
            idle_commits: (0..commits).collect(),
            disk_queue: VecDeque::new(),
            disk_busy: 0,
            tally: Tally {
                classes: vec![Vec::new(); server.classes.len()],
                ..Tally::default()
            },
        };
        for (group, clients) in server.clients.iter().enumerate() {
            for _ in 0..clients.streams {
                let s = run.streams.len();
                let first = match clients.pace {
                    Pace::Think(mean) | Pace::Period(mean) => mean * run.random.random::<f64>(),
                };
                run.streams.push(Stream {
                    group,
                    class: 0,
                    pool: 0,
                    step: Step::Outside,
                    disk_left: 0,
                    log_left: 0,
                    cpu: 0.0,
                    due: first,
                    arrived: 0.0,
                    began: 0.0,
                    waits_since: 0.0,
                });
                run.at(first, Event::Ask(s));
            }
        }
        run
    }

    fn at(&mut self, when: f64, what: Event) {
        self.next += 1;
        self.events.push(Reverse(At(when, self.next, what)));
    }

    fn step(&mut self) -> bool {
        let Some(Reverse(At(now, _, event))) = self.events.pop() else {
            return false;
        };
        self.now = now;
        match event {
            Event::Ask(s) => self.ask(s),
            Event::Burst(s) => {
                match self.ready.pop_front() {
                    Some((other, time)) => self.run_burst(other, time),
                    None => self.free_cpus += 1,
                }
                self.advance(s);
            }
            Event::Slept(s) => self.advance(s),
            Event::Disk(s) => {
                match self.disk_queue.pop_front() {
                    Some(other) => self.serve(other),
                    None => self.disk_busy -= 1,
                }
                self.advance(s);
            }
            Event::Logged(s) => self.logged(s),
            Event::Gathered => {
                self.gathering = false;
                self.start_commit();
            }
            Event::Commit(slot) => {
                let served = std::mem::take(&mut self.commits[slot]);
                self.idle_commits.push(slot);
                if self.idle_commits.len() == self.commits.len() {
                    self.tally.log_time += self.now - self.tally.log_since;
                }
                self.start_commit();
                for s in served {
                    self.logged(s);
                }
            }
        }
        true
    }

    fn burst(&mut self, s: usize, time: f64) {
        if time <= 0.0 {
            return self.advance(s);
        }
        if self.free_cpus > 0 {
            self.free_cpus -= 1;
            self.run_burst(s, time);
        } else {
            self.ready.push_back((s, time));
        }
    }

    fn run_burst(&mut self, s: usize, time: f64) {
        self.tally.cpu_time += time;
        self.at(self.now + time, Event::Burst(s));
    }

    fn serve(&mut self, s: usize) {
        let time = self.server.disk.service.draw(&mut self.random);
        self.tally.disk_time += time;
        self.at(self.now + time, Event::Disk(s));
    }

    /// A client begins a request: first there is what the kernel and the programs do for it.
    fn ask(&mut self, s: usize) {
        let mix = &self.server.clients[self.streams[s].group].mix;
        let class = pick(mix, &mut self.random);
        let shares: f64 = self.server.pools.iter().map(|p| p.share).sum();
        let mut at = self.random.random::<f64>() * shares;
        let pool = self.server.pools.iter().position(|p| {
            at -= p.share;
            at < 0.0
        });
        let c = &self.server.classes[class];
        let (disk, log) = (c.disk_visits, c.log_waits);
        let count = |n: f64, random: &mut SmallRng| {
            n as u32 + u32::from(random.random::<f64>() < n.fract())
        };
        let disk_left = count(disk, &mut self.random);
        let log_left = count(log, &mut self.random);
        let cpu = c.cpu.draw(&mut self.random);
        let stream = &mut self.streams[s];
        stream.class = class;
        stream.pool = pool.unwrap_or(0);
        stream.step = Step::Outside;
        stream.disk_left = disk_left;
        stream.log_left = log_left;
        stream.cpu = cpu;
        let time = self.server.other_cpu.draw(&mut self.random);
        self.burst(s, time);
    }

    fn start_commit(&mut self) {
        let Log::Group { commit, .. } = &self.server.log else {
            return;
        };
        if self.gathering || self.open_commit.is_empty() {
            return;
        }
        let all_idle = self.idle_commits.len() == self.commits.len();
        let Some(slot) = self.idle_commits.pop() else {
            return;
        };
        if all_idle {
            self.tally.log_since = self.now;
        }
        let time = commit.draw(&mut self.random);
        self.commits[slot] = std::mem::take(&mut self.open_commit);
        self.tally.commits += 1;
        self.at(self.now + time, Event::Commit(slot));
    }

    fn logged(&mut self, s: usize) {
        self.tally.log.0 += 1;
        self.tally.log.1 += self.now - self.streams[s].waits_since;
        self.advance(s);
    }

    fn take(&mut self, s: usize) {
        let waited = self.now - self.streams[s].arrived;
        self.tally.queue.push(waited);
        self.streams[s].waits_since = self.now;
        self.streams[s].step = Step::Receive;
        let class = &self.server.classes[self.streams[s].class];
        let time = class.receive.draw(&mut self.random);
        self.streams[s].began = self.now;
        self.burst(s, time);
    }

    /// What comes after the step that has ended.
    fn advance(&mut self, s: usize) {
        let class = &self.server.classes[self.streams[s].class];
        match self.streams[s].step {
            Step::Outside => {
                let pool = self.streams[s].pool;
                self.streams[s].arrived = self.now;
                if self.free_threads[pool] > 0 {
                    self.free_threads[pool] -= 1;
                    self.take(s);
                } else {
                    self.queues[pool].push_back(s);
                }
            }
            Step::Receive => {
                self.tally.thread_time += self.now - self.streams[s].began;
                self.streams[s].began = self.now;
                self.streams[s].step = Step::FirstCpu;
                let time = self.streams[s].cpu / 2.0;
                self.burst(s, time);
            }
            Step::FirstCpu => {
                self.streams[s].step = Step::Sleep;
                let time = class.sleep.draw(&mut self.random);
                if time > 0.0 {
                    return self.at(self.now + time, Event::Slept(s));
                }
                self.advance(s);
            }
            Step::Sleep | Step::Disk if self.streams[s].disk_left > 0 => {
                self.streams[s].step = Step::Disk;
                self.streams[s].disk_left -= 1;
                let most = self.server.disk.at_once.unwrap_or(usize::MAX);
                if self.disk_busy < most {
                    self.disk_busy += 1;
                    self.serve(s);
                } else {
                    self.disk_queue.push_back(s);
                }
            }
            Step::Sleep | Step::Disk | Step::Log if self.streams[s].log_left > 0 => {
                self.streams[s].step = Step::Log;
                self.streams[s].log_left -= 1;
                self.streams[s].waits_since = self.now;
                match &self.server.log {
                    Log::Group { gather, .. } => {
                        self.open_commit.push(s);
                        if *gather > 0.0 && self.open_commit.len() == 1 {
                            self.gathering = true;
                            self.at(self.now + gather, Event::Gathered);
                        }
                        self.start_commit();
                    }
                    Log::Delay(wait) => {
                        let time = wait.draw(&mut self.random);
                        self.at(self.now + time, Event::Logged(s));
                    }
                }
            }
            Step::Sleep | Step::Disk | Step::Log => {
                self.streams[s].step = Step::LastCpu;
                let time = self.streams[s].cpu / 2.0;
                self.burst(s, time);
            }
            Step::LastCpu => {
                let stream = &mut self.streams[s];
                let executed = self.now - stream.began;
                self.tally.thread_time += executed;
                stream.began = self.now;
                stream.step = Step::Reply;
                let class_index = stream.class;
                self.tally.classes[class_index].push(executed);
                let time = class.reply.draw(&mut self.random);
                self.burst(s, time);
            }
            Step::Reply => self.replied(s),
        }
    }

    fn replied(&mut self, s: usize) {
        let (pool, group) = (self.streams[s].pool, self.streams[s].group);
        self.tally.thread_time += self.now - self.streams[s].began;
        self.tally.residence += self.now - self.streams[s].arrived;
        self.tally.done += 1;
        match self.queues[pool].pop_front() {
            Some(other) => self.take(other),
            None => self.free_threads[pool] += 1,
        }
        let due = match self.server.clients[group].pace {
            Pace::Think(mean) if mean > 0.0 => {
                let random: f64 = self.random.random();
                self.now - mean * (1.0 - random).ln()
            }
            Pace::Think(_) => self.now,
            Pace::Period(mean) => {
                // Somewhere in the next turn, as programs with timers and people are.
                let random = 0.5 + self.random.random::<f64>();
                let due = self.streams[s].due + mean * random;
                due.max(self.now)
            }
        };
        self.streams[s].due = due;
        self.at(due, Event::Ask(s));
    }
}
