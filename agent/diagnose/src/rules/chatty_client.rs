//! `chatty_client`: most requests are metadata queries or tiny READs. They are not slow, only many.

use crate::breakdown::{Breakdown, Op, TINY_READ_BYTES, mean, part, sum};
use crate::by_client::{self, ClientOps, Mostly};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{busiest_client, evidence, of_client, percent};
use crate::thresholds::{CHATTY_RATIO, MIN_COUNT};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};

/// Operations that query metadata: they change nothing and return no data.
const METADATA_OPS: [&str; 7] = [
    "getattr", "lookup", "lookupp", "access", "readlink", "verify", "nverify",
];
/// Operations that an NFSv4 COMPOUND needs besides its purpose.
const COMPOUND_FRAME_OPS: [&str; 7] = [
    "sequence",
    "putfh",
    "putrootfh",
    "putpubfh",
    "getfh",
    "savefh",
    "restorefh",
];
/// Least part of all queries for which there is advice about a kind of query.
const ADVISED_PART: f64 = 0.25;
/// Limit of the kinds of queries that the evidence names.
const NAMED_QUERIES: usize = 3;

/// Numbers of metadata queries and tiny READs.
struct Queries {
    /// NFSv3 procedures that query metadata.
    v3: f64,
    /// COMPOUNDs that query metadata.
    v4: f64,
    /// READs of at most [`TINY_READ_BYTES`].
    tiny_reads: f64,
}

impl Queries {
    /// Counts the queries of a window. A COMPOUND usually has one operation as its purpose. A COMPOUND without any other operation is a
    /// query.
    fn of(b: &Breakdown) -> Queries {
        let is_query = |o: &str| METADATA_OPS.contains(&o) || COMPOUND_FRAME_OPS.contains(&o);
        let others = (b.ops.iter()).filter(|o| o.version != "3" && !is_query(&o.op));
        let others = sum(others.map(|o| o.count));
        let v3 = b.ops_named(&METADATA_OPS).filter(|o| o.version == "3");
        Queries {
            v3: sum(v3.map(|o| o.count)),
            v4: (b.compounds - others).max(0.0),
            tiny_reads: b.tiny_reads,
        }
    }

    /// The queries of one client, and their seconds.
    fn of_client(c: &ClientOps, context: &Context) -> (f64, f64) {
        let is_query = |o: &str| METADATA_OPS.contains(&o) || COMPOUND_FRAME_OPS.contains(&o);
        let queries = match c.count(&["sequence"]) {
            0.0 => c.count(&METADATA_OPS),
            requests => (requests - c.count_of_others(is_query)).max(0.0),
        };
        let (b, a) = (context.breakdown, context.attribution);
        let frame = c.unattributed(&COMPOUND_FRAME_OPS, b, a) * part(queries, c.requests());
        (queries, c.unattributed(&METADATA_OPS, b, a) + frame)
    }

    fn total(&self) -> f64 {
        self.v3 + self.v4 + self.tiny_reads
    }
}

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let queries = Queries::of(b);
    let of_requests = part(queries.total(), b.requests);
    let share = context.share_of_unattributed(query_seconds(context, &queries));
    let happened = |is: &dyn Fn(&Op) -> bool| b.ops.iter().any(|o| o.count > 0.0 && is(o));
    let unknown_sizes = b.lacks(&f::IO_SIZE.info) && happened(&|o| o.op == "read");
    let of_v4 = |o: &Op| o.version.starts_with('4') && o.op != "null";
    let uncounted = b.lacks(&f::COMPOUND_OPS.info) && happened(&of_v4);
    let known = !unknown_sizes && !uncounted;
    let of_all = queries.total() >= MIN_COUNT && of_requests >= CHATTY_RATIO;
    let active = context.active.contains(&Kind::ChattyClient);
    let counted = context.observed.clients.as_ref();
    let one = by_client::mostly(b, counted, CHATTY_RATIO, active, |c| {
        Queries::of_client(c, context)
    })
    .or_else(|| walks_mostly(b, active))
    .filter(|_| !of_all);
    let share = one.as_ref().map_or(share, |one| one.share);
    RuleResult {
        kind: Kind::ChattyClient,
        share: known.then_some(share),
        of_threads: 0.0,
        condition: of_all || one.is_some(),
        max_severity: Severity::Warning,
        summary: format!(
            "{} of request time in the server is spent on metadata queries (attributes, names, access){}",
            percent(share),
            match &one {
                Some(one) => format!(" of {}", one.client),
                None => " and tiny READs".to_owned(),
            }
        ),
        evidence: match &one {
            Some(one) => vec![of_client(one, "metadata queries", CHATTY_RATIO)],
            None => evidence_for(context, &queries, of_requests),
        },
        advice: advice(&queries, one.is_some()),
        ruled_out_reason: match known {
            true => format!(
                "{} of the requests are metadata queries or tiny READs",
                percent(of_requests)
            ),
            false => {
                "sizes of READs or operations of COMPOUNDs are not measured on this host; `nfscope check` shows why".into()
            }
        },
    }
}

