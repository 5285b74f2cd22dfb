//! The state of a run, its events, and what tasks do with CPUs.

use super::event::{At, Event};
use super::log::LogState;
use super::requests::{Step, Stream};
use super::scheduler::Scheduler;
use crate::outcome::Tally;
use crate::server::{Log, Pace, Server};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Tasks are numbered: first what the clients' requests keep busy outside of nfsd, then nfsd's threads, then what writes the log.
pub(super) struct Run<'a> {
    pub server: &'a Server,
    pub random: SmallRng,
    pub now: f64,
    next: u64,
    events: BinaryHeap<Reverse<At>>,
    pub streams: Vec<Stream>,
    /// Of each pool, those that sleep: the last to sleep is the first to wake, as nfsd keeps them.
    pub idle_threads: Vec<Vec<usize>>,
    pub queues: Vec<VecDeque<usize>>,
    scheduler: Scheduler,
    /// Of each task: the request that it works on, and how long its burst is.
    pub works_on: Vec<usize>,
    bursts: Vec<f64>,
    /// A task whose burst has just ended and which has not gone to sleep.
    awake: Option<usize>,
    pub log_from: usize,
    pub log: LogState,
    pub disk_queue: VecDeque<usize>,
    pub disk_busy: usize,
    pub tally: Tally,
}

impl<'a> Run<'a> {
    pub fn new(server: &'a Server, seed: u64) -> Run<'a> {
        let commits = match &server.log {
            Log::Group { at_once, .. } => *at_once,
            Log::Delay(_) => 0,
        };
        let threads_from: usize = server.clients.iter().map(|c| c.streams).sum();
        let threads: usize = server.pools.iter().map(|p| p.threads).sum();
        let log_from = threads_from + threads;
        let tasks = log_from + commits;
        let mut scheduler = Scheduler::new(server.cpus, tasks);
        if server.other_is_urgent {
            (0..threads_from).for_each(|task| scheduler.set_urgent(task));
        }
        let mut first = threads_from;
        let idle_threads = server.pools.iter().map(|p| {
            let all = (first..first + p.threads).rev().collect();
            first += p.threads;
            all
        });
        let mut run = Run {
            server,
            random: SmallRng::seed_from_u64(seed),
            now: 0.0,
            next: 0,
            events: BinaryHeap::new(),
            streams: Vec::new(),
            idle_threads: idle_threads.collect(),
            queues: vec![VecDeque::new(); server.pools.len()],
            scheduler,
            works_on: (0..tasks).collect(),
            bursts: vec![0.0; tasks],
            awake: None,
            log_from,
            log: LogState::new(commits),
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
                run.streams.push(Stream::new(group, first));
                run.at(first, Event::Ask(s));
            }
        }
        run
    }

    pub fn at(&mut self, when: f64, what: Event) {
        self.next += 1;
        self.events.push(Reverse(At(when, self.next, what)));
    }

    /// One event; false when there is none any more.
    pub fn step(&mut self) -> bool {
        let Some(Reverse(At(now, _, event))) = self.events.pop() else {
            return false;
        };
        self.now = now;
        match event {
            Event::Ask(s) => self.ask(s),
            Event::Burst(task) => self.burst_ended(task),
            Event::Slept(s) => self.advance(s),
            Event::Disk(s) => {
                match self.disk_queue.pop_front() {
                    Some(other) => self.serve(other),
                    None => self.disk_busy -= 1,
                }
                self.advance(s);
            }
            Event::Logged(s) => self.logged(s),
            Event::Gathered => self.gathered(),
            Event::Written(slot) => self.written(slot),
        }
        while let Some(task) = self.scheduler.next(now) {
            if task >= self.log_from {
                self.log_runs(task - self.log_from);
            }
            self.run_burst(task);
        }
        true
    }

    /// A task computes for so long, as soon as it has a CPU; one that has not slept since its last burst keeps its own.
    pub fn compute(&mut self, task: usize, time: f64) {
        self.bursts[task] = time;
        if self.awake == Some(task) {
            self.awake = None;
            if self.scheduler.keeps(self.now, task) {
                self.run_burst(task);
            }
        } else {
            self.scheduler.wake(self.now, task);
        }
    }

    fn run_burst(&mut self, task: usize) {
        let time = self.bursts[task];
        self.scheduler.charge(task, time);
        self.tally.cpu_time += time;
        self.at(self.now + time, Event::Burst(task));
    }

    fn burst_ended(&mut self, task: usize) {
        self.awake = Some(task);
        match task >= self.log_from {
            true => self.log_computed(task - self.log_from),
            false => self.advance(self.works_on[task]),
        }
        if self.awake.take() == Some(task) {
            self.scheduler.sleep(self.now);
        }
    }

    pub fn serve(&mut self, s: usize) {
        let time = self.server.disk.service.draw(&mut self.random);
        self.tally.disk_time += time;
        self.at(self.now + time, Event::Disk(s));
    }
}

impl Stream {
    fn new(group: usize, due: f64) -> Stream {
        Stream {
            group,
            class: 0,
            pool: 0,
            thread: 0,
            step: Step::Outside,
            disk_left: 0,
            log_left: 0,
            cpu: 0.0,
            due,
            arrived: 0.0,
            began: 0.0,
            waits_since: 0.0,
        }
    }
}
