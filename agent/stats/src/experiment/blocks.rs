//! Complete blocks in a balanced random order: every treatment once in each block, at every place equally often.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// Endless series of blocks. The same seed gives the same orders.
///
/// A Latin square has as many blocks as there are treatments. Each treatment has each place in a block once, so that a linear drift and an
/// effect of the place cancel. Over such a square each treatment follows each other one equally often, or over two squares if the number of
/// treatments is odd. After-effects of a treatment therefore meet all others alike (E. J. Williams, Experimental designs balanced for the
/// estimation of residual effects of treatments, Australian J. of Scientific Research A 2, 1949). Chance decides which treatment is which,
/// and the order of the blocks.
#[derive(Debug, Clone)]
pub struct Blocks {
    random: SmallRng,
    treatments: usize,
    /// Remaining blocks of the current square, the last one first.
    square: Vec<Vec<usize>>,
    /// Treatments in the random order that numbers them in the square.
    names: Vec<usize>,
    /// True if the next square is this one with each block reversed.
    is_half: bool,
}

impl Blocks {
    /// Blocks with this number of treatments.
    pub fn new(treatments: usize, seed: u64) -> Blocks {
        Blocks {
            random: SmallRng::seed_from_u64(seed),
            treatments,
            square: Vec::new(),
            names: (0..treatments).collect(),
            is_half: false,
        }
    }

    /// Begins the next square.
    fn begin(&mut self) {
        let k = self.treatments;
        if !self.is_half {
            self.names.shuffle(&mut self.random);
        }
        // 0, 1, k-1, 2, k-2: all differences of neighbours occur.
        let zigzag = |place: usize| match place % 2 {
            1 => place.div_ceil(2),
            _ => (k - place / 2) % k,
        };
        let block = |row: usize| {
            (0..k)
                .map(|place| self.names[(zigzag(place) + row) % k])
                .collect()
        };
        self.square = (0..k).map(block).collect();
        if self.is_half {
            self.square
                .iter_mut()
                .for_each(|b: &mut Vec<_>| b.reverse());
        }
        self.is_half = k % 2 == 1 && !self.is_half;
        self.square.shuffle(&mut self.random);
    }
}

impl Iterator for Blocks {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        if self.square.is_empty() {
            self.begin();
        }
        self.square.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_seed_decides_the_order() {
        let some = |seed| Blocks::new(4, seed).take(50).collect::<Vec<_>>();
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
        let firsts: Vec<_> = (0..40).map(|seed| some(seed)[0].clone()).collect();
        assert!((0..4).all(|t| firsts.iter().any(|b| b[0] == t)));
        assert!(Blocks::new(1, 1).take(3).all(|b| b == [0]));
    }

    #[test]
    fn each_treatment_has_each_place_and_each_predecessor_equally_often() {
        for (treatments, squares) in [(2, 1), (3, 2), (4, 1), (5, 2), (10, 1)] {
            let blocks = Blocks::new(treatments, 7).take(treatments * squares);
            let (mut places, mut pairs) = (BTreeMap::new(), BTreeMap::new());
            for block in blocks {
                for (place, t) in block.iter().enumerate() {
                    *places.entry((place, *t)).or_insert(0) += 1;
                }
                for pair in block.windows(2) {
                    *pairs.entry((pair[0], pair[1])).or_insert(0) += 1;
                }
            }
            let all = |n: usize, counts: &BTreeMap<_, usize>| {
                counts.len() == n && counts.values().all(|c| *c == squares)
            };
            assert!(all(treatments * treatments, &places), "{places:?}");
            assert!(all(treatments * (treatments - 1), &pairs), "{pairs:?}");
        }
    }
}
