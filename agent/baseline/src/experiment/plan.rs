//! The plan of an experiment: its factors, its design and the order of its runs.

use nfscope_stats::experiment::{
    Design, DesignError, Levels, MAX_FACTORS, Run, Word, blocks_of, factorial,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most levels of a factor.
const MOST_LEVELS: usize = 64;

/// A factor with its levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// Name of the factor: `log`.
    pub name: String,
    /// Low level, then the high one: `disk`, `slog`. There may be more than two levels; the others are compared with the first.
    pub levels: Vec<String>,
}

impl Factor {
    /// Value halfway between two levels that are numbers with the same unit: `12`, `34k`.
    pub fn centre(&self) -> Option<String> {
        let split = |text: &String| {
            let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
            let (number, unit) = text.split_at(end.unwrap_or(text.len()));
            Some((number.parse::<f64>().ok()?, unit.to_owned()))
        };
        let [low, high] = &self.levels[..] else {
            return None;
        };
        let ((low, unit), (high, other)) = (split(low)?, split(high)?);
        (unit == other).then(|| format!("{}{unit}", (low + high) / 2.0))
    }

    /// The text of a level.
    pub fn level(&self, at: usize) -> String {
        let own = self.levels.get(at).cloned();
        own.or_else(|| self.centre()).unwrap_or_default()
    }
}

/// Combinations of a plan among all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fraction {
    /// All combinations.
    Full,
    /// Standard fraction: one combination in this number.
    One(usize),
    /// Generators: the number of a factor, and the product of factors that it equals.
    Generators(Vec<(usize, u16)>),
}

/// Plan of an experiment. This is a file format: fields must stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the experiment, which its baselines have as a label.
    pub name: String,
    /// Factors, the first is A.
    pub factors: Vec<Factor>,
    /// Number of runs of each combination.
    pub replicates: usize,
    /// Combinations that are run.
    pub fraction: Fraction,
    /// True if the opposite of each combination is run, too.
    pub foldover: bool,
    /// Runs of each block with every factor halfway between its levels.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub centre: usize,
    /// Seed of the random order.
    pub seed: u64,
    /// Runs that were added later, in the order in which they were added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<More>,
}

/// Runs that are added to a plan. They are blocks of their own, so that differences between then and now are not effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum More {
    /// Every combination so far, this number of times.
    Replicates(usize),
    /// Every combination once more, in which these factors have their other level (bit i: factor i).
    Foldover(u16),
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Parses `log=disk,slog`.
///
/// # Errors
/// When the text has another form; the error shows the grammar.
pub fn parse_factor(text: &str) -> Result<Factor, String> {
    let wrong = || "give NAME=LOW,HIGH, as in log=disk,slog".to_owned();
    let (name, levels) = text.split_once('=').ok_or_else(wrong)?;
    let levels: Vec<String> = levels.split(',').map(str::to_owned).collect();
    factor(name, levels).map_err(|_| wrong())
}

/// Builds a factor with two or more different levels.
///
/// # Errors
/// When there is no such factor; the error has the reason.
pub fn factor(name: &str, levels: Vec<String>) -> Result<Factor, String> {
    if name.is_empty() || name.contains('=') {
        return Err("its name is empty or has a `=`; fix: give it a name without".into());
    }
    if !(2..=MOST_LEVELS).contains(&levels.len()) {
        return Err(format!("give 2 to {MOST_LEVELS} levels"));
    }
    let is_twice = |(i, level): (usize, &String)| levels[..i].contains(level);
    if levels.iter().any(String::is_empty) || levels.iter().enumerate().any(is_twice) {
        return Err(
            "a level is empty or there twice; fix: give each level a text of its own".into(),
        );
    }
    Ok(Factor {
        name: name.to_owned(),
        levels,
    })
}

/// Parses `C=AB`.
///
/// # Errors
/// When the text has another form; the error shows the grammar.
pub fn parse_generator(text: &str) -> Result<(usize, u16), String> {
    let parsed = text.split_once('=').and_then(|(factor, word)| {
        let factor = Word::parse(factor).filter(|w| w.order() == 1)?;
        Some((factor.0.trailing_zeros() as usize, Word::parse(word)?.0))
    });
    parsed.ok_or_else(|| "give a generator such as C=AB; the first factor is A".to_owned())
}

