//! Designs: which runs there are, in which order, and what cannot be told apart.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::fmt;
use thiserror::Error;

/// Most factors.
pub const MAX_FACTORS: usize = 7;

/// A product of factors: bit i stands for factor i. The empty word is the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(pub u8);

impl Word {
    /// Number of factors in it.
    pub fn order(self) -> u32 {
        self.0.count_ones()
    }

    /// Their product: a factor times itself is the identity.
    pub fn times(self, other: Word) -> Word {
        Word(self.0 ^ other.0)
    }

    /// The sign of this product where factors have these levels (bit set: high).
    pub fn sign(self, levels: u8) -> f64 {
        // Each factor at its low level turns the sign.
        match (self.0 & !levels).count_ones() % 2 {
            0 => 1.0,
            _ => -1.0,
        }
    }

    /// Parses `AB`.
    pub fn parse(text: &str) -> Option<Word> {
        let mut word = Word(0);
        for c in text.bytes() {
            let i = c
                .checked_sub(b'A')
                .filter(|i| usize::from(*i) < MAX_FACTORS)?;
            word = word.times(Word(1 << i));
        }
        (!text.is_empty()).then_some(word)
    }
}

/// `ABC`, or `I`.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("I");
        }
        let letters = (0..8u8).filter(|i| self.0 >> i & 1 == 1);
        letters
            .map(|i| char::from(b'A' + i))
            .try_for_each(|c| write!(f, "{c}"))
    }
}

/// Why there is no such design.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DesignError {
    /// Too few or too many factors.
    #[error("give 1 to {MAX_FACTORS} factors, not {0}")]
    Factors(usize),
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
    /// A generator that defines nothing.
    #[error(
        "{0}: a generator names a factor that no other generator has, as in C=AB, and basic factors"
    )]
    Generator(String),
    /// Main effects would be aliases of each other.
    #[error("{0} and {1} would be the same column: their effects cannot be told apart")]
    Confounded(String, String),
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The block: each has every combination once.
    pub block: usize,
    /// Levels by factor: bit set for the high level.
    pub levels: u8,
}

/// A design.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Design {
    /// Number of factors.
    pub factors: usize,
    /// Words that are constant, with their sign: the defining relation without the identity.
    pub defining: Vec<Word>,
    /// Combinations in standard order: the first factor changes fastest.
    pub combinations: Vec<u8>,
}

/// Standard generators by number of factors and runs: the words that the last factors equal.
const STANDARD: [(usize, usize, &[&str]); 11] = [
    (3, 4, &["AB"]),
    (4, 8, &["ABC"]),
    (5, 16, &["ABCD"]),
    (5, 8, &["AB", "AC"]),
    (6, 32, &["ABCDE"]),
    (6, 16, &["ABC", "BCD"]),
    (6, 8, &["AB", "AC", "BC"]),
    (7, 64, &["ABCDEF"]),
    (7, 32, &["ABCD", "ABDE"]),
    (7, 16, &["ABC", "BCD", "ACD"]),
    (7, 8, &["AB", "AC", "BC", "ABC"]),
];

impl Design {
    /// All combinations of so many factors.
    ///
    /// # Errors
    /// For too few or too many.
    pub fn full(factors: usize) -> Result<Design, DesignError> {
        Design::generated(factors, &[])
    }

    /// The standard fraction with so many runs.
    ///
    /// # Errors
    /// Where there is none.
    pub fn fraction(factors: usize, runs: usize) -> Result<Design, DesignError> {
        if factors <= MAX_FACTORS && runs == 1 << factors {
            return Design::full(factors);
        }
        let standard = STANDARD
            .iter()
            .find(|(k, n, _)| (*k, *n) == (factors, runs));
        let (_, _, words) = standard.ok_or(DesignError::NoStandard { factors, runs })?;
        let first = factors - words.len();
        let generators: Vec<(usize, Word)> = words
            .iter()
            .enumerate()
            .filter_map(|(i, w)| Some((first + i, Word::parse(w)?)))
            .collect();
        Design::generated(factors, &generators)
    }

