//! How clients use the server: what is not slow, only much.

use crate::attribution::FEW;
use crate::breakdown::{Account, Op, TINY, mean, part, sum};
use crate::rules::{Case, Judged, evidence, percent};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};

/// Operations that only ask: they change nothing and bring no data.
const ASK: [&str; 7] = [
    "getattr", "lookup", "lookupp", "access", "readlink", "verify", "nverify",
];
/// What NFSv4 needs around an operation.
const AROUND: [&str; 7] = [
    "sequence",
    "putfh",
    "putrootfh",
    "putpubfh",
    "getfh",
    "savefh",
    "restorefh",
];
/// Clients are chatty where at least this part of their requests only asks.
const MOST: f64 = 0.8;
/// Clients write synchronously where at least this part of their requests is for that.
const HALF: f64 = 0.5;
/// Less than this made durable at a time is little: a client's default write is 16 times as large.
const LITTLE: f64 = 65_536.0;

/// Requests that only ask, by kind.
struct Asks {
    /// NFSv3 procedures.
    v3: f64,
    /// COMPOUNDs.
    v4: f64,
    /// READs of a page at most.
    tiny: f64,
}

impl Asks {
    /// A COMPOUND usually is about one operation; whatever is not about another only asks.
    fn of(a: &Account) -> Asks {
        let asks_or_around = |o: &str| ASK.contains(&o) || AROUND.contains(&o);
        let deeds = a
            .ops
            .iter()
            .filter(|o| o.version != "3" && !asks_or_around(&o.op));
        let deeds = sum(deeds.map(|o| o.count));
        Asks {
            v3: sum(a.named(&ASK).filter(|o| o.version == "3").map(|o| o.count)),
            v4: (a.compounds - deeds).max(0.0),
            tiny: a.tiny_reads,
        }
    }

    fn all(&self) -> f64 {
        self.v3 + self.v4 + self.tiny
    }
}

pub fn chatty(case: &Case) -> Judged {
    let a = case.a;
    let asks = Asks::of(a);
    let of_requests = part(asks.all(), a.requests);
    // What they cost is the asking; a wait for a disk is none, however fast it is.
    let cost = |o: &Op| (case.c.net(o) - o.phases.disk).max(0.0);
    let net = |names: &[&str]| sum(a.named(names).map(cost));
    // What stands around an operation belongs to those that only ask by their part of all COMPOUNDs.
    let seconds = net(&ASK)
        + net(&AROUND) * part(asks.v4, a.compounds)
        + net(&["read"]) * part(asks.tiny, a.reads);
    let share = case.share_of_rest(seconds);
    let mut proof = vec![evidence(
        &f::OP_DURATION.info,
        of_requests,
        Some(MOST),
        format!(
            "{} of {:.0} requests a second only ask: {}",
            percent(of_requests),
            a.rate(a.requests),
            breakdown(case, &asks)
        ),
    )];
    let opens = sum(a.named(&["open"]).map(|o| o.count));
    if opens > 0.0 {
        let each = asks.v4 / opens;
        let text = format!("{each:.1} such COMPOUNDs for each OPEN");
        proof.push(evidence(&f::COMPOUND_OPS.info, each, None, text));
    }
    if asks.v4 > 0.0 {
        let each = mean(a.compound_ops, a.compounds);
        let text = format!("a COMPOUND has {each:.1} operations on average");
        proof.push(evidence(&f::COMPOUND_OPS.info, each, None, text));
    }
    proof.extend(who(a));
    Judged {
        kind: Kind::ChattyClient,
        share: Some(share),
        holds: asks.all() >= FEW && of_requests >= MOST,
        worst: Severity::Warning,
        summary: format!(
            "{} of the time that requests spend in the server goes into questions: attributes, names, access, tiny READs",
            percent(share)
        ),
        evidence: proof,
        advice: vec![
            "longer attribute caching on the clients: mount with actimeo= (default 3 to 60 s), not with noac or lookupcache=none"
                .into(),
            "see what walks the tree there: backups, indexers, monitoring, find, build systems".into(),
            "NFSv4 with delegations lets clients open and stat without asking".into(),
        ],
        otherwise: format!("{} of the requests only ask", percent(of_requests)),
    }
}

