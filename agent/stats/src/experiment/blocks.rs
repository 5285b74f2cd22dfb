//! Randomized complete blocks: every treatment once in each block, in random order.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// Blocks without end. The same seed gives the same orders.
#[derive(Debug, Clone)]
pub struct Blocks {
    random: SmallRng,
    treatments: usize,
}

impl Blocks {
    /// Blocks of so many treatments.
    pub fn new(treatments: usize, seed: u64) -> Blocks {
        Blocks {
            random: SmallRng::seed_from_u64(seed),
            treatments,
        }
    }
}

impl Iterator for Blocks {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.treatments).collect();
        order.shuffle(&mut self.random);
        Some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_every_treatment_once_and_the_seed_decides_the_order() {
        let some = |seed| Blocks::new(4, seed).take(50).collect::<Vec<_>>();
        for mut block in some(1) {
            block.sort_unstable();
            assert_eq!(block, [0, 1, 2, 3]);
        }
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
        let first = |t| some(1).iter().filter(|b| b[0] == t).count();
        assert!((0..4).all(|t| first(t) > 0));
    }
}
