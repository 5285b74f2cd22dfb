//! Simulated campaigns that end when every interval is narrow: how often the intervals then hold, and how often the campaigns end early.
//!
//! `NFSCOPE_SERIES` is the number of campaigns for each figure.

use crate::experiment::plan::{Fraction, Plan, factor};
use crate::experiment::result::Measured;
use crate::experiment::table::{table, widest};
use nfscope_stats::Looks;
use nfscope_stats::experiment::Run;
use nfscope_stats::mean_interval::Interval;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, StandardNormal, StudentT};

/// Wanted half width of each interval, as a part of its mean.
const WANTED: f64 = 0.05;
/// Most rounds.
const MOST: usize = 100;
/// Mean of every configuration.
const TRUTH: f64 = 100.0;
/// Deviation of a block, as a part of it.
const NOISE: f64 = 0.1;

/// Noise of 10 % in all.
#[derive(Debug, Clone, Copy)]
enum Noise {
    /// Blocks are independent.
    Blocks,
    /// Blocks of a round are alike.
    Rounds,
    /// Blocks are independent, with Student's t of three degrees of freedom.
    HeavyTails,
    /// All blocks follow a wave with this correlation from round to round.
    Wave(f64),
    /// Blocks of one configuration follow such a wave, and the others are independent.
    OneWave(f64),
}

const ALL: [Noise; 7] = [
    Noise::Blocks,
    Noise::Rounds,
    Noise::HeavyTails,
    Noise::Wave(0.3),
    Noise::Wave(0.6),
    Noise::OneWave(0.3),
    Noise::OneWave(0.6),
];

fn plan(rounds: usize) -> Plan {
    let of = |name: &str, levels: &[&str]| {
        factor(name, levels.iter().map(|l| (*l).to_owned()).collect()).unwrap()
    };
    Plan {
        name: "four".into(),
        factors: vec![
            of("version", &["4.0", "4.1"]),
            of("processes", &["10", "50"]),
        ],
        replicates: rounds,
        fraction: Fraction::Full,
        foldover: false,
        centre: 0,
        seed: 3,
        more: Vec::new(),
    }
}

/// A campaign in which no configuration differs from another.
fn campaign(plan: &Plan, noise: Noise, random: &mut SmallRng) -> Measured {
    let runs = plan.runs().unwrap();
    let normal = |random: &mut SmallRng| -> f64 { StandardNormal.sample(random) };
    let mut wave = normal(random);
    let mut round = usize::MAX;
    let heavy = StudentT::new(3.0).unwrap();
    let runs = runs.into_iter().map(|run| {
        if run.block != round {
            round = run.block;
            let r = match noise {
                Noise::Wave(r) | Noise::OneWave(r) => r,
                _ => 0.0,
            };
            wave = r * wave + (1.0 - r * r).sqrt() * normal(random);
        }
        let own = normal(random);
        let is_first = run.levels.at(0) == 0 && run.levels.at(1) == 0;
        let z = match noise {
            Noise::Rounds | Noise::Wave(_) => 0.9f64.sqrt() * wave + 0.1f64.sqrt() * own,
            Noise::OneWave(_) if is_first => wave,
            // The deviation of Student's t with three degrees of freedom is the square root of 3.
            Noise::HeavyTails => heavy.sample(random) / 3.0f64.sqrt(),
            _ => own,
        };
        TRUTH * (1.0 + NOISE * z)
    });
    Measured::of_loads(runs)
}

/// Rounds after which an interval is this narrow if the variation is known: 1.96 deviations of their mean.
fn needed(noise: Noise) -> usize {
    let of = |r: f64| (1.0 + r) / (1.0 - r);
    let inflation = match noise {
        Noise::Wave(r) => 0.1 + 0.9 * of(r),
        Noise::OneWave(r) => of(r),
        _ => 1.0,
    };
    (inflation * (1.96 * NOISE / WANTED).powi(2)).ceil() as usize
}

/// Rounds at the end, and true if the intervals got narrow.
fn ended(plan: &Plan, all: &Measured) -> (usize, bool) {
    let mut looks = Looks::at_runs();
    for rounds in 1..=MOST {
        if looks.is_due(rounds) {
            let (width, independent) =
                widest(plan, std::slice::from_ref(all), rounds).unwrap_or((f64::INFINITY, 0.0));
            if looks.enough(rounds, independent, width <= WANTED) {
                return (rounds, true);
            }
        }
    }
    (MOST, false)
}

/// Cells of the table at the end.
#[derive(Debug, Default)]
struct Cells {
    all: usize,
    /// Intervals that contain the true mean.
    hold: usize,
    /// Intervals of the first configuration alone that contain it.
    first_holds: usize,
    /// Intervals of the first configuration by Student's t, which assumes independent rounds.
    first_holds_by_t: usize,
}

