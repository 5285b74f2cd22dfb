//! Sharing of the probes' tables among the host's CPUs, by the number of possible CPUs. On a virtual machine that can be many times the
//! number of present ones.
//!
//! The kernel keeps a per-CPU map once for each possible CPU. The large tables are plain arrays instead, in shards. On hosts with few CPUs
//! each CPU has its own shard, and counts without locked instructions. On larger hosts CPUs share shards, and the tables do not grow.

use crate::linux::host::facts::Facts;
use nfscope_probes::types as t;

/// Most shards of the tables that take most of a request's additions. If 512 CPUs serve two million COMPOUNDs a second, each of 32 shards
/// is added to by 16 CPUs, 63,000 times a second in its busiest row.
const MOST_OWN: u32 = 32;
/// Number of CPUs below which the tables would be large for the host, and the most shards of these tables there.
const FEW: (u32, u32) = (64, 16);
/// Shards of the rows by client and export; a request adds to such a row twice.
const MOST_SHARED: u32 = 2;
/// Shards of the rows of block devices, below [`FEW`] CPUs and from there on.
const MOST_BLOCK: [u32; 2] = [2, 4];
/// Rows of all pools in all shards.
const POOL_ROWS: u32 = 128;

/// The shape of the tables on this host.
pub fn table_shape(facts: &Facts, client_rows: u32, books: bool) -> t::table_shape {
    t::table_shape {
        client_rows,
        books: u32::from(books),
        slack_ns: facts.clock_slack.as_nanos() as u32,
        skip_one_in: facts.skip_one_in,
        netns: facts.netns,
        limits_unproven: u32::from(facts.limits_unproven),
        ..shape(
            facts.possible_cpus as u32,
            facts.cpu_ids as u32,
            facts.pools(),
            facts.preemptible,
        )
    }
}

fn shape(possible: u32, ids: u32, pools: u32, preemptible: bool) -> t::table_shape {
    let shards = |most: u32| possible.next_power_of_two().min(most);
    let own = shards(if possible < FEW.0 { FEW.1 } else { MOST_OWN });
    let pool = (POOL_ROWS / pools.next_power_of_two()).clamp(1, FEW.1);
    t::table_shape {
        own_mask: own - 1,
        shared_mask: shards(MOST_SHARED) - 1,
        pool_mask: shards(pool) - 1,
        block_mask: shards(MOST_BLOCK[usize::from(possible >= FEW.0)]) - 1,
        pools,
        client_rows: 1,
        netns: 0,
        skip_one_in: 0,
        books: 0,
        slack_ns: 0,
        limits_unproven: 0,
        alone: u32::from(!preemptible && ids <= own),
    }
}

/// Number of entries of a map whose object declares its rows; `None` for maps without shards.
pub fn entries(shape: &t::table_shape, map: &str, rows: u32) -> Option<u32> {
    Some(match map {
        "nfsd_op" | "nfsd_version" => rows * (shape.own_mask + 1),
        "nfsd_client_row" => shape.client_rows * (shape.shared_mask + 1),
        "nfsd_client" | "nfsd_free_rows" => shape.client_rows,
        "nfsd_pool" => shape.pools * (shape.pool_mask + 1),
        "nfsd_pool_now" => shape.pools,
        "block_row" => rows * (shape.block_mask + 1),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_probes::types::{block_row, client_row, op_row, op_times, pool_row, version_row};

    #[test]
    fn each_cpu_has_its_own_shard_while_there_are_few() {
        for cpus in 1..=16 {
            let s = shape(cpus, cpus, 8, false);
            assert!(s.own_mask + 1 >= cpus && s.alone == 1, "{cpus}: {s:?}");
        }
        assert_eq!(shape(4, 5, 8, false).alone, 0, "numbers with a gap");
        assert_eq!(shape(2, 2, 8, true).alone, 0);
        assert_eq!(shape(24, 24, 8, false).alone, 0);
    }

    /// From 64 CPUs on only the rows of pools grow, by less than 704 bytes a pool.
    /// With what the kernel adds, the goal is 25.6 MB on 64 CPUs: `make bench` measures it.
    #[test]
    fn tables_stay_small() {
        let bytes = |cpus, pools| {
            let s = shape(cpus, cpus, pools, false);
            let own =
                op_row::OP_ROWS.0 as usize * size_of::<op_times>() + 5 * size_of::<version_row>();
            own * (s.own_mask as usize + 1)
                + 800 * size_of::<block_row>() * (s.block_mask as usize + 1)
                + 16_384 * size_of::<client_row>() * (s.shared_mask as usize + 1)
                + pools as usize * size_of::<pool_row>() * (s.pool_mask as usize + 1)
        };
        assert!(bytes(2, 8) < 5_500_000, "{}", bytes(2, 8));
        assert!(bytes(16, 8) < 8_600_000, "{}", bytes(16, 8));
        assert!(bytes(64, 8) < 15_650_000, "{}", bytes(64, 8));
        assert_eq!(bytes(512, 8), bytes(64, 8));
        let pools = bytes(512, 512) - bytes(512, 8);
        assert!(pools < 504 * 704, "{pools}");
    }
}
