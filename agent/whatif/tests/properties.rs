//! Properties that hold for every server.

#![allow(missing_docs)]

use nfscope_whatif::durations::Durations::{Constant, Even, Exponential};
use nfscope_whatif::server::{Class, Clients, Disk, Log, Pace, Pool, Server, Writer};
use nfscope_whatif::simulation::{Length, simulate};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

fn any(random: &mut SmallRng) -> Server {
    let time = |random: &mut SmallRng, most: f64| most * random.random::<f64>();
    let classes = (0..random.random_range(1..4)).map(|i| Class {
        name: i.to_string(),
        receive: Even(time(random, 1e-4)),
        cpu: Even(time(random, 1e-3)),
        disk_visits: time(random, 2.0),
        log_waits: time(random, 1.5),
        sleep: Even(time(random, 1e-4)),
        reply: Even(time(random, 1e-4)),
    });
    let classes: Vec<_> = classes.collect();
    let commit = Constant(time(random, 0.01));
    let pause = time(random, 0.02);
    Server {
        clients: vec![Clients {
            streams: random.random_range(1..40),
            pace: match random.random() {
                true => Pace::Think(pause),
                false => Pace::Period(pause),
            },
            mix: vec![1.0; classes.len()],
        }],
        classes,
        pools: (0..random.random_range(1..3))
            .map(|_| Pool {
                threads: random.random_range(1..32),
                share: 1.0,
            })
            .collect(),
        cpus: random.random_range(1..5),
        other_cpu: Even(time(random, 1e-4)),
        other_is_urgent: false,
        log: match random.random_range(0..3) {
            0 => Log::Delay(commit),
            1 => Log::Group {
                at_once: random.random_range(1..9),
                commit,
                cpu: 0.0,
                writer: Writer::Task,
                gather: 0.0,
            },
            _ => Log::Group {
                at_once: 2,
                commit,
                cpu: 0.0,
                writer: Writer::Task,
                gather: time(random, 1e-3),
            },
        },
        disk: Disk {
            at_once: random.random::<bool>().then(|| random.random_range(1..9)),
            service: Exponential(time(random, 0.01)),
        },
    }
}

#[test]
fn no_server_breaks_the_operational_laws() {
    let mut random = SmallRng::seed_from_u64(3);
    for _ in 0..200 {
        let s = any(&mut random);
        let o = simulate(
            &s,
            Length {
                requests: 4000,
                seed: 5,
            },
        );
        let streams = s.clients[0].streams as f64;
        let threads: usize = s.pools.iter().map(|p| p.threads).sum();
        assert!(o.rate > 0.0, "{s:?}");
        // Little's law, and the utilization law.
        assert!(o.rate * o.residence <= streams * 1.02, "{s:?}\n{o:?}");
        assert!(
            o.rate * (o.residence - o.queue) <= threads as f64 * 1.02,
            "{s:?}\n{o:?}"
        );
        let cpu: f64 = s.classes.iter().map(|c| c.cpu.mean()).sum::<f64>() / s.classes.len() as f64;
        assert!(o.rate * cpu <= s.cpus as f64 * 1.05, "{s:?}\n{o:?}");
        for part in [o.threads_used, o.cpu_used, o.log_used] {
            assert!((0.0..=1.0).contains(&part), "{o:?}");
        }
    }
}

#[test]
fn more_threads_never_serve_fewer_requests() {
    let mut random = SmallRng::seed_from_u64(4);
    for _ in 0..100 {
        let few = any(&mut random);
        let mut many = few.clone();
        for pool in &mut many.pools {
            pool.threads *= 4;
        }
        let [few, many] = [few, many].map(|s| {
            simulate(
                &s,
                Length {
                    requests: 6000,
                    seed: 5,
                },
            )
        });
        // The runs draw different random numbers, so the rate may differ by 7 %.
        assert!(many.rate > few.rate * 0.93, "{few:?}\n{many:?}");
    }
}