    /// The fraction that these generators define: factor, and the product of basic factors that it equals.
    ///
    /// # Errors
    /// Where a generator defines nothing, or main effects would be the same.
    pub fn generated(factors: usize, generators: &[(usize, Word)]) -> Result<Design, DesignError> {
        if !(1..=MAX_FACTORS).contains(&factors) {
            return Err(DesignError::Factors(factors));
        }
        let defined = generators.iter().fold(0u8, |all, (i, _)| all | 1 << i);
        let basic: Vec<usize> = (0..factors).filter(|i| defined >> i & 1 == 0).collect();
        for (i, (factor, word)) in generators.iter().enumerate() {
            let known = |w: u8| w & defined == 0 && w >> factors == 0;
            let twice = generators[..i].iter().any(|(f, _)| f == factor);
            if *factor >= factors || twice || word.0 == 0 || !known(word.0) {
                let name = Word(1u8.checked_shl(*factor as u32).unwrap_or(0));
                return Err(DesignError::Generator(format!("{name}={word}")));
            }
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
                let mut levels = 0u8;
                for (i, factor) in basic.iter().enumerate() {
                    levels |= ((n >> i & 1) as u8) << factor;
                }
                for (factor, word) in generators {
                    levels |= u8::from(word.sign(levels) > 0.0) << factor;
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

    /// The same with every combination's opposite: main effects are then free of interactions of two factors.
    #[must_use]
    pub fn folded(&self) -> Design {
        self.folded_on(Word(((1u16 << self.factors) - 1) as u8))
    }

    /// The same with every combination once more, in which these factors have their other level. A single factor and all of its
    /// interactions are then free of each other.
    #[must_use]
    pub fn folded_on(&self, turned: Word) -> Design {
        let mut combinations = self.combinations.clone();
        combinations.extend(self.turned(turned));
        Design {
            factors: self.factors,
            // Words with an odd number of these factors change their sign with them, and are constant no more.
            defining: self
                .defining
                .iter()
                .copied()
                .filter(|w| (w.0 & turned.0).count_ones().is_multiple_of(2))
                .collect(),
            combinations,
        }
    }

    /// The combinations in which these factors have their other level, and which the design has not.
    pub fn turned(&self, turned: Word) -> Vec<u8> {
        let opposite = self.combinations.iter().map(|levels| levels ^ turned.0);
        opposite
            .filter(|o| !self.combinations.contains(o))
            .collect()
    }

    /// The length of the shortest word: III, IV, V; `None` of a full design.
    pub fn resolution(&self) -> Option<u32> {
        self.defining.iter().map(|w| w.order()).min()
    }

    /// Words up to this order that cannot be told from a word, without itself.
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
        let mut seen = Vec::new();
        let mut effects = Vec::new();
        let mut words: Vec<Word> = (1..1u16 << self.factors).map(|w| Word(w as u8)).collect();
        words.sort_by_key(|w| (w.order(), w.0));
        for word in words {
            let is_constant = self.defining.contains(&word);
            if is_constant || seen.contains(&word) {
                continue;
            }
            seen.push(word);
            seen.extend(self.defining.iter().map(|w| w.times(word)));
            effects.push(word);
        }
        effects
    }

    /// All runs: so many blocks of every combination, in each of which the order is random. The same seed gives the same order.
    pub fn runs(&self, replicates: usize, seed: u64) -> Vec<Run> {
        blocks_of(&self.combinations, replicates, seed, 0)
    }
}

/// Runs of so many blocks of these combinations, the first of which has this number.
pub fn blocks_of(combinations: &[u8], replicates: usize, seed: u64, first: usize) -> Vec<Run> {
    let mut random = SmallRng::seed_from_u64(seed);
    (first..first + replicates)
        .flat_map(|block| {
            let mut order = combinations.to_vec();
            order.shuffle(&mut random);
            order.into_iter().map(move |levels| Run { block, levels })
        })
        .collect()
}
