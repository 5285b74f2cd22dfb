//! Causes of an effect that a fraction cannot separate, and the fewest runs that separate them.
//!
//! An effect of a fraction is the sum of its aliases. An interaction is plausible if its factors matter (effect heredity: M. Hamada and C.
//! F. J. Wu, Analysis of designed experiments with complex aliasing, J. of Quality Technology 24, 1992).

use crate::experiment::plan::Plan;
use crate::html::quoted;
use nfscope_stats::experiment::{Analysis, Design, Effect, Word};

/// Largest p value, without a correction, of an effect that may be large. A weaker criterion would not rule out an alias.
const LARGE: f64 = 0.05;

/// Returns true if an effect may be large.
pub(super) fn is_large(a: &Analysis, e: &Effect) -> bool {
    let beyond = |l: nfscope_stats::experiment::Lenth| e.effect.value.abs() > l.margin;
    e.stands_out || e.p_alone.is_some_and(|p| p <= LARGE) || a.lenth.is_some_and(beyond)
}

/// Plausible causes of an effect, the shortest words first; a single one if the design separates it from all others.
pub(super) fn causes(design: &Design, of: Word, is_large: impl Fn(Word) -> bool) -> Vec<Word> {
    let chain: Vec<Word> = [of]
        .into_iter()
        .chain(design.aliases(of, u16::BITS))
        .collect();
    let parents = |w: Word| w.factors().map(|i| Word(1 << i));
    let large = |w: Word| parents(w).filter(|p| is_large(*p)).count() as u32;
    let main = of.order() == 1;
    let plausible = |w: &Word| match w.order() {
        1 => true,
        // An interaction is a plausible alias of a main effect only if all of its factors are large. As an alias of another interaction, a
        // product of two factors is plausible if either factor is large.
        2 if !main => large(*w) > 0,
        order => large(*w) == order,
    };
    let mut some: Vec<Word> = chain.iter().copied().filter(plausible).collect();
    if some.is_empty() {
        let least = chain.iter().map(|w| w.order()).min();
        some = chain
            .iter()
            .copied()
            .filter(|w| Some(w.order()) == least)
            .collect();
    }
    some.sort_by_key(|w| (w.order(), w.0));
    some
}

/// `C or B x F`
pub(super) fn named(plan: &Plan, causes: &[Word]) -> String {
    let each: Vec<_> = causes.iter().map(|w| plan.named(*w)).collect();
    each.join(" or ")
}

