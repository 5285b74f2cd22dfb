//! The log: requests that wait for it, and its commits.

use super::event::Event;
use super::run::Run;
use crate::server::{Log, Writer};

/// CPU seconds of a thread that writes the log and is not known to need more: it has to wait for a CPU even so.
const LEAST_CPU: f64 = 1e-6;

impl Run<'_> {
    /// A request waits until the log is durable.
    pub fn wait_for_log(&mut self, s: usize) {
        self.log_wait_ends(s);
        self.streams[s].waits_since = self.now;
        match &self.server.log {
            Log::Group { gather, .. } => {
                self.log.waiting.push(s);
                if *gather > 0.0 && self.log.waiting.len() == 1 {
                    self.log.gathering = true;
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

    pub fn gathered(&mut self) {
        self.log.gathering = false;
        self.start_commit();
    }

    fn start_commit(&mut self) {
        let Log::Group { cpu, writer, .. } = &self.server.log else {
            return;
        };
        let Some(slot) = self.next_slot() else {
            return;
        };
        self.log.is_coming = true;
        match writer {
            Writer::Waiter | Writer::WaiterOfClosed => {
                let first = self.log.waiting[0];
                self.waiter_writes(slot, first);
            }
            Writer::Task if *cpu > 0.0 => self.compute(self.log_from + slot, cpu / 2.0),
            Writer::Task => {
                self.log_runs(slot);
                self.write(slot);
            }
        }
    }

    fn waiter_writes(&mut self, slot: usize, waits: usize) {
        let Log::Group { cpu, .. } = &self.server.log else {
            return;
        };
        let thread = self.streams[waits].thread;
        self.writes[thread] = Some(slot);
        self.compute(thread, cpu.max(LEAST_CPU));
    }

    /// Slot of the next commit, if a request waits for one and it may begin.
    fn next_slot(&mut self) -> Option<usize> {
        if self.log.gathering || self.log.is_coming || self.log.waiting.is_empty() {
            return None;
        }
        let all_idle = self.log.idle.len() == self.log.carried.len();
        let slot = self.log.idle.pop()?;
        if all_idle {
            self.tally.log_since = self.now;
        }
        self.log.is_written[slot] = false;
        Some(slot)
    }

    /// The task that writes the log has got a CPU: its commit carries all requests that wait by now.
    pub fn log_runs(&mut self, slot: usize) {
        if self.log.is_written[slot] {
            return;
        }
        if self.log.carried[slot].is_empty() {
            self.log.is_coming = false;
            self.log.carried[slot] = std::mem::take(&mut self.log.waiting);
            self.log.began[slot] = self.now;
        } else if let Log::Group {
            writer: Writer::WaiterOfClosed,
            ..
        } = &self.server.log
        {
            self.log.began[slot] = self.now;
        }
    }

    /// The burst of the log's task, before or after the device's requests, has ended.
    pub fn log_computed(&mut self, slot: usize) {
        match self.log.is_written[slot] {
            true => self.committed(slot),
            false => self.write(slot),
        }
    }

    fn write(&mut self, slot: usize) {
        let Log::Group { commit, .. } = &self.server.log else {
            return;
        };
        let time = commit.draw(&mut self.random);
        self.at(self.now + time, Event::Written(slot));
    }

    pub fn written(&mut self, slot: usize) {
        self.log.is_written[slot] = true;
        match &self.server.log {
            Log::Group {
                cpu,
                writer: Writer::Task,
                ..
            } if *cpu > 0.0 => {
                self.compute(self.log_from + slot, cpu / 2.0);
            }
            _ => self.committed(slot),
        }
    }

    fn committed(&mut self, slot: usize) {
        self.tally.commits += 1;
        self.tally.commit_time += self.now - self.log.began[slot];
        let served = std::mem::take(&mut self.log.carried[slot]);
        self.log.idle.push(slot);
        if self.log.idle.len() == self.log.carried.len() {
            self.tally.log_time += self.now - self.tally.log_since;
        }
        if matches!(
            self.server.log,
            Log::Group {
                writer: Writer::Waiter,
                ..
            }
        ) {
            served.into_iter().for_each(|s| self.logged(s));
            return self.start_commit();
        }
        // The task that writes the log has a CPU. It closes the next commit, and only then may the threads that wake take its CPU.
        let next = self.next_slot();
        if let Some(slot) = next {
            self.log_runs(slot);
        }
        for s in served {
            self.logged(s);
        }
        match (&self.server.log, next) {
            (
                Log::Group {
                    writer: Writer::WaiterOfClosed,
                    ..
                },
                Some(slot),
            ) => {
                let first = self.log.carried[slot][0];
                self.waiter_writes(slot, first);
            }
            // The woken threads have their CPU first: measured commits took longer by what these threads compute.
            (Log::Group { cpu, .. }, Some(slot)) if *cpu > 0.0 => {
                self.compute_last(self.log_from + slot, cpu / 2.0);
            }
            (_, Some(slot)) => self.write(slot),
            _ => {}
        }
    }

    pub fn logged(&mut self, s: usize) {
        self.tally.log.0 += 1;
        self.streams[s].logged_since = Some(self.streams[s].waits_since);
        self.advance(s);
    }

    /// A wait ends when its thread runs again: that is what the probes see.
    pub fn log_wait_ends(&mut self, s: usize) {
        if let Some(since) = self.streams[s].logged_since.take() {
            self.tally.log.1 += self.now - since;
        }
    }
}
