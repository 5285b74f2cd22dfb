//! Compares the simulation with queues whose results are known exactly.

#![allow(missing_docs)]

use nfscope_whatif::durations::Durations::{self, Constant, Exponential};
use nfscope_whatif::outcome::Outcome;
use nfscope_whatif::server::{Class, Clients, Disk, Log, Pace, Pool, Server, Writer};
use nfscope_whatif::simulation::{Length, simulate};

const NONE: Durations = Constant(0.0);

/// A server whose requests need nothing but what a test adds.
fn server(streams: usize, think: f64, threads: usize) -> Server {
    Server {
        classes: vec![Class {
            name: "write".into(),
            receive: NONE,
            cpu: NONE,
            disk_visits: 0.0,
            log_waits: 0.0,
            sleep: NONE,
            reply: NONE,
        }],
        pools: vec![Pool {
            threads,
            share: 1.0,
        }],
        cpus: 1,
        other_cpu: NONE,
        other_is_urgent: false,
        log: Log::Delay(NONE),
        disk: Disk {
            at_once: None,
            service: NONE,
        },
        clients: vec![Clients {
            streams,
            pace: Pace::Think(think),
            mix: vec![1.0],
        }],
    }
}

fn run(server: &Server, requests: usize) -> Outcome {
    simulate(server, Length { requests, seed: 7 })
}

#[track_caller]
fn near(value: f64, truth: f64, part: f64) {
    assert!((value / truth - 1.0).abs() < part, "{value}, not {truth}");
}

/// A server with clients enough to make arrivals Poisson.
fn open(rate: f64, threads: usize) -> Server {
    server(4000, 4000.0 / rate, threads)
}

#[test]
fn one_thread_is_an_m_m_1_queue() {
    for load in [0.3, 0.7] {
        let mut s = open(load / 0.01, 1);
        s.classes[0].disk_visits = 1.0;
        s.disk.service = Exponential(0.01);
        let o = run(&s, 200_000);
        near(o.residence, 0.01 / (1.0 - load), 0.05);
        near(o.threads_used, load, 0.03);
    }
}

/// The probability to wait in M/M/c (Erlang C).
fn erlang_c(c: usize, offered: f64) -> f64 {
    let mut blocked = 1.0;
    for k in 1..=c {
        blocked = offered * blocked / (k as f64 + offered * blocked);
    }
    let used = offered / c as f64;
    blocked / (1.0 - used * (1.0 - blocked))
}

#[test]
fn threads_are_an_m_m_c_queue() {
    for (threads, used) in [(4, 0.8), (16, 0.8)] {
        let offered = threads as f64 * used;
        let mut s = open(offered / 0.01, threads);
        s.classes[0].log_waits = 1.0;
        s.log = Log::Delay(Exponential(0.01));
        let o = run(&s, 300_000);
        // A finite number of clients offers a little less load.
        let offered = o.rate * 0.01;
        let wait = erlang_c(threads, offered) * 0.01 / (threads as f64 - offered);
        near(o.queue, wait, 0.1);
    }
}

/// Mean value analysis of single servers and a delay (M. Reiser and S. S. Lavenberg, Journal of the ACM 27, 1980).
fn mva(demands: &[f64], delay: f64, clients: usize) -> f64 {
    let mut queues = vec![0.0; demands.len()];
    let mut rate = 0.0;
    for n in 1..=clients {
        let stays: Vec<f64> = demands
            .iter()
            .zip(&queues)
            .map(|(d, q)| d * (1.0 + q))
            .collect();
        rate = n as f64 / (delay + stays.iter().sum::<f64>());
        queues = stays.iter().map(|s| s * rate).collect();
    }
    rate
}

#[test]
fn a_closed_network_agrees_with_mean_value_analysis() {
    for clients in [1, 4, 12] {
        let mut s = server(clients, 0.02, 64);
        s.classes[0].receive = Exponential(0.004);
        s.classes[0].disk_visits = 1.0;
        s.disk = Disk {
            at_once: Some(1),
            service: Exponential(0.01),
        };
        near(
            run(&s, 60_000).rate,
            mva(&[0.004, 0.01], 0.02, clients),
            0.03,
        );
    }
}