/// The fewest further combinations that separate causes; each list has those of one effect. `None` if all are known.
/// Either the factors of the first cause of each effect change alone, or the whole design is folded over.
pub(super) fn to_tell(plan: &Plan, design: &Design, effects: &[Vec<Word>]) -> Option<String> {
    let open: Vec<&Vec<Word>> = effects.iter().filter(|causes| causes.len() > 1).collect();
    let alone = |causes: &&Vec<Word>| 1usize << causes[0].order();
    let one_by_one: usize = open.iter().map(alone).sum();
    let separates = |folded: &Design| {
        let aliases = |causes: &Vec<Word>| folded.aliases(causes[0], u16::BITS);
        let is_clear = |causes: &&Vec<Word>| {
            let aliases = aliases(causes);
            !causes[1..].iter().any(|w| aliases.contains(w))
        };
        open.iter().all(is_clear)
    };
    let all = Word::all(design.factors);
    let each = (0..design.factors).map(|i| Word(1 << i));
    let folds = [all].into_iter().chain(each).filter_map(|turned| {
        let more = design.turned(turned).len();
        (more > 0 && more < one_by_one && separates(&design.folded_on(turned)))
            .then_some((turned, more))
    });
    // The fold on all factors is the most useful one among those with as many runs: it frees main effects of interactions of two.
    if let Some((turned, more)) = folds.min_by_key(|(_, more)| *more) {
        let on = match turned == all {
            true => String::new(),
            false => format!("={}", quoted(&plan.named(turned))),
        };
        return Some(format!(
            "to tell them apart: nfscope experiment plan {} --add-foldover{on} adds {more} combinations with {} the other way round",
            quoted(&plan.name),
            match turned == all {
                true => "all levels".to_owned(),
                false => plan.named(turned),
            }
        ));
    }
    let causes = open.first()?;
    let factors = plan.factors.iter().enumerate();
    let own: Vec<String> = (factors.filter(|(i, _)| causes[0].0 >> i & 1 == 1))
        .map(|(_, f)| quoted(&format!("{}={},{}", f.name, f.levels[0], f.levels[1])))
        .map(|factor| format!("--factor {factor}"))
        .collect();
    Some(format!(
        "to tell {}: nfscope experiment plan {} {} --replicates {} ({} combinations), with every other factor left at one level. \
         An effect of this size there is {}; none is {}",
        named(plan, causes),
        quoted(&format!("{}-more", plan.name)),
        own.join(" "),
        plan.replicates.max(2),
        alone(causes),
        plan.named(causes[0]),
        named(plan, &causes[1..])
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durability::Durability;
    use crate::experiment::durability::differs;
    use crate::experiment::plan::{Factor, Fraction, More, parse_generator};
    use crate::experiment::result::{Analysed, Measured, RunData, Unit};
    use crate::experiment::{analyse, html};
    use nfscope_stats::experiment::Scale;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use rand_distr::{Distribution, StandardNormal};

    fn plan(factors: usize, fraction: Fraction, replicates: usize) -> Plan {
        let factor = |i: usize| Factor {
            name: Word(1 << i).to_string(),
            levels: vec!["low".into(), "high".into()],
        };
        Plan {
            name: "x".into(),
            factors: (0..factors).map(factor).collect(),
            replicates,
            fraction,
            foldover: false,
            centre: 0,
            seed: 1,
            more: Vec::new(),
        }
    }

    /// Runs of a server with these effects, each the factor between the levels of a word, and noise of 5 % between runs.
    fn simulated(plan: &Plan, truth: &[(&str, f64)], seed: u64) -> Analysed {
        let mut random = SmallRng::seed_from_u64(seed);
        let runs = plan.runs().unwrap().into_iter().map(|run| {
            let each = truth.iter();
            let sum: f64 = each
                .map(|(w, by)| by.ln() / 2.0 * run.levels.sign(Word::parse(w).unwrap()))
                .sum();
            let noise: f64 = StandardNormal.sample(&mut random);
            RunData {
                response: 1e-3 * (sum + 0.05 * noise).exp(),
                hidden: 0.0,
                rate: 100.0,
                failed: 0.0,
                durability: Durability::default(),
            }
        });
        let measured = Measured {
            name: "write mean".into(),
            unit: Unit::Seconds,
            runs: runs.collect(),
            missing: Vec::new(),
        };
        analyse(plan, &[measured], Scale::Logarithm)
            .unwrap()
            .remove(0)
    }

    fn found(a: &Analysed) -> Vec<String> {
        let mut all: Vec<String> = a
            .effects
            .iter()
            .filter(|e| e.found)
            .map(|e| e.name())
            .collect();
        all.sort();
        all
    }

    fn generators(all: &[&str]) -> Fraction {
        Fraction::Generators(all.iter().map(|g| parse_generator(g).unwrap()).collect())
    }

    /// An effect whose alias is an interaction of two large effects is never named as the only cause, whichever of both is real.
    #[test]
    fn an_alias_of_large_effects_is_not_named_alone() {
        // C = BF among six factors in eight runs.
        let six = || generators(&["D=AB", "E=AC", "F=BC"]);
        for (replicates, sure) in [(3, 50), (1, 0)] {
            let plan = plan(6, six(), replicates);
            let (mut alone, mut both) = (0, 0);
            for seed in 0..50 {
                for real in ["BF", "C"] {
                    let a = simulated(&plan, &[("F", 4.0), ("B", 3.0), (real, 1.6)], seed);
                    let names = found(&a);
                    alone += u32::from(names.contains(&"C".to_owned()));
                    // By chance another factor may look large, too.
                    let named = |n: &String| n.starts_with("C or ") && n.contains("B x F");
                    both += u32::from(names.iter().any(named));
                }
            }
            println!("{replicates} of each: C alone in {alone} of 100, with its alias in {both}");
            assert_eq!(alone, 0, "{replicates}");
            assert!(both >= 2 * sure, "{replicates}: {both}");
        }
        let plan = plan(6, six(), 3);
        let a = simulated(&plan, &[("F", 4.0), ("B", 3.0), ("BF", 1.6)], 7);
        let text = crate::experiment::analysis(&a);
        assert!(text.contains("C or B x F *"), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("C or B x F: this design cannot tell them apart"),
            "{text}"
        );
        assert!(text.contains("to tell"), "{text}");
        let page = html::page(std::slice::from_ref(&a));
        assert!(
            page.contains("C or B x F (1.") && !page.contains(", C ("),
            "{:?}",
            found(&a)
        );
        // Without large parents an interaction is no plausible cause, and an effect has its own name.
        let a = simulated(&plan, &[("C", 1.6)], 7);
        assert_eq!((found(&a), a.ambiguous.len()), (vec!["C".to_owned()], 0));
    }

    /// Aliases in chains of other lengths: D = ABC, interactions among themselves, and three effects of which any two explain the third.
    #[test]
    fn aliases_of_every_order_are_named() {
        let half = plan(4, Fraction::One(2), 3);
        let mains = [("A", 3.0), ("B", 3.0), ("C", 3.0)];
        let of = |plan: &Plan, truth: &[(&str, f64)]| found(&simulated(plan, truth, 3));
        let names = of(&half, &[&mains[..], &[("ABC", 2.0)]].concat());
        assert!(names.contains(&"D or A x B x C".to_owned()), "{names:?}");
        // The shortest word of the chain of C x D is A x B, and neither A nor B matters.
        let names = of(&half, &[("C", 3.0), ("D", 3.0), ("CD", 2.0)]);
        assert!(
            names.contains(&"C x D".to_owned()) && !names.join(" ").contains("A x B"),
            "{names:?}"
        );
        let names = of(&half, &[("A", 3.0), ("C", 3.0), ("AB", 2.0)]);
        assert!(names.contains(&"A x B or C x D".to_owned()), "{names:?}");
        let third = plan(3, Fraction::One(2), 3);
        let names = of(&third, &[("A", 3.0), ("B", 3.0), ("AB", 2.0)]);
        assert_eq!(names, ["A or B x C", "B or A x C", "C or A x B"]);
        // A full design has no aliases.
        let full = plan(3, Fraction::Full, 3);
        let names = of(&full, &[("A", 3.0), ("B", 3.0), ("AB", 2.0)]);
        assert_eq!(names, ["A", "A x B", "B"]);
    }

    /// The recommended runs separate the causes.
    #[test]
    fn recommended_runs_separate_aliases() {
        let last =
            |plan: &Plan, truth: &[(&str, f64)]| simulated(plan, truth, 3).ambiguous.pop().unwrap();
        let half = plan(4, Fraction::One(2), 3);
        let mains = [("A", 3.0), ("B", 3.0), ("C", 3.0), ("ABC", 2.0)];
        let text = last(&half, &mains);
        assert!(
            text.contains(
                "experiment plan x-more --factor D=low,high --replicates 3 (2 combinations)"
            ),
            "{text}"
        );
        // The other half of the design separates three effects at once, and a fold-over leaves nothing open.
        let third = plan(3, Fraction::One(2), 3);
        let truth = [("A", 3.0), ("B", 3.0), ("AB", 2.0)];
        let text = last(&third, &truth);
        assert!(
            text.contains("nfscope experiment plan x --add-foldover adds 4 combinations"),
            "{text}"
        );
        let together = Plan {
            foldover: true,
            ..third.clone()
        };
        let later = third.with(More::Foldover(7)).unwrap();
        for folded in [together, later] {
            let a = simulated(&folded, &truth, 3);
            assert_eq!(
                (found(&a).join(" "), a.ambiguous.len()),
                ("A A x B B".to_owned(), 0)
            );
        }
    }

    /// A fold-over on all factors adds nothing if all words of the defining relation are even, but one on a single factor does.
    #[test]
    fn a_fold_over_on_one_factor_separates_interactions() {
        let plan = plan(6, Fraction::One(4), 2);
        let truth = [("A", 3.0), ("B", 3.0), ("C", 3.0), ("AB", 2.0), ("BC", 2.0)];
        let text = simulated(&plan, &truth, 3).ambiguous.pop().unwrap();
        assert!(
            text.contains("experiment plan x --add-foldover=") || text.contains("x-more --factor"),
            "{text}"
        );
        assert!(plan.with(More::Foldover(63)).is_err());
        let on = plan.factors_named("B").unwrap();
        let more = plan.with(More::Foldover(on.0)).unwrap();
        let (before, after) = (plan.runs().unwrap(), more.runs().unwrap());
        assert_eq!((before.len(), after.len()), (32, 64));
        assert_eq!(before, after[..32]);
        let a = simulated(&more, &truth, 3);
        let names = found(&a);
        for name in ["A x B", "B x C"] {
            assert!(names.contains(&name.to_owned()), "{names:?}");
        }
        // Plan files from before runs could be added have this form.
        let old = serde_json::to_string(&plan).unwrap();
        assert!(!old.contains("more"), "{old}");
        assert_eq!(serde_json::from_str::<Plan>(&old).unwrap(), plan);
    }

    /// Replicates that are added later are blocks, so a server that became slower meanwhile has no other effects.
    #[test]
    fn replicates_that_are_added_are_blocks() {
        let once = plan(3, Fraction::Full, 1);
        let more = once.with(More::Replicates(2)).unwrap();
        let runs = more.runs().unwrap();
        assert_eq!((runs.len(), &runs[..8]), (24, &once.runs().unwrap()[..]));
        // Only A is real: other effects are found in 5 % of experiments.
        let (mut with_a, mut more_than_a) = (0, 0);
        for seed in 0..40 {
            let names = found(&simulated(&more, &[("A", 1.3)], seed));
            with_a += u32::from(names.contains(&"A".to_owned()));
            more_than_a += u32::from(names.iter().any(|n| n != "A"));
        }
        assert!(with_a == 40 && more_than_a <= 6, "{with_a} {more_than_a}");
        let a = simulated(&more, &[("A", 1.3)], 5);
        assert!(a.block_part.is_some_and(|p| p < 0.2), "{a:?}");
        let text = crate::experiment::analysis(&a);
        assert!(text.contains("between blocks of runs: "), "{text}");
        let planned = crate::experiment::plan(&more, std::time::Duration::from_secs(60)).unwrap();
        assert!(
            planned.contains("24 runs: 8 combinations, 3 of each"),
            "{planned}"
        );
    }

    /// Levels are free text, and a shell would run commands in it, so they are quoted.
    #[test]
    fn printed_commands_are_quoted() {
        let mut half = plan(4, Fraction::One(2), 3);
        half.factors[3].levels = vec!["low disk".into(), "$(x)'".into()];
        let mains = [("A", 3.0), ("B", 3.0), ("C", 3.0), ("ABC", 2.0)];
        let text = simulated(&half, &mains, 3).ambiguous.pop().unwrap();
        let quoted = r"plan x-more --factor 'D=low disk,$(x)'\''' --replicates";
        assert!(text.contains(quoted), "{text}");
        half.name = "x y".into();
        let run = half.runs().unwrap()[0];
        let text = crate::experiment::next(&half, 1, 8, run);
        for word in ["record 'x y-1' ", "'experiment=x y'", "--label run=1"] {
            assert!(text.contains(word), "{text}");
        }
        let (_, levels) = text.split_once("--label 'levels=A=").unwrap();
        assert!(
            levels.contains("D=low,disk'") || levels.contains(r"D=$(x)'\'''"),
            "{text}"
        );
    }

    /// The writes in a device's cache are not counted, so a level that never flushes the cache has no share of writes at risk.
    #[test]
    fn a_level_without_flushes_has_no_share() {
        for lossy in [0, 1] {
            let plan = plan(2, Fraction::Full, 2);
            let runs = (plan.runs().unwrap().into_iter()).map(|run| RunData {
                response: 1e-3,
                hidden: 0.0,
                rate: 100.0,
                failed: 0.0,
                durability: Durability::flushing("sda", run.levels.at(0) != lossy),
            });
            let text = differs(&plan, &plan.runs().unwrap(), &runs.collect::<Vec<_>>());
            let level = ["low", "high"][lossy];
            let other = ["high", "low"][lossy];
            assert_eq!(
                text,
                [format!(
                    "Durability may differ between the levels of A: with A={level}, sda is never asked to flush its write cache, as it is \
                     with A={other}: a cache without a battery loses writes. What is shorter there may be shorter because of that."
                )]
            );
        }
    }

    /// The warning about a factor that makes writes unsafe comes before its gain.
    #[test]
    fn a_level_that_loses_writes_comes_first() {
        let plan = plan(2, Fraction::Full, 2);
        let lossy = |high: bool| {
            let share = if high { 1.0 } else { 0.0 };
            Durability::counted(1000.0, 1000.0 * share)
        };
        let runs: Vec<RunData> = (plan.runs().unwrap().iter())
            .map(|run| RunData {
                response: if run.levels.at(0) == 1 { 1e-4 } else { 1e-2 },
                hidden: 0.0,
                rate: 100.0,
                failed: 0.0,
                durability: lossy(run.levels.at(0) == 1),
            })
            .collect();
        let measured = Measured {
            name: "write mean".into(),
            unit: Unit::Seconds,
            runs,
            missing: Vec::new(),
        };
        let a = analyse(&plan, &[measured], Scale::Logarithm)
            .unwrap()
            .remove(0);
        assert_eq!(a.durability.len(), 1, "{:?}", a.durability);
        let text = crate::experiment::analysis(&a);
        assert!(
            text.starts_with("Durability differs between the levels of A."),
            "{text}"
        );
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("loses 0.0 % with A=low, 100.0 % with A=high."),
            "{text}"
        );
        assert!(html::page(&[a]).contains("<strong>Durability differs"));
    }
}