impl Cells {
    fn add(&mut self, plans: &[Plan], all: &Measured, rounds: usize) {
        let plan = &plans[rounds];
        let runs = plan.runs().unwrap();
        let made = Measured {
            runs: all.runs[..runs.len()].to_vec(),
            ..all.clone()
        };
        let first = |run: &Run| run.levels.at(0) == 0 && run.levels.at(1) == 0;
        let of_first = runs.iter().zip(&made.runs).filter(|(run, _)| first(run));
        let values: Vec<f64> = of_first.map(|(_, data)| data.response).collect();
        let holds = |i: Interval| usize::from((i.mean - TRUTH).abs() <= i.half_width.unwrap());
        let t = table(plan, &[made], None).unwrap();
        let rows = t.responses[0].rows.iter();
        let each: Vec<usize> = rows.map(|r| holds(r.cells[0].unwrap().mean)).collect();
        self.all += each.len();
        self.hold += each.iter().sum::<usize>();
        self.first_holds += each[0];
        self.first_holds_by_t += holds(Interval::of(&values).unwrap());
    }
}

/// Campaigns that end and intervals that hold, in percent of 1,000 campaigns: those of docs/statistics.md.
fn documented(noise: Noise) -> (f64, f64) {
    match noise {
        Noise::Blocks => (99.7, 95.1),
        Noise::Rounds => (99.6, 94.3),
        Noise::HeavyTails => (91.0, 95.7),
        Noise::Wave(r) if r < 0.5 => (84.7, 86.1),
        Noise::Wave(_) => (29.8, 77.7),
        Noise::OneWave(r) if r < 0.5 => (92.0, 92.8),
        Noise::OneWave(_) => (36.5, 90.0),
    }
}

#[test]
fn intervals_hold_where_a_campaign_ends() {
    let series = std::env::var("NFSCOPE_SERIES").ok();
    let series: usize = series.and_then(|n| n.parse().ok()).unwrap_or(100);
    let plans: Vec<Plan> = (0..=MOST).map(plan).collect();
    let mut random = SmallRng::seed_from_u64(51);
    for noise in ALL {
        let (mut narrow, mut rounds, mut early) = (0, 0, 0);
        let mut cells = Cells::default();
        for _ in 0..series {
            let all = campaign(&plans[MOST], noise, &mut random);
            let (made, is_narrow) = ended(&plans[MOST], &all);
            if !is_narrow {
                continue;
            }
            narrow += 1;
            early += usize::from(made < needed(noise));
            rounds += made;
            cells.add(&plans, &all, made);
        }
        let misses = cells.all - cells.hold;
        let share = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        println!(
            "{noise:?}: {:.1} % of campaigns end, after {:.1} rounds, {:.1} % before the {} that a known variation takes; {:.1} % of {} \
             intervals hold; ended and missed in {:.1} % of all cells; those of the first cell hold in {:.1} %, by Student's t in {:.1} %",
            share(narrow, series),
            rounds as f64 / narrow.max(1) as f64,
            share(early, series),
            needed(noise),
            share(cells.hold, cells.all),
            cells.all,
            share(misses, series * 4),
            share(cells.first_holds, narrow),
            share(cells.first_holds_by_t, narrow),
        );
        // Three standard errors of a share of this number of campaigns. A wave that all configurations follow is in every interval. A wave
        // with a correlation of 0.6 shows late.
        let chance = |most: f64| 3.0 * (most * (100.0 - most) / series as f64).sqrt();
        let (missed, too_early) = match noise {
            Noise::Wave(r) if r < 0.5 => (10.0, 5.0),
            Noise::Wave(_) | Noise::OneWave(0.6) => (10.0, 20.0),
            _ => (5.0, 5.0),
        };
        assert!(
            share(misses, series * 4) <= missed + chance(missed),
            "{noise:?}"
        );
        assert!(
            share(early, series) <= too_early + chance(too_early),
            "{noise:?}"
        );
        // The documented shares come from campaigns, too. Intervals of cells of one campaign may hold together.
        let (end, hold) = documented(noise);
        let near = |share: f64, told: f64, of: usize| {
            let each = 1.0 / of.max(1) as f64 + 1.0 / 1000.0;
            (share - told).abs() <= 3.0 * (told * (100.0 - told) * each).sqrt() + 0.1
        };
        assert!(
            narrow > 0 && near(share(narrow, series), end, series),
            "{noise:?}"
        );
        assert!(
            near(share(cells.hold, cells.all), hold, narrow),
            "{noise:?}"
        );
        if matches!(noise, Noise::OneWave(r) if r > 0.5) {
            // Student's t is too narrow in at least one of ten campaigns.
            assert!(
                cells.first_holds >= cells.first_holds_by_t + narrow.div_ceil(10),
                "{noise:?}: {cells:?}"
            );
        }
    }
}
