//! `pnfs_fallback`: clients were granted layouts, with which they read and write at the storage itself, but they send READ and WRITE to the
//! server nevertheless. Each such request is healthy, so nothing else shows the problem.

use crate::breakdown::part;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, percent};
use crate::thresholds::{FALLBACK_RATIO, MIN_COUNT};
use nfscope_model::family as f;
use nfscope_model::finding::{Kind, Severity};
use nfscope_text::units::many;

/// Most clients that the evidence names.
const NAMED: usize = 3;

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let layouts = b.layouts.clone().unwrap_or_default();
    let share = part(layouts.through_server, b.requests);
    // The share is that of these clients' requests, so that other busy clients do not hide them.
    let of_holders = (layouts.requests).map(|n| part(layouts.through_server, n).min(1.0));
    let mut names = layouts.holders[..layouts.holders.len().min(NAMED)].join(", ");
    if layouts.holders.len() > NAMED {
        names += &format!(" and {} more", layouts.holders.len() - NAMED);
    }
    let granted = format!(
        "the agent saw layouts granted to {names}; in this window {}",
        many(layouts.granted, "layout")
    );
    let sent = format!(
        "at least {:.0} READs and WRITEs over NFSv4.1 and later are of these clients, {} of all requests{}",
        layouts.through_server,
        percent(share),
        of_holders.map_or(String::new(), |s| format!(" and {} of theirs", percent(s)))
    );
    RuleResult {
        kind: Kind::PnfsFallback,
        share: b.layouts.as_ref().map(|_| share),
        of_threads: 0.0,
        condition: layouts.through_server >= MIN_COUNT
            && (share >= FALLBACK_RATIO || of_holders.is_some_and(|s| s >= FALLBACK_RATIO)),
        max_severity: Severity::Warning,
        summary: format!(
            "{} of the requests are READs and WRITEs of clients that hold layouts: pNFS does not keep them from the server",
            percent(share)
        ),
        evidence: vec![
            evidence(&f::CLIENT_LAYOUTS.info, layouts.granted, None, granted),
            evidence(&f::OP_DURATION.info, share, Some(FALLBACK_RATIO), sent),
        ],
        advice: advice(b.illumos),
        ruled_out_reason: match &b.layouts {
            None => "this host does not tell layouts; `nfscope check` shows why".into(),
            Some(l) if l.holders.is_empty() => "no client was granted a layout".into(),
            Some(l) => format!(
                "clients with layouts sent {:.0} READs and WRITEs at least, {} of the requests",
                l.through_server,
                percent(share)
            ),
        },
    }
}

fn advice(illumos: bool) -> Vec<String> {
    // The server of illumos grants no layouts.
    if illumos {
        return Vec::new();
    }
    let texts = [
        "on these clients, look whether they reach the storage: the exported disk must be there (lsblk), and for block layouts blkmapd must run (systemctl status nfs-blkmap)",
        "on these clients, /proc/self/mountstats counts LAYOUTGET, GETDEVICEINFO and their errors; the kernel's log has `pNFS: using block device` where a block layout's disk was found",
        "clients read and write parts of blocks through the server where a file is open with O_DIRECT; if they cannot use the storage at all, take pnfs out of the export's options",
    ];
    texts.map(str::to_owned).into()
}