#[test]
fn a_log_commits_all_that_wait_at_its_start() {
    // A commit serves the requests that came during the last one: a request waits for one commit and then for its own.
    for (threads, rate) in [
        (1, 125.0),
        (2, 125.0),
        (8, 500.0),
        (28, 1750.0),
        (64, 1750.0),
    ] {
        let mut s = server(28, 0.0, threads);
        s.classes[0].log_waits = 1.0;
        s.log = Log::Group {
            at_once: 1,
            commit: Constant(0.008),
            cpu: 0.0,
            writer: Writer::Task,
            gather: 0.0,
        };
        let o = run(&s, 20_000);
        near(o.rate, rate, 0.02);
        // Little's law.
        near(o.rate * o.residence, 28.0, 0.02);
    }
}

#[test]
fn a_log_whose_writer_needs_cpu_time_commits_all_the_same() {
    // On a CPU that no other task needs, the CPU time of the writer is a part of the commit's.
    for threads in [1, 8, 28] {
        let mut s = server(28, 0.0, threads);
        s.classes[0].log_waits = 1.0;
        s.log = Log::Group {
            at_once: 1,
            commit: Constant(0.006),
            cpu: 0.002,
            writer: Writer::Task,
            gather: 0.0,
        };
        let o = run(&s, 20_000);
        let rate = if threads == 1 {
            125.0
        } else {
            threads as f64 / 0.016
        };
        near(o.rate, rate, 0.02);
        near(o.commit, 0.008, 0.01);
        near(o.cpu_used, 0.25, 0.02);
    }
}

#[test]
fn commits_side_by_side_wait_for_nobody() {
    let mut s = server(16, 0.0, 16);
    s.classes[0].log_waits = 1.0;
    s.log = Log::Group {
        at_once: 64,
        commit: Constant(0.008),
        cpu: 0.0,
        writer: Writer::Task,
        gather: 0.0,
    };
    near(run(&s, 20_000).rate, 2000.0, 0.01);
}

#[test]
fn clients_that_ask_by_the_clock_do_not_ask_more_of_a_faster_server() {
    for service in [0.001, 0.01] {
        let mut s = server(10, 0.0, 64);
        s.clients[0].pace = Pace::Period(0.1);
        s.classes[0].disk_visits = 1.0;
        s.disk.service = Constant(service);
        near(run(&s, 5000).rate, 100.0, 0.02);
    }
}

#[test]
fn a_seed_decides_a_run() {
    let mut s = server(12, 0.01, 4);
    s.classes[0].disk_visits = 1.5;
    s.disk.service = Exponential(0.01);
    let with = |seed| {
        let o = simulate(
            &s,
            Length {
                requests: 3000,
                seed,
            },
        );
        (o.rate, o.residence, o.queue_p99)
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_simulation_that_rests_sleeps_often_and_says_the_same() {
    fn number(text: &str) -> u64 {
        text.trim().parse().unwrap()
    }
    /// Nanoseconds on a CPU so far, and voluntary context switches of this thread (proc_pid_status(5)).
    fn this_thread() -> [u64; 2] {
        let read =
            |name: &str| std::fs::read_to_string(format!("/proc/thread-self/{name}")).unwrap();
        let (schedstat, status) = (read("schedstat"), read("status"));
        let (_, sleeps) = status.split_once("\nvoluntary_ctxt_switches:").unwrap();
        [
            number(schedstat.split(' ').next().unwrap()),
            number(sleeps.lines().next().unwrap()),
        ]
    }
    let server = open(0.7, 3);
    let told = |o: Outcome| (o.rate, o.residence, o.queue_p99);
    let quick = told(run(&server, 20_000));
    let gentle = std::thread::spawn(move || {
        nfscope_whatif::simulation::rest();
        let (before, began) = (this_thread(), std::time::Instant::now());
        let outcome = run(&server, 20_000);
        let (after, took) = (this_thread(), began.elapsed().as_nanos());
        let (cpu, sleeps) = (after[0] - before[0], after[1] - before[1]);
        // A rest comes after 0.2 ms and takes nine times as long. Where the host takes its CPU away, both are less.
        assert!(
            cpu > 0 && sleeps >= cpu / 1_000_000,
            "{sleeps} sleeps in {cpu} ns"
        );
        assert!(
            took > 3 * u128::from(cpu),
            "{took} ns, of which {cpu} on a CPU"
        );
        outcome
    });
    assert_eq!(told(gentle.join().unwrap()), quick);
}
