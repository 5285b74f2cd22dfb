//! Scheduler of the CPUs: fair queueing, as in Linux since 6.12.
//!
//! The method is EEVDF: I. Stoica and H. Abdel-Wahab, Earliest Eligible Virtual Deadline First, Old Dominion University 1995. The CPU time
//! of each task is counted. A task that has had more than the average of all runnable tasks waits. Among the others, the one with the
//! earliest end of its slice goes next. Names of the kernel's features are those of kernel/sched/features.h.
//!
//! Fair queueing matters where CPUs are full: a few threads that do the work of many clients have had more than their share. So the clients
//! come first, and requests wait for a thread.

/// A slice on one CPU, in seconds: `sysctl_sched_base_slice` in kernel/sched/fair.c.
const BASE_SLICE: f64 = 0.75e-3;
/// Limit of a sleeping task's lag to either side, in seconds: a tick at 250 Hz (update_entity_lag()).
const MOST_LAG: f64 = 4e-3;
/// Times that differ by less are equal.
const EQUAL: f64 = 1e-12;

/// A task as the scheduler sees it.
#[derive(Debug, Clone, Copy, Default)]
struct Task {
    /// CPU time that the task has had, on the virtual clock of the tasks that it was runnable with.
    had: f64,
    deadline: f64,
    /// Lag of a sleeping task: the CPU time that it was owed when it went to sleep (PLACE_LAG).
    lag: f64,
    /// Time up to which `had` counts, while the task runs.
    since: f64,
    is_urgent: bool,
    /// True if a task that woke goes before this running one.
    is_preempted: bool,
}

/// Tasks that share CPUs.
#[derive(Debug)]
pub(crate) struct Scheduler {
    slice: f64,
    cpus: usize,
    running: Vec<usize>,
    ready: Vec<usize>,
    /// Sleeping tasks that have had more than the average. They count as runnable until the others have had as much (DELAY_DEQUEUE).
    indebted: Vec<usize>,
    tasks: Vec<Task>,
    average: f64,
}

impl Scheduler {
    pub fn new(cpus: usize, tasks: usize) -> Scheduler {
        // Factor of the kernel: one more for each doubling of the CPUs, up to eight of them.
        let factor = 1.0 + (cpus.clamp(1, 8) as f64).log2().floor();
        Scheduler {
            slice: BASE_SLICE * factor,
            cpus: cpus.max(1),
            running: Vec::new(),
            ready: Vec::new(),
            indebted: Vec::new(),
            tasks: vec![Task::default(); tasks],
            average: 0.0,
        }
    }

    /// Lets this task go before all others from now on, as interrupts do.
    pub fn set_urgent(&mut self, task: usize) {
        self.tasks[task].is_urgent = true;
    }

    /// Makes a task that slept runnable.
    pub fn wake(&mut self, now: f64, task: usize) {
        self.look(now);
        let average = self.average;
        let runnable = (self.running.len() + self.ready.len() + self.indebted.len()) as f64;
        let t = &mut self.tasks[task];
        match self.indebted.iter().position(|other| *other == task) {
            Some(i) => {
                self.indebted.swap_remove(i);
            }
            // The task moves the average itself. The formula keeps the lag that it is owed behind the new average.
            None => t.had = average - t.lag * (runnable + 1.0) / runnable.max(1.0),
        }
        t.deadline = t.had + self.slice;
        self.ready.push(task);
        self.set_average();
        self.preempt_for(task);
    }

    /// Preempts for a task that woke, if it is the first in the queue: the running task that has had most is preempted if it has had more
    /// than its share (check_preempt_wakeup_fair()). A task that is not the first in the queue preempts none.
    fn preempt_for(&mut self, task: usize) {
        if self.running.len() < self.cpus || self.best().map(|i| self.ready[i]) != Some(task) {
            return;
        }
        let all = self
            .running
            .iter()
            .copied()
            .filter(|t| !self.tasks[*t].is_urgent);
        let most = all.max_by(|a, b| self.tasks[*a].had.total_cmp(&self.tasks[*b].had));
        if let Some(most) = most
            && (self.tasks[task].is_urgent || self.tasks[most].had > self.average + EQUAL)
        {
            self.tasks[most].is_preempted = true;
        }
    }

    /// Returns true if a task that has computed and wants to go on keeps its CPU. Otherwise it waits like the tasks that woke. It keeps the
    /// CPU until its slice is over (RUN_TO_PARITY) or another task preempts it, and even then if no other task is due.
    pub fn keeps(&mut self, now: f64, task: usize) -> bool {
        self.look(now);
        let t = &mut self.tasks[task];
        let is_over = t.had >= t.deadline;
        if is_over {
            t.deadline = t.had + self.slice;
        }
        let t = *t;
        let is_due = t.had <= self.average + EQUAL;
        let is_preempted = std::mem::take(&mut self.tasks[task].is_preempted);
        if t.is_urgent || !is_preempted && !is_over {
            return true;
        }
        match self.best() {
            Some(i) if self.goes_before(self.ready[i], &t, is_due) => {
                self.running.retain(|other| *other != task);
                self.ready.push(task);
                false
            }
            _ => true,
        }
    }

    /// Puts a task that has computed and wants to go on behind all that are ready now.
    pub fn yields(&mut self, now: f64, task: usize) {
        self.look(now);
        let ready = self.ready.iter().map(|other| self.tasks[*other]);
        let ready: Vec<_> = ready.filter(|t| !t.is_urgent).collect();
        let t = &mut self.tasks[task];
        for other in ready {
            t.had = t.had.max(other.had);
            t.deadline = t.deadline.max(other.deadline);
        }
        self.running.retain(|other| *other != task);
        self.ready.push(task);
    }