/// The three most frequent kinds.
fn breakdown(case: &Case, asks: &Asks) -> String {
    let a = case.a;
    let named = |n: &str| sum(a.named(&[n]).map(|o| o.count));
    let mut parts: Vec<(String, f64)> = ["getattr", "lookup", "access", "readlink"]
        .iter()
        .map(|n| (n.to_uppercase(), named(n)))
        .collect();
    parts.push((format!("READ of at most {} bytes", TINY as u64), asks.tiny));
    parts.retain(|(_, n)| *n > 0.0);
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let parts: Vec<_> = (parts.iter().take(3))
        .map(|(name, n)| format!("{:.0} {name}", a.rate(*n)))
        .collect();
    parts.join(", ")
}

/// Whose operations most are.
fn who(a: &Account) -> Option<Evidence> {
    let (client, part) = a.busiest()?;
    let text = format!("{} sends {} of the operations", client.name, percent(part));
    Some(evidence(&f::CLIENT_OPS.info, part, None, text))
}

pub fn small_sync(case: &Case) -> Judged {
    let a = case.a;
    let commits = sum(a.named(&["commit"]).map(|o| o.count));
    let orders = a.stable_writes + commits;
    let stable = part(a.stable_writes, a.writes);
    let unstable = a.writes - a.stable_writes;
    // A COMMIT after every second unstable WRITE makes those WRITEs synchronous, too.
    let sync_writes = stable
        + if commits >= 0.5 * unstable {
            1.0 - stable
        } else {
            0.0
        };
    let net = |name: &str| sum(a.named(&[name]).map(|o| case.c.net(o)));
    let seconds = net("commit") + net("write") * sync_writes;
    let share = case.share_of_rest(seconds);
    let each = mean(a.write_bytes, orders);
    let of_requests = part(commits + a.writes * sync_writes, a.requests);
    let mut proof = vec![
        evidence(
            &f::WRITE_BYTES.info,
            each,
            Some(LITTLE),
            format!(
                "{} are made durable at a time; less than {} is little",
                bytes(each),
                bytes(LITTLE)
            ),
        ),
        evidence(
            &f::OP_DURATION.info,
            of_requests,
            Some(HALF),
            format!("{} of the requests are for that", percent(of_requests)),
        ),
        evidence(
            &f::WRITE.info,
            a.rate(orders),
            None,
            format!(
                "{:.0} WRITEs that must be durable and {:.0} COMMITs a second, for {:.0} WRITEs in all",
                a.rate(a.stable_writes),
                a.rate(commits),
                a.rate(a.writes)
            ),
        ),
    ];
    proof.extend(who(a));
    Judged {
        kind: Kind::SmallSyncWrites,
        share: Some(share),
        holds: a.writes >= FEW && each < LITTLE && of_requests >= HALF,
        worst: Severity::Warning,
        summary: format!(
            "{} of the time that requests spend in the server goes into making {} at a time durable",
            percent(share),
            bytes(each)
        ),
        evidence: proof,
        advice: vec![
            "see who asks for it: nfscope slow --over 0ms --op write,commit (column SYNC), and whether that program needs O_SYNC or an fsync after each write".into(),
            "clients that mount with sync, or open with O_SYNC or O_DSYNC, write like this".into(),
            "where it has to be so, a log on fast storage makes it cheap".into(),
        ],
        otherwise: match orders >= FEW {
            true => format!(
                "{} are made durable at a time, which {} of the requests are for",
                bytes(each),
                percent(of_requests)
            ),
            false => "next to nothing had to be durable at once".into(),
        },
    }
}

fn bytes(n: f64) -> String {
    match n {
        n if n < 1024.0 => format!("{n:.0} bytes"),
        n if n < 1024.0 * 1024.0 => format!("{:.0} KiB", n / 1024.0),
        n => format!("{:.1} MiB", n / 1024.0 / 1024.0),
    }
}