/// Advice about each kind of query that is at least `ADVISED_PART` of all queries.
fn advice(queries: &Queries, metadata_only: bool) -> Vec<String> {
    let much = |n: f64| part(n, queries.total()) >= ADVISED_PART;
    let mut all = Vec::new();
    if metadata_only || much(queries.v3 + queries.v4) {
        all.extend([
            "lengthen attribute caching on the clients: mount with actimeo= (default 3 to 60 s), not with noac or \
             lookupcache=none",
            "find the programs on these clients that walk the tree: backups, indexers, monitoring, find, build systems",
        ]);
    }
    if !metadata_only && much(queries.tiny_reads) {
        all.push("find the programs on these clients that read a few bytes at a time, and have them read more at once");
    }
    if much(queries.v3) {
        all.push(
            "NFSv4 with delegations lets clients open and stat files without asking the server",
        );
    }
    all.into_iter().map(str::to_owned).collect()
}

/// A client of NFSv4 whose requests mostly walk paths, by the counts of the window.
fn walks_mostly(b: &Breakdown, active: bool) -> Option<Mostly> {
    let clients = b.clients.iter().filter_map(|c| {
        let of_requests = part(c.walks, c.requests?).min(1.0);
        // `open_seconds` includes requests that open a file, so only a part by number counts. A client that mostly walks has few of them.
        let share = part(
            c.open_seconds? * part(c.walks, c.walks + c.opens),
            b.residence,
        )
        .min(1.0);
        let is = c.walks >= MIN_COUNT && of_requests >= CHATTY_RATIO;
        (is && share >= by_client::begin(active)).then(|| Mostly {
            client: c.name.clone(),
            of_requests,
            share,
        })
    });
    clients.max_by(|a, b| a.share.total_cmp(&b.share))
}

fn query_seconds(context: &Context, queries: &Queries) -> f64 {
    let b = context.breakdown;
    // Only the cost of the query itself counts. A wait for a disk is not part of it, however fast the disk is.
    let cost = |o: &Op| (context.attribution.unattributed(o) - o.phases.disk).max(0.0);
    let cost_of = |names: &[&str]| sum(b.ops_named(names).map(cost));
    // Operations that frame a COMPOUND count in proportion to the COMPOUNDs that are queries.
    cost_of(&METADATA_OPS)
        + cost_of(&COMPOUND_FRAME_OPS) * part(queries.v4, b.compounds)
        + cost_of(&["read"]) * part(queries.tiny_reads, b.reads)
}

fn evidence_for(context: &Context, queries: &Queries, of_requests: f64) -> Vec<Evidence> {
    let b = context.breakdown;
    let mut all = vec![evidence(
        &f::OP_DURATION.info,
        of_requests,
        Some(CHATTY_RATIO),
        format!(
            "{} of {:.0} requests/s are metadata queries or tiny READs: {}",
            percent(of_requests),
            b.rate(b.requests),
            most_frequent(b, queries)
        ),
    )];
    let opens = sum(b.ops_named(&["open"]).map(|o| o.count));
    if opens > 0.0 {
        let each = queries.v4 / opens;
        let text = format!("{each:.1} metadata COMPOUNDs for each OPEN");
        all.push(evidence(&f::COMPOUND_OPS.info, each, None, text));
    }
    if queries.v4 > 0.0 {
        let each = mean(b.compound_ops, b.compounds);
        let text = format!("a COMPOUND has {each:.1} operations on average");
        all.push(evidence(&f::COMPOUND_OPS.info, each, None, text));
    }
    all.extend(busiest_client(context));
    all
}

/// The most frequent queries with their rates.
fn most_frequent(b: &Breakdown, queries: &Queries) -> String {
    let count = |name: &str| sum(b.ops_named(&[name]).map(|o| o.count));
    let mut all: Vec<(String, f64)> = ["getattr", "lookup", "access", "readlink"]
        .iter()
        .map(|name| (name.to_uppercase(), count(name)))
        .collect();
    let tiny_read = format!("READ of at most {} bytes", TINY_READ_BYTES as u64);
    all.push((tiny_read, queries.tiny_reads));
    all.retain(|(_, n)| *n > 0.0);
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all: Vec<_> = (all.iter().take(NAMED_QUERIES))
        .map(|(name, n)| format!("{:.0} {name}", b.rate(*n)))
        .collect();
    all.join(", ")
}
