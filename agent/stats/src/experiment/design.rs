//! Designs: their runs, the order of these, and the effects that cannot be distinguished.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::fmt;
use thiserror::Error;

/// Most factors.
pub const MAX_FACTORS: usize = 15;
/// Most combinations of a design.
pub const MAX_COMBINATIONS: usize = 512;
/// Most combinations of factors at two levels, because each one has an effect.
const MAX_WORDS: usize = 128;
/// Letters of factors; I is the identity.
const LETTERS: &[u8; MAX_FACTORS] = b"ABCDEFGHJKLMNOP";

/// A product of factors: bit i stands for factor i. The empty word is the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(pub u16);

impl Word {
    /// Number of factors in the word.
    pub fn order(self) -> u32 {
        self.0.count_ones()
    }

    /// Product of two words: a factor times itself is the identity.
    pub fn times(self, other: Word) -> Word {
        Word(self.0 ^ other.0)
    }

    /// Sign of the word where factors have these levels (bit set: high).
    pub fn sign(self, levels: u16) -> f64 {
        // Each factor at its low level flips the sign.
        match (self.0 & !levels).count_ones() % 2 {
            0 => 1.0,
            _ => -1.0,
        }
    }

    /// Parses a word such as `AB`.
    pub fn parse(text: &str) -> Option<Word> {
        let mut word = Word(0);
        for c in text.bytes() {
            let i = LETTERS.iter().position(|l| *l == c)?;
            word = word.times(Word(1 << i));
        }
        (!text.is_empty()).then_some(word)
    }

    /// Word of all of the first `factors` factors.
    pub fn all(factors: usize) -> Word {
        Word(((1u32 << factors) - 1) as u16)
    }

    /// Factors in the word.
    pub fn factors(self) -> impl Iterator<Item = usize> {
        (0..MAX_FACTORS).filter(move |i| self.0 >> i & 1 == 1)
    }
}

/// Writes `ABC`, or `I`.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("I");
        }
        self.factors()
            .map(|i| char::from(LETTERS[i]))
            .try_for_each(|c| write!(f, "{c}"))
    }
}

/// The levels of a run, one for each factor: 0 is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Levels(u128);

/// Level of every factor of two levels at the centre: halfway between both.
pub const CENTRE: usize = 2;

impl Levels {
    /// Levels of factors that have two: a bit of `high` is set for each factor at its high level.
    pub fn of_two(high: u16) -> Levels {
        let factors = Word(high).factors();
        factors.fold(Levels::default(), |levels, f| levels.with(f, 1))
    }

    /// Levels of `factors` factors at the centre.
    pub fn centre(factors: usize) -> Levels {
        (0..factors).fold(Levels::default(), |levels, f| levels.with(f, CENTRE as u8))
    }

    /// Returns these levels with `level` in place of the level of `factor`.
    #[must_use]
    pub fn with(self, factor: usize, level: u8) -> Levels {
        let shift = 8 * factor;
        Levels(self.0 & !(0xff << shift) | u128::from(level) << shift)
    }

    /// Level of this factor.
    pub fn at(self, factor: usize) -> usize {
        usize::from((self.0 >> (8 * factor)) as u8)
    }

    /// Factors at their second level.
    pub fn high(self) -> u16 {
        let high = (0..MAX_FACTORS).filter(|f| self.at(*f) == 1);
        high.fold(0, |all, f| all | 1 << f)
    }

    /// The sign of a product of factors with two levels; 0 at the centre.
    pub fn sign(self, word: Word) -> f64 {
        match self.at(0) == CENTRE {
            true => 0.0,
            false => word.sign(self.high()),
        }
    }
}

/// All combinations of factors, whose numbers of levels are in `levels`; the first factor changes fastest.
///
/// # Errors
/// For too few or too many factors, levels or combinations.
pub fn factorial(levels: &[usize]) -> Result<Vec<Levels>, DesignError> {
    if !(1..=MAX_FACTORS).contains(&levels.len()) {
        return Err(DesignError::Factors(levels.len()));
    }
    let combinations = levels.iter().try_fold(1usize, |n, of| n.checked_mul(*of));
    let combinations = combinations.unwrap_or(usize::MAX);
    if !(1..=MAX_COMBINATIONS).contains(&combinations) {
        return Err(DesignError::Many(combinations));
    }
    let levels_of = |n: usize| {
        let (mut rest, mut run) = (n, Levels::default());
        for (factor, of) in levels.iter().enumerate() {
            run = run.with(factor, (rest % of) as u8);
            rest /= of;
        }
        run
    };
    Ok((0..combinations).map(levels_of).collect())
}

