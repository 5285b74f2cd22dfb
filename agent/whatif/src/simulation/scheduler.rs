//! Who gets a CPU: fair queueing, as Linux has it since 6.6.
//!
//! The method is EEVDF: I. Stoica and H. Abdel-Wahab, Earliest Eligible Virtual Deadline First, Old Dominion University 1995. A
//! virtual clock says what CPU time each runnable task should have had. Who has had more waits; of the others, the one whose slice
//! was to end first goes next. A task keeps its CPU until it sleeps or its slice is over (the kernel's feature RUN_TO_PARITY).
//! A server's time depends on it where its CPUs are full: a few threads that do the work of many clients have had more than
//! their share, and the clients come first.

/// A slice on one CPU, in seconds: `sysctl_sched_base_slice` in kernel/sched/fair.c.
const BASE_SLICE: f64 = 0.75e-3;

/// What one task has had.
#[derive(Debug, Clone, Copy, Default)]
struct Task {
    had: f64,
    deadline: f64,
    is_urgent: bool,
}

/// Tasks that share CPUs.
#[derive(Debug)]
pub(crate) struct Scheduler {
    slice: f64,
    cpus: usize,
    running: usize,
    ready: Vec<usize>,
    tasks: Vec<Task>,
    /// What a task that was always runnable has had.
    virtual_clock: f64,
    clock: f64,
}

impl Scheduler {
    pub fn new(cpus: usize, tasks: usize) -> Scheduler {
        // The kernel's factor: one more for each doubling of the CPUs, up to eight of them.
        let factor = 1.0 + (cpus.clamp(1, 8) as f64).log2().floor();
        Scheduler {
            slice: BASE_SLICE * factor,
            cpus: cpus.max(1),
            running: 0,
            ready: Vec::new(),
            tasks: vec![Task::default(); tasks],
            virtual_clock: 0.0,
            clock: 0.0,
        }
    }

    /// This task goes before all others from now on, as interrupts do.
    pub fn set_urgent(&mut self, task: usize) {
        self.tasks[task].is_urgent = true;
    }

    /// A task that slept wants a CPU.
    pub fn wake(&mut self, now: f64, task: usize) {
        self.tick(now);
        let t = &mut self.tasks[task];
        // Sleeping earns nothing; what was had too much stays so until the others have had as much.
        t.had = t.had.max(self.virtual_clock);
        t.deadline = t.had + self.slice;
        self.ready.push(task);
    }

    /// A task ran for so long and wants to go on: whether it keeps its CPU. Otherwise it waits like those that woke.
    pub fn keeps(&mut self, now: f64, task: usize) -> bool {
        self.tick(now);
        let t = &mut self.tasks[task];
        if t.had < t.deadline {
            return true;
        }
        t.deadline = t.had + self.slice;
        if self.ready.is_empty() {
            return true;
        }
        self.running -= 1;
        self.ready.push(task);
        false
    }

    /// A task will have had so much more when its burst ends.
    pub fn charge(&mut self, task: usize, time: f64) {
        self.tasks[task].had += time;
    }

    /// A task with a CPU has nothing to do any more.
    pub fn sleep(&mut self, now: f64) {
        self.tick(now);
        self.running -= 1;
    }

    /// The task that gets a free CPU now.
    pub fn next(&mut self, now: f64) -> Option<usize> {
        if self.running >= self.cpus || self.ready.is_empty() {
            return None;
        }
        self.tick(now);
        let t = |i: &usize| self.tasks[self.ready[*i]];
        let all = || 0..self.ready.len();
        let urgent = all().find(|i| t(i).is_urgent);
        let due = || {
            let eligible = all().filter(|i| t(i).had <= self.virtual_clock + 1e-12);
            eligible.min_by(|a, b| t(a).deadline.total_cmp(&t(b).deadline))
        };
        let least = || all().min_by(|a, b| t(a).had.total_cmp(&t(b).had));
        let at = urgent.or_else(due).or_else(least)?;
        // In order of waking among equals.
        let task = self.ready.remove(at);
        let had = self.tasks[task].had;
        if !self.tasks[task].is_urgent {
            self.virtual_clock = self.virtual_clock.max(had);
        }
        self.running += 1;
        Some(task)
    }

    fn tick(&mut self, now: f64) {
        let runnable = self.running + self.ready.len();
        if runnable > 0 {
            self.virtual_clock += (now - self.clock) * self.running as f64 / runnable as f64;
        }
        self.clock = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_slept_go_before_one_that_had_more_than_its_share() {
        let mut s = Scheduler::new(1, 3);
        s.wake(0.0, 0);
        assert_eq!(s.next(0.0), Some(0));
        s.charge(0, 1e-3);
        // Both wake while it runs.
        s.wake(0.2e-3, 1);
        s.wake(0.3e-3, 2);
        assert_eq!(s.next(0.3e-3), None);
        // Its slice is over.
        assert!(!s.keeps(1e-3, 0));
        assert_eq!(s.next(1e-3), Some(1));
        s.charge(1, 0.1e-3);
        s.sleep(1.1e-3);
        assert_eq!(s.next(1.1e-3), Some(2));
        s.charge(2, 0.1e-3);
        s.sleep(1.2e-3);
        assert_eq!(s.next(1.2e-3), Some(0));
    }

    #[test]
    fn a_task_keeps_its_cpu_until_its_slice_is_over() {
        let mut s = Scheduler::new(1, 2);
        s.wake(0.0, 0);
        s.next(0.0);
        s.charge(0, 0.5e-3);
        s.wake(0.1e-3, 1);
        assert!(s.keeps(0.5e-3, 0));
        s.charge(0, 0.3e-3);
        assert!(!s.keeps(0.8e-3, 0));
    }

    #[test]
    fn interrupts_go_first() {
        let mut s = Scheduler::new(1, 3);
        s.set_urgent(2);
        for task in 0..3 {
            s.wake(0.0, task);
        }
        assert_eq!(s.next(0.0), Some(2));
    }

    #[test]
    fn slices_grow_with_the_cpus_up_to_eight() {
        for (cpus, slice) in [(1, 0.75e-3), (2, 1.5e-3), (8, 3e-3), (64, 3e-3)] {
            assert!((Scheduler::new(cpus, 0).slice - slice).abs() < 1e-12);
        }
    }
}
