//! CPU time of machines, from /proc: QEMU and the programs that start it are a process group below a [supervisor](crate::supervisor).

use std::fs;

use rustix::process::{Pid, getpid};

/// The unit of times in `/proc/<pid>/stat`: the same on every Linux.
const USER_HZ: f64 = 100.0;

/// A process, as `/proc/<pid>/stat` describes it (proc(5)).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
    /// CPU time of the process, and of children that it has waited for.
    ticks: u64,
}

/// Seconds that the processes of a group have used.
pub(crate) fn of_group(group: Pid) -> f64 {
    sum(&processes(), &[group.as_raw_nonzero().get()])
}

/// CPU seconds of the running machines of this process.
pub(crate) fn of_machines() -> f64 {
    let all = processes();
    let groups = groups_of_machines(&all, getpid().as_raw_nonzero().get());
    sum(&all, &groups)
}

/// A supervisor is a child of the owner, and the leader of the machine's group is a child of the supervisor.
fn groups_of_machines(all: &[Process], owner: i32) -> Vec<i32> {
    let children = |of: i32| all.iter().filter(move |p| p.parent == of);
    let leaders = children(owner).flat_map(|supervisor| children(supervisor.id));
    leaders.filter(|p| p.id == p.group).map(|p| p.id).collect()
}

fn sum(all: &[Process], groups: &[i32]) -> f64 {
    let theirs = all.iter().filter(|p| groups.contains(&p.group));
    theirs.map(|p| p.ticks).sum::<u64>() as f64 / USER_HZ
}

fn processes() -> Vec<Process> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| fs::read(entry.ok()?.path().join("stat")).ok())
        .filter_map(|stat| parse(&String::from_utf8_lossy(&stat)))
        .collect()
}

fn parse(stat: &str) -> Option<Process> {
    let id = stat.split(' ').next()?.parse().ok()?;
    // The name may have spaces and parentheses; the fields after the last one have neither.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |n: usize| fields.get(n)?.parse().ok();
    Some(Process {
        id,
        parent: number(1)?,
        group: number(2)?,
        ticks: fields
            .get(11..15)?
            .iter()
            .flat_map(|t| t.parse::<u64>())
            .sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_read_whatever_their_names() {
        let stat = "7 (a) S b) R 1 42 42 0 -1 4 10 20 0 0 100 20 3 4 20 0 5 0 99";
        let expected = Process {
            id: 7,
            parent: 1,
            group: 42,
            ticks: 127,
        };
        assert_eq!(parse(stat), Some(expected));
        assert_eq!(parse("7 (cut) S 1"), None);
    }

    #[test]
    fn cpu_time_is_that_of_the_groups_below_supervisors() {
        let process = |id, parent, group, ticks| Process {
            id,
            parent,
            group,
            ticks,
        };
        let all = [
            process(10, 1, 10, 1),
            // A supervisor, its machine, and what the machine's leader started.
            process(20, 10, 10, 2),
            process(30, 20, 30, 400),
            process(31, 30, 30, 50),
            // Another program of this process, and a machine of another process.
            process(40, 10, 10, 1000),
            process(50, 1, 50, 3000),
        ];
        let groups = groups_of_machines(&all, 10);
        assert_eq!((groups.as_slice(), sum(&all, &groups)), (&[30][..], 4.5));
    }
}