/// Reason why there is no such design.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DesignError {
    /// Too few or too many factors.
    #[error("give 1 to {MAX_FACTORS} factors, not {0}")]
    Factors(usize),
    /// A plan with a fraction, fold-over, generators or centre has a factor with more than two levels.
    #[error(
        "a factor has more than two levels: fractions, fold-overs, generators and runs at the centre are for factors with two"
    )]
    Mixed,
    /// Too many combinations.
    #[error(
        "{0} combinations are too many (at most {MAX_WORDS} of two levels, and {MAX_COMBINATIONS} of others): give --fraction, or fewer levels"
    )]
    Many(usize),
    /// There is no standard fraction of this size.
    #[error(
        "there is no standard design of {factors} factors in {runs} runs: give --generator, or another fraction"
    )]
    NoStandard {
        /// Factors.
        factors: usize,
        /// Runs.
        runs: usize,
    },
    /// A generator does not define a new factor from basic ones.
    #[error(
        "{0}: a generator names a factor that no other generator has, as in C=AB, and basic factors"
    )]
    Generator(String),
    /// Main effects would be aliases of each other.
    #[error("{0} and {1} would be the same column: their effects cannot be told apart")]
    Confounded(String, String),
}

/// A run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Number of the block: each block has every combination once.
    pub block: usize,
    /// Levels by factor.
    pub levels: Levels,
}

/// A design.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Design {
    /// Number of factors.
    pub factors: usize,
    /// Words that are constant, with their sign: the defining relation without the identity.
    pub defining: Vec<Word>,
    /// Combinations in standard order, the first factor changes fastest: bit set for the high level.
    pub combinations: Vec<u16>,
}

/// Standard generators by number of factors and runs: the words that the last factors equal. Those of eight factors and more are the ones
/// of minimum aberration (J. Chen, D. X. Sun and C. F. J. Wu, A catalogue of two-level and three-level fractional factorial designs with
/// small runs, International Statistical Review 61, 1993).
const STANDARD: [(usize, usize, &str); 28] = [
    (3, 4, "AB"),
    (4, 8, "ABC"),
    (5, 16, "ABCD"),
    (5, 8, "AB AC"),
    (6, 32, "ABCDE"),
    (6, 16, "ABC BCD"),
    (6, 8, "AB AC BC"),
    (7, 64, "ABCDEF"),
    (7, 32, "ABCD ABDE"),
    (7, 16, "ABC BCD ACD"),
    (7, 8, "AB AC BC ABC"),
    (8, 64, "ABCD ABEF"),
    (8, 32, "ABC ABD ACDE"),
    (8, 16, "ABC ABD ACD BCD"),
    (9, 32, "ABC ABD ABE ACDE"),
    (9, 16, "AB AC AD BCD ABCD"),
    (10, 32, "ABC ABD ABE ACDE BCDE"),
    (10, 16, "AB AC BC AD BCD ABCD"),
    (11, 32, "ABC ABD ACD BCD ABE ACE"),
    (11, 16, "AB AC BC AD BD ACD BCD"),
    (12, 32, "ABC ABD ACD BCD ABE ACE BCE"),
    (12, 16, "AB AC BC AD BD ACD BCD ABCD"),
    (13, 32, "ABC ABD ACD BCD ABE ACE BCE ADE"),
    (13, 16, "AB AC BC ABC AD BD ABD CD ACD"),
    (14, 32, "ABC ABD ACD BCD ABE ACE BCE ADE BDE"),
    (14, 16, "AB AC BC ABC AD BD ABD CD ACD BCD"),
    (15, 32, "ABC ABD ACD BCD ABE ACE BCE ADE BDE CDE"),
    (15, 16, "AB AC BC ABC AD BD ABD CD ACD BCD ABCD"),
];

impl Design {
    /// Design of all combinations of these factors.
    ///
    /// # Errors
    /// For too few or too many.
    pub fn full(factors: usize) -> Result<Design, DesignError> {
        Design::generated(factors, &[])
    }

    /// Standard fraction with this number of runs.
    ///
    /// # Errors
    /// If there is none.
    pub fn fraction(factors: usize, runs: usize) -> Result<Design, DesignError> {
        if factors <= MAX_FACTORS && runs == 1 << factors {
            return Design::full(factors);
        }
        let standard = STANDARD
            .iter()
            .find(|(k, n, _)| (*k, *n) == (factors, runs));
        let (_, _, words) = standard.ok_or(DesignError::NoStandard { factors, runs })?;
        let words: Vec<&str> = words.split(' ').collect();
        let first = factors - words.len();
        let generators: Vec<(usize, Word)> = words
            .into_iter()
            .enumerate()
            .filter_map(|(i, w)| Some((first + i, Word::parse(w)?)))
            .collect();
        Design::generated(factors, &generators)
    }

