//! The plan of an experiment: its factors, its design and the order of its runs.

use nfscope_stats::experiment::{Design, DesignError, MAX_FACTORS, Run, Word, blocks_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A factor with its two levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name: `log`.
    pub name: String,
    /// The low level, then the high one: `disk`, `slog`.
    pub levels: [String; 2],
}

/// Which runs of all there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fraction {
    /// All combinations.
    Full,
    /// The standard fraction: one in so many.
    One(usize),
    /// By generators: the number of a factor, and the product of factors that it equals.
    Generators(Vec<(usize, u8)>),
}

/// The plan of an experiment. It is a file format: fields must stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Its name, which its baselines have as a label.
    pub name: String,
    /// Factors, the first is A.
    pub factors: Vec<Factor>,
    /// How often each combination is run.
    pub replicates: usize,
    /// Which combinations.
    pub fraction: Fraction,
    /// With the opposite of each combination.
    pub foldover: bool,
    /// Seed of the order.
    pub seed: u64,
    /// Runs that were added later, in the order in which they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<More>,
}

/// Runs that are added to a plan. They are blocks of their own: what differs between then and now is no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum More {
    /// Every combination so far, so many times.
    Replicates(usize),
    /// Every combination once more, in which these factors have their other level (bit i: factor i).
    Foldover(u8),
}

/// Parses `log=disk,slog`.
///
/// # Errors
/// Shows the grammar.
pub fn parse_factor(text: &str) -> Result<Factor, String> {
    let wrong = || "give NAME=LOW,HIGH, as in log=disk,slog".to_owned();
    let (name, levels) = text.split_once('=').ok_or_else(wrong)?;
    match levels.split(',').collect::<Vec<_>>()[..] {
        [low, high] if !name.is_empty() && !low.is_empty() && !high.is_empty() && low != high => {
            Ok(Factor {
                name: name.to_owned(),
                levels: [low.to_owned(), high.to_owned()],
            })
        }
        _ => Err(wrong()),
    }
}

/// Parses `C=AB`.
///
/// # Errors
/// Shows the grammar.
pub fn parse_generator(text: &str) -> Result<(usize, u8), String> {
    let parsed = text.split_once('=').and_then(|(factor, word)| {
        let factor = Word::parse(factor).filter(|w| w.order() == 1)?;
        Some((factor.0.trailing_zeros() as usize, Word::parse(word)?.0))
    });
    parsed.ok_or_else(|| "give a generator such as C=AB; the first factor is A".to_owned())
}

/// The labels of the baseline of a run: with its levels, so that no other plan of this name takes it for a run of its own.
pub fn label_of(plan: &Plan, run: usize) -> BTreeMap<String, String> {
    let runs = plan.runs().unwrap_or_default();
    let levels = runs
        .get(run.wrapping_sub(1))
        .map(|r| plan.levels(*r).replace(' ', ","));
    [
        ("experiment".to_owned(), plan.name.clone()),
        ("run".to_owned(), run.to_string()),
        ("levels".to_owned(), levels.unwrap_or_default()),
    ]
    .into()
}

impl Plan {
    /// The name of the baseline of a run, the first of which is 1.
    pub fn run_name(&self, run: usize) -> String {
        format!("{}-{run}", self.name)
    }

    /// The design of the plan.
    ///
    /// # Errors
    /// When there is none such.
    pub fn design(&self) -> Result<Design, DesignError> {
        let k = self.factors.len();
        if !(1..=MAX_FACTORS).contains(&k) {
            return Err(DesignError::Factors(k));
        }
        let design = match &self.fraction {
            Fraction::Full => Design::full(k),
            Fraction::One(of) => Design::fraction(k, (1 << k) / (*of).max(1)),
            Fraction::Generators(words) => {
                let words: Vec<_> = words.iter().map(|(f, w)| (*f, Word(*w))).collect();
                Design::generated(k, &words)
            }
        }?;
        let design = if self.foldover {
            design.folded()
        } else {
            design
        };
        Ok(self.more.iter().fold(design, |design, more| match more {
            More::Replicates(_) => design,
            More::Foldover(turned) => design.folded_on(Word(*turned)),
        }))
    }

    /// The plan as it was before anything was added.
    pub fn first(&self) -> Plan {
        Plan {
            more: Vec::new(),
            ..self.clone()
        }
    }

    /// The same plan with more runs behind the others, which keep their numbers.
    ///
    /// # Errors
    /// When a fold-over has no combination that the plan has not.
    pub fn with(&self, more: More) -> Result<Plan, String> {
        if let More::Foldover(turned) = more {
            let design = self.design().map_err(|e| e.to_string())?;
            if design.turned(Word(turned)).is_empty() {
                return Err(format!(
                    "a fold-over on {} has no combination that `{}` has not; fix: fold it over on a single factor, or add replicates",
                    self.named(Word(turned)),
                    self.name
                ));
            }
        }
        let mut plan = self.clone();
        plan.more.push(more);
        Ok(plan)
    }

    /// The factor of this name, or all of them for `all`, as a product.
    ///
    /// # Errors
    /// When there is none; the names of all.
    pub fn factors_named(&self, name: &str) -> Result<Word, String> {
        if name == "all" {
            return Ok(Word(((1u16 << self.factors.len()) - 1) as u8));
        }
        let place = self.factors.iter().position(|f| f.name == name);
        place.map(|i| Word(1 << i)).ok_or_else(|| {
            let names: Vec<_> = self.factors.iter().map(|f| f.name.as_str()).collect();
            format!(
                "`{}` has no factor {name}; fix: name {}, or all",
                self.name,
                names.join(", ")
            )
        })
    }

    /// All runs in the order in which to make them; the first is run 1.
    ///
    /// # Errors
    /// When there is no such design.
    pub fn runs(&self) -> Result<Vec<Run>, DesignError> {
        let mut design = self.first().design()?;
        let mut runs = design.runs(self.replicates, self.seed);
        for (more, seed) in self.more.iter().zip(self.seed.wrapping_add(1)..) {
            let first = runs.iter().map(|r| r.block + 1).max().unwrap_or(0);
            let added = match more {
                More::Replicates(n) => blocks_of(&design.combinations, *n, seed, first),
                More::Foldover(turned) => {
                    let folded = design.folded_on(Word(*turned));
                    let new = design.turned(Word(*turned));
                    design = folded;
                    blocks_of(&new, self.replicates, seed, first)
                }
            };
            runs.extend(added);
        }
        Ok(runs)
    }

    /// The levels of a run: `log=slog threads=8`.
    pub fn levels(&self, run: Run) -> String {
        let each = self.factors.iter().enumerate().map(|(i, f)| {
            let high = usize::from(run.levels >> i & 1);
            format!("{}={}", f.name, f.levels[high])
        });
        each.collect::<Vec<_>>().join(" ")
    }

    /// The factors of a word by name: `log x threads`.
    pub fn named(&self, word: Word) -> String {
        let names = self.factors.iter().enumerate();
        let names = names.filter(|(i, _)| word.0 >> i & 1 == 1);
        let names: Vec<_> = names.map(|(_, f)| f.name.as_str()).collect();
        names.join(" x ")
    }
}
