//! Steps of a request.

use super::event::Event;
use super::run::Run;
use super::stream::Step;
use crate::durations::pick;
use crate::server::Pace;
use rand::Rng;
use rand::rngs::SmallRng;

impl Run<'_> {
    /// The request's thread computes.
    fn burst(&mut self, s: usize, time: f64) {
        match time > 0.0 {
            true => self.compute(self.streams[s].thread, time),
            false => self.advance(s),
        }
    }

    /// A client begins a request: first the kernel and other programs compute for it, outside of nfsd.
    pub fn ask(&mut self, s: usize) {
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
        match time > 0.0 {
            true => self.compute(s, time),
            false => self.advance(s),
        }
    }

    /// A thread with a CPU takes the request that has waited longest.
    pub fn take_first(&mut self, thread: usize) {
        let pool = self.pool_of[thread];
        let Some(s) = self.queues[pool].pop_front() else {
            return;
        };
        self.wake_thread(pool);
        let waited = self.now - self.streams[s].arrived;
        self.tally.queue.push(waited);
        self.works_on[thread] = s;
        let stream = &mut self.streams[s];
        stream.thread = thread;
        stream.waits_since = self.now;
        stream.began = self.now;
        stream.step = Step::Receive;
        let class = &self.server.classes[stream.class];
        let time = class.receive.draw(&mut self.random);
        self.burst(s, time);
    }

    /// Starts the step after the one that has ended.
    pub fn advance(&mut self, s: usize) {
        let class = &self.server.classes[self.streams[s].class];
        match self.streams[s].step {
            Step::Outside => {
                let pool = self.streams[s].pool;
                self.streams[s].arrived = self.now;
                self.queues[pool].push_back(s);
                self.wake_thread(pool);
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
                self.wait_for_log(s);
            }
            Step::Sleep | Step::Disk | Step::Log => {
                self.streams[s].step = Step::LastCpu;
                let time = self.streams[s].cpu / 2.0;
                if time <= 0.0 {
                    self.log_wait_ends(s);
                }
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
        let stream = &self.streams[s];
        let (group, thread) = (stream.group, stream.thread);
        self.tally.thread_time += self.now - self.streams[s].began;
        self.tally.residence += self.now - self.streams[s].arrived;
        self.tally.done += 1;
        let due = match self.server.clients[group].pace {
            Pace::Think(mean) if mean > 0.0 => {
                let random: f64 = self.random.random();
                self.now - mean * (1.0 - random).ln()
            }
            Pace::Think(_) => self.now,
            Pace::Period(mean) => {
                // Random time within the next period, as for programs with timers and for people.
                let random = 0.5 + self.random.random::<f64>();
                let due = self.streams[s].due + mean * random;
                due.max(self.now)
            }
        };
        self.streams[s].due = due;
        self.at(due, Event::Ask(s));
        self.look(thread);
    }
}