    /// Fraction that these generators define: factor, and the product of basic factors that it equals.
    ///
    /// # Errors
    /// If a generator defines nothing, or main effects would be the same.
    pub fn generated(factors: usize, generators: &[(usize, Word)]) -> Result<Design, DesignError> {
        if !(1..=MAX_FACTORS).contains(&factors) {
            return Err(DesignError::Factors(factors));
        }
        let defined = (generators.iter().filter(|(i, _)| *i < factors))
            .fold(0u16, |all, (i, _)| all | 1 << i);
        let basic: Vec<usize> = (0..factors).filter(|i| defined >> i & 1 == 0).collect();
        for (i, (factor, word)) in generators.iter().enumerate() {
            let known = |w: u16| w & defined == 0 && u32::from(w) >> factors == 0;
            let twice = generators[..i].iter().any(|(f, _)| f == factor);
            if *factor >= factors || twice || word.0 == 0 || !known(word.0) {
                let name = Word(1u16.checked_shl(*factor as u32).unwrap_or(0));
                return Err(DesignError::Generator(format!("{name}={word}")));
            }
        }
        if 1 << basic.len() > MAX_WORDS {
            return Err(DesignError::Many(1 << basic.len()));
        }
        // Every product of the generators' words.
        let words: Vec<Word> = generators
            .iter()
            .map(|(factor, word)| word.times(Word(1 << factor)))
            .collect();
        let mut defining: Vec<Word> = (1..1usize << words.len())
            .map(|set| {
                let chosen = words.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
                chosen.fold(Word(0), |all, (_, w)| all.times(*w))
            })
            .collect();
        defining.sort_by_key(|w| (w.order(), w.0));
        if let Some(short) = defining.iter().find(|w| w.order() <= 2) {
            let letters: Vec<String> = short.to_string().chars().map(String::from).collect();
            let first = letters.first().cloned().unwrap_or_default();
            return Err(DesignError::Confounded(
                first,
                letters.get(1).cloned().unwrap_or_else(|| "I".into()),
            ));
        }
        let combinations = (0..1u32 << basic.len())
            .map(|n| {
                let mut levels = 0u16;
                for (i, factor) in basic.iter().enumerate() {
                    levels |= ((n >> i & 1) as u16) << factor;
                }
                for (factor, word) in generators {
                    levels |= u16::from(word.sign(levels) > 0.0) << factor;
                }
                levels
            })
            .collect();
        Ok(Design {
            factors,
            defining,
            combinations,
        })
    }

    /// Design with every combination's opposite added: main effects are then free of interactions of two factors.
    #[must_use]
    pub fn folded(&self) -> Design {
        self.folded_on(Word::all(self.factors))
    }

    /// Design with every combination added once more, with the other level of these factors. A single factor and all of its interactions
    /// are then free of each other.
    #[must_use]
    pub fn folded_on(&self, turned: Word) -> Design {
        let mut combinations = self.combinations.clone();
        combinations.extend(self.new_when_turned(turned));
        Design {
            factors: self.factors,
            // Words with an odd number of these factors change their sign with them, and are not constant any more.
            defining: self
                .defining
                .iter()
                .copied()
                .filter(|w| (w.0 & turned.0).count_ones().is_multiple_of(2))
                .collect(),
            combinations,
        }
    }

    /// Combinations with the other level of these factors that the design lacks.
    pub fn turned(&self, turned: Word) -> Vec<Levels> {
        let new = self.new_when_turned(turned).into_iter();
        new.map(Levels::of_two).collect()
    }

    fn new_when_turned(&self, turned: Word) -> Vec<u16> {
        let opposite = self.combinations.iter().map(|levels| levels ^ turned.0);
        opposite
            .filter(|o| !self.combinations.contains(o))
            .collect()
    }

    /// Length of the shortest word: III, IV, V; `None` for a full design.
    pub fn resolution(&self) -> Option<u32> {
        self.defining.iter().map(|w| w.order()).min()
    }

    /// Words up to this order that are aliases of a word, without itself.
    pub fn aliases(&self, of: Word, order: u32) -> Vec<Word> {
        let mut all: Vec<Word> = self
            .defining
            .iter()
            .map(|w| w.times(of))
            .filter(|w| w.order() <= order)
            .collect();
        all.sort_by_key(|w| (w.order(), w.0));
        all
    }

    /// The effects that can be estimated, each by its shortest word; in standard order, without the mean.
    pub fn effects(&self) -> Vec<Word> {
        let mut words: Vec<Word> = (1..=Word::all(self.factors).0).map(Word).collect();
        words.sort_by_key(|w| (w.order(), w.0));
        let mut seen = vec![false; 1 << self.factors];
        for word in &self.defining {
            seen[usize::from(word.0)] = true;
        }
        let mut effects = Vec::new();
        for word in words {
            if !seen[usize::from(word.0)] {
                effects.push(word);
                for alias in &self.defining {
                    seen[usize::from(alias.times(word).0)] = true;
                }
            }
        }
        effects
    }

    /// The combinations as levels of runs.
    pub fn levels(&self) -> Vec<Levels> {
        self.combinations
            .iter()
            .map(|c| Levels::of_two(*c))
            .collect()
    }

    /// All runs: `replicates` blocks of every combination, each in a random order. The same seed gives the same order.
    pub fn runs(&self, replicates: usize, seed: u64) -> Vec<Run> {
        blocks_of(&self.levels(), replicates, seed, 0)
    }
}

/// Runs of `replicates` blocks of these combinations, the first of which has the number `first`.
pub fn blocks_of(combinations: &[Levels], replicates: usize, seed: u64, first: usize) -> Vec<Run> {
    let mut random = SmallRng::seed_from_u64(seed);
    (first..first + replicates)
        .flat_map(|block| {
            let mut order = combinations.to_vec();
            order.shuffle(&mut random);
            order.into_iter().map(move |levels| Run { block, levels })
        })
        .collect()
}