    /// Takes the CPU of a task that has nothing left to do.
    pub fn sleep(&mut self, now: f64, task: usize) {
        self.look(now);
        self.running.retain(|other| *other != task);
        let t = &mut self.tasks[task];
        t.lag = (self.average - t.had).clamp(-MOST_LAG, MOST_LAG);
        if t.lag < 0.0 && !t.is_urgent {
            self.indebted.push(task);
        }
    }

    /// The task that gets a free CPU now.
    pub fn next(&mut self, now: f64) -> Option<usize> {
        if self.running.len() >= self.cpus || self.ready.is_empty() {
            return None;
        }
        self.look(now);
        let least = || {
            let all = self.ready.iter().enumerate();
            let least = all.min_by(|a, b| self.tasks[*a.1].had.total_cmp(&self.tasks[*b.1].had));
            least.map(|(i, _)| i)
        };
        let best = self.best().or_else(least)?;
        let task = self.ready.remove(best);
        self.tasks[task].since = now;
        self.tasks[task].is_preempted = false;
        self.running.push(task);
        Some(task)
    }

    /// Index in `ready` of the task that is due first.
    fn best(&self) -> Option<usize> {
        let t = |i: usize| &self.tasks[self.ready[i]];
        let all = || 0..self.ready.len();
        let due = all().filter(|i| t(*i).had <= self.average + EQUAL);
        // Equal tasks go in order of waking.
        all()
            .find(|i| t(*i).is_urgent)
            .or_else(|| due.min_by(|a, b| t(*a).deadline.total_cmp(&t(*b).deadline)))
    }

    fn goes_before(&self, other: usize, t: &Task, is_due: bool) -> bool {
        let o = &self.tasks[other];
        o.is_urgent || !is_due || o.deadline < t.deadline
    }

    /// Updates the CPU time that each task has had by now, and the average of the runnable ones.
    fn look(&mut self, now: f64) {
        for task in &self.running {
            let t = &mut self.tasks[*task];
            t.had += now - t.since;
            t.since = now;
        }
        self.set_average();
        let due = |t: &Task, average: f64| t.had <= average + EQUAL;
        while let Some(i) =
            (0..self.indebted.len()).find(|i| due(&self.tasks[self.indebted[*i]], self.average))
        {
            let task = self.indebted.swap_remove(i);
            // The task did not wait while it slept, so it is owed nothing (DELAY_ZERO).
            self.tasks[task].lag = 0.0;
            self.set_average();
        }
    }

    fn set_average(&mut self) {
        let all = self.running.iter().chain(&self.ready).chain(&self.indebted);
        let fair = all.map(|task| &self.tasks[*task]).filter(|t| !t.is_urgent);
        let (n, sum) = fair.fold((0, 0.0), |(n, sum), t| (n + 1, sum + t.had));
        if n > 0 {
            self.average = sum / f64::from(n);
        }
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
        // Tasks 1 and 2 wake while task 0 runs, and its slice is not over.
        s.wake(0.2e-3, 1);
        s.wake(0.3e-3, 2);
        assert_eq!(s.next(0.3e-3), None);
        assert!(s.keeps(0.4e-3, 0));
        assert!(!s.keeps(0.8e-3, 0));
        assert_eq!(s.next(0.8e-3), Some(1));
        s.sleep(0.9e-3, 1);
        assert_eq!(s.next(0.9e-3), Some(2));
        s.sleep(1.0e-3, 2);
        assert_eq!(s.next(1.0e-3), Some(0));
    }

    #[test]
    fn who_wakes_and_is_due_first_takes_the_cpu_of_one_that_had_more() {
        let mut s = Scheduler::new(1, 3);
        s.wake(0.0, 0);
        s.wake(0.0, 1);
        s.next(0.0);
        // Task 0 has run 0.1 ms longer than task 1, which is queued and due first. Waking task 2 must not preempt task 0.
        s.wake(0.1e-3, 2);
        assert!(s.keeps(0.2e-3, 0));
        // Task 1 is owed time from before and is the only one to wait: waking it preempts task 0.
        let mut s = Scheduler::new(1, 2);
        s.wake(0.0, 0);
        s.wake(0.0, 1);
        s.next(0.0);
        s.sleep(0.3e-3, 0);
        assert_eq!(s.next(0.3e-3), Some(1));
        s.sleep(0.31e-3, 1);
        s.wake(0.4e-3, 0);
        s.next(0.4e-3);
        s.wake(0.5e-3, 1);
        assert!(!s.keeps(0.5e-3, 0));
        assert_eq!(s.next(0.5e-3), Some(1));
    }

    #[test]
    fn a_task_keeps_its_cpu_while_it_is_alone() {
        let mut s = Scheduler::new(1, 2);
        s.wake(0.0, 0);
        s.next(0.0);
        assert!(s.keeps(5e-3, 0));
        s.wake(5e-3, 1);
        assert!(s.keeps(5.1e-3, 0));
        assert!(!s.keeps(5.8e-3, 0));
        assert_eq!(s.next(5.8e-3), Some(1));
    }

    #[test]
    fn tasks_that_never_sleep_have_had_the_same_in_the_end() {
        let mut s = Scheduler::new(2, 5);
        let mut had = [0.0f64; 5];
        (0..5).for_each(|task| s.wake(0.0, task));
        let mut now = 0.0;
        for _ in 0..4000 {
            while s.next(now).is_some() {}
            let running = s.running.clone();
            now += 0.1e-3;
            for task in running {
                had[task] += 0.1e-3;
                s.keeps(now, task);
            }
        }
        for time in had {
            assert!((time - 0.16).abs() < 0.005, "{had:?}");
        }
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