/// Labels of a run's baseline. They have the run's levels, so that another plan of the same name does not take it for its own run.
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
    /// Name of a run's baseline; the first run is 1.
    pub fn run_name(&self, run: usize) -> String {
        format!("{}-{run}", self.name)
    }

    /// Returns true if a factor has another number of levels than two.
    pub fn is_mixed(&self) -> bool {
        self.factors.iter().any(|f| f.levels.len() != 2)
    }

    /// The number of levels of each factor.
    pub fn counts(&self) -> Vec<usize> {
        self.factors.iter().map(|f| f.levels.len()).collect()
    }

    /// Every combination, without the centre.
    ///
    /// # Errors
    /// If there is no such design.
    pub fn combinations(&self) -> Result<Vec<Levels>, DesignError> {
        let is_plain = self.fraction == Fraction::Full && !self.foldover && self.centre == 0;
        match self.is_mixed() {
            true if is_plain => factorial(&self.counts()),
            _ => Ok(self.design()?.levels()),
        }
    }

    /// The design of a plan whose factors have two levels.
    ///
    /// # Errors
    /// When there is none such.
    pub fn design(&self) -> Result<Design, DesignError> {
        let k = self.factors.len();
        if self.is_mixed() {
            return Err(DesignError::Mixed);
        }
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

    /// The plan before anything was added.
    pub fn first(&self) -> Plan {
        Plan {
            more: Vec::new(),
            ..self.clone()
        }
    }

    /// Plan with more runs after the others, which keep their numbers.
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
    /// If there is none; the error names all.
    pub fn factors_named(&self, name: &str) -> Result<Word, String> {
        if name == "all" {
            return Ok(Word::all(self.factors.len()));
        }
        match self.factor_named(name) {
            Ok(i) => Ok(Word(1 << i)),
            Err(e) => Err(e + ", or all"),
        }
    }

    /// The number of the factor of this name.
    ///
    /// # Errors
    /// If there is none; the error names all.
    pub fn factor_named(&self, name: &str) -> Result<usize, String> {
        let place = self.factors.iter().position(|f| f.name == name);
        place.ok_or_else(|| {
            let names: Vec<_> = self.factors.iter().map(|f| f.name.as_str()).collect();
            format!(
                "`{}` has no factor {name}; fix: name {}",
                self.name,
                names.join(", ")
            )
        })
    }

    /// All runs in the order in which to make them; the first is run 1.
    ///
    /// # Errors
    /// If there is no such design.
    pub fn runs(&self) -> Result<Vec<Run>, DesignError> {
        let first = self.first();
        let mut all = first.combinations()?;
        let mut runs = blocks_of(&self.with_centre(&all), self.replicates, self.seed, 0);
        for (i, (more, seed)) in self
            .more
            .iter()
            .zip(self.seed.wrapping_add(1)..)
            .enumerate()
        {
            let block = runs.iter().map(|r| r.block + 1).max().unwrap_or(0);
            let (of, times) = match more {
                More::Replicates(n) => (all.clone(), *n),
                More::Foldover(turned) => {
                    let before = Plan {
                        more: self.more[..i].to_vec(),
                        ..first.clone()
                    };
                    let new = before.design()?.turned(Word(*turned));
                    all.extend(&new);
                    (new, self.replicates)
                }
            };
            runs.extend(blocks_of(&self.with_centre(&of), times, seed, block));
        }
        Ok(runs)
    }

    /// The number of rounds: blocks of the order.
    ///
    /// # Errors
    /// If there is no such design.
    pub fn rounds(&self) -> Result<usize, DesignError> {
        let blocks = self.runs()?.into_iter().map(|run| run.block + 1);
        Ok(blocks.max().unwrap_or(0))
    }

    /// A block of combinations with its runs at the centre.
    fn with_centre(&self, combinations: &[Levels]) -> Vec<Levels> {
        let centre = std::iter::repeat_n(Levels::centre(self.factors.len()), self.centre);
        combinations.iter().copied().chain(centre).collect()
    }

    /// The levels of a run: `log=slog threads=8`.
    pub fn levels(&self, run: Run) -> String {
        let each = self.factors.iter().enumerate();
        let each = each.map(|(i, f)| format!("{}={}", f.name, f.level(run.levels.at(i))));
        each.collect::<Vec<_>>().join(" ")
    }

    /// The factors of a word by name: `log x threads`.
    pub fn named(&self, word: Word) -> String {
        let names = word.factors().filter_map(|i| self.factors.get(i));
        let names: Vec<_> = names.map(|f| f.name.as_str()).collect();
        names.join(" x ")
    }
}
