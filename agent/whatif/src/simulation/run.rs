//! The state of a run, its events, and the steps of tasks on CPUs.

use super::event::{At, Event};
use super::log_state::LogState;
use super::scheduler::Scheduler;
use super::stream::Stream;
use crate::outcome::Tally;
use crate::server::{Log, Pace, Server};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// State of a run. Tasks have consecutive numbers: first one of each stream for work outside of nfsd, then nfsd's threads, then the tasks
/// that write the log.
pub(super) struct Run<'a> {
    pub server: &'a Server,
    pub random: SmallRng,
    pub now: f64,
    next: u64,
    events: BinaryHeap<Reverse<At>>,
    pub streams: Vec<Stream>,
    /// Sleeping threads of each pool: the last to sleep is the first to wake, as in nfsd.
    pub idle_threads: Vec<Vec<usize>>,
    pub queues: Vec<VecDeque<usize>>,
    scheduler: Scheduler,
    /// Request that each task works on; `bursts` has the length of its burst.
    pub works_on: Vec<usize>,
    bursts: Vec<f64>,
    /// Pool of each task that is a thread.
    pub pool_of: Vec<usize>,
    /// Commit that a task computes for while it waits for the log itself.
    pub writes: Vec<Option<usize>>,
    /// Threads without a request, which take the first one when they get a CPU.
    looks: Vec<bool>,
    /// Threads of `looks` that slept until a request came; `is_waking` is true for a pool that has one.
    wakes: Vec<bool>,
    is_waking: Vec<bool>,
    /// Task whose burst has just ended and which has not gone to sleep.
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
        let mut pool_of = vec![0; threads_from];
        for (i, pool) in server.pools.iter().enumerate() {
            pool_of.extend(std::iter::repeat_n(i, pool.threads));
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
            pool_of,
            writes: vec![None; tasks],
            looks: vec![false; tasks],
            wakes: vec![false; tasks],
            is_waking: vec![false; server.pools.len()],
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

    /// Processes one event; returns false if there is none left.
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
            match std::mem::take(&mut self.looks[task]) {
                true => self.looks_with_a_cpu(task),
                false => self.run_burst(task),
            }
        }
        true
    }

    /// Lets a task compute for `time` as soon as it has a CPU. A task that has not slept since its last burst may keep its CPU.
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

    /// Wakes a thread of the pool for a request that waits. At most one thread at a time has woken and has no CPU yet
    /// (svc_pool_wake_idle_thread()): it wakes the next one if more requests wait.
    pub fn wake_thread(&mut self, pool: usize) {
        if self.is_waking[pool] || self.queues[pool].is_empty() {
            return;
        }
        if let Some(thread) = self.idle_threads[pool].pop() {
            self.is_waking[pool] = true;
            self.wakes[thread] = true;
            self.look(thread);
        }
    }

    /// Lets a thread without a request look for one. Requests are taken in order, by the thread that has a CPU first.
    pub fn look(&mut self, thread: usize) {
        if self.awake != Some(thread) {
            self.looks[thread] = true;
            self.scheduler.wake(self.now, thread);
        } else if self.queues[self.pool_of[thread]].is_empty() {
            self.idle_threads[self.pool_of[thread]].push(thread);
        } else if self.scheduler.keeps(self.now, thread) {
            self.take_first(thread);
        } else {
            self.awake = None;
            self.looks[thread] = true;
        }
    }

    fn looks_with_a_cpu(&mut self, thread: usize) {
        self.awake = Some(thread);
        if std::mem::take(&mut self.wakes[thread]) {
            self.is_waking[self.pool_of[thread]] = false;
        }
        match self.queues[self.pool_of[thread]].is_empty() {
            true => self.idle_threads[self.pool_of[thread]].push(thread),
            false => self.take_first(thread),
        }
        if self.awake.take() == Some(thread) {
            self.scheduler.sleep(self.now, thread);
        }
    }

    /// Like [`compute`](Self::compute), but behind all tasks that wait for a CPU by now.
    pub fn compute_last(&mut self, task: usize, time: f64) {
        if self.awake == Some(task) {
            self.bursts[task] = time;
            self.awake = None;
            self.scheduler.yields(self.now, task);
        } else {
            self.compute(task, time);
        }
    }

    fn run_burst(&mut self, task: usize) {
        match self.writes_log(task) {
            Some(slot) => self.log_runs(slot),
            None => self.log_wait_ends(self.works_on[task]),
        }
        let time = self.bursts[task];
        self.tally.cpu_time += time;
        self.at(self.now + time, Event::Burst(task));
    }

    /// Commit that a task's burst is for. The task is one of the log's own, or a thread that waits and writes.
    fn writes_log(&self, task: usize) -> Option<usize> {
        self.writes[task].or(task.checked_sub(self.log_from))
    }

    fn burst_ended(&mut self, task: usize) {
        self.awake = Some(task);
        match self.writes_log(task) {
            Some(slot) => {
                self.writes[task] = None;
                self.log_computed(slot);
            }
            None => self.advance(self.works_on[task]),
        }
        if self.awake.take() == Some(task) {
            self.scheduler.sleep(self.now, task);
        }
    }

    pub fn serve(&mut self, s: usize) {
        let time = self.server.disk.service.draw(&mut self.random);
        self.tally.disk_time += time;
        self.at(self.now + time, Event::Disk(s));
    }
}
