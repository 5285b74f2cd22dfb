//! Edges of the classic buckets of each family. The text formats have no other buckets, and a scrape of a busy server is to stay below
//! 2,000 samples. `nfscope metrics` prints [`GROUPS`], which explain each choice.
//!
//! The edges of a family are the same for each of its series, at any time and on every host. An edge that came and went with the values
//! would be read as 0 wherever it is missing: sums over servers by `le` would then be too low.

use nfscope_model::{Info, Kind, Scheme, family as f};

/// Families with the same edges.
#[derive(Debug)]
pub struct Group {
    /// Names of the families, in words.
    pub families: &'static str,
    /// Upper edges in base units; without any there are only sum and count.
    pub edges: &'static [f64],
    /// Text of the edges.
    pub text: &'static str,
    /// Reason for these edges.
    pub why: &'static str,
}

/// Groups of families; each is a row of `nfscope metrics`.
pub static GROUPS: [&Group; 6] = [&OPERATIONS, &DURATIONS, &SIZES, &COUNTS, &DEVICES, &QUEUES];

static OPERATIONS: Group = Group {
    families: "`nfscope_op_duration_seconds`, `nfscope_client_view_rpc_duration_seconds`",
    edges: &[0.001, 0.01, 0.1, 1.0],
    text: "1, 10, 100 ms, 1 s",
    why: "What objectives are set by, and no more: where 25 operations are in use in three versions, each edge is 75 samples",
};
static DURATIONS: Group = Group {
    families: "every other duration",
    edges: &[1e-4, 0.001, 0.01, 0.1, 1.0],
    text: "100 µs, 1, 10, 100 ms, 1 s",
    why: "One series for a version, a thread pool, a log: few enough for 100 µs, which tells memory and flash from disks",
};
static SIZES: Group = Group {
    families: "`nfscope_io_size_bytes`",
    edges: &[4096.0, 65_536.0, 1_048_576.0],
    text: "4 KiB, 64 KiB, 1 MiB",
    why: "A page, and what small and large requests move",
};
static COUNTS: Group = Group {
    families: "`nfscope_compound_ops`, `nfscope_session_slots_used`",
    edges: &[],
    text: "none: a summary of sum and count",
    why: "The mean is what is looked at",
};
static DEVICES: Group = Group {
    families: "`nfscope_block_device_seconds`",
    edges: &[0.001, 0.01, 0.1, 1.0],
    text: "1, 10, 100 ms, 1 s",
    why: "Flash memory, disks, disks with a queue, and disks that hang: what a p99 must tell. 80 series with 20 disks",
};
static QUEUES: Group = Group {
    families: "`nfscope_block_queue_seconds`",
    edges: &[],
    text: "none: a summary of sum and count",
    why: "One series for each operation of each disk, 80 with 20 disks. Sum and count give rate and mean; the distribution is in the \
          native histograms",
};

/// Group of a family; `None` for a family that is not a histogram.
pub fn of(info: &Info) -> Option<&'static Group> {
    let Kind::Histogram(scheme) = info.kind else {
        return None;
    };
    let by_op = [&f::OP_DURATION.info, &f::VIEW_DURATION.info];
    Some(match scheme {
        Scheme::SIZE => &SIZES,
        Scheme::COUNT => &COUNTS,
        _ if by_op.iter().any(|d| d.name == info.name) => &OPERATIONS,
        _ if f::BLOCK_DEVICE.info.name == info.name => &DEVICES,
        _ if f::BLOCK_QUEUE.info.name == info.name => &QUEUES,
        _ => &DURATIONS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_is_one_of_the_kernels_counts() {
        for info in f::ALL {
            let Kind::Histogram(scheme) = info.kind else {
                assert!(of(info).is_none(), "{}", info.name);
                continue;
            };
            let edges = of(info).unwrap().edges;
            assert!(edges.is_sorted(), "{}", info.name);
            for edge in edges {
                let found = scheme.edge(scheme.bucket(*edge));
                assert_eq!(found, *edge, "{}", info.name);
            }
        }
    }

    #[test]
    fn objectives_can_be_set_by_every_duration_with_buckets() {
        for group in [&OPERATIONS, &DURATIONS, &DEVICES] {
            for objective in [0.001, 0.01, 0.1, 1.0] {
                assert!(group.edges.contains(&objective), "{}", group.families);
            }
        }
    }
}
