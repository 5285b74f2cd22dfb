//! `delegation_recalls`: operations wait for clients to return delegations (fs/nfsd/nfs4state.c, nfsd_wait_for_delegreturn). The kernel
//! waits a thirtieth of a second at most, and then tells the client to try again later: `retry_later`. The evidence has the time from each
//! recall to the return.

use crate::rules::context::{Context, RuleResult};
use crate::rules::known_wait::{self, KnownWait};
use crate::rules::recall_evidence;
use nfscope_model::finding::Kind;

pub fn rule(context: &Context) -> RuleResult {
    let wait = KnownWait {
        kind: Kind::DelegationRecalls,
        phase: |p| p.recall,
        programs: ["nfsd_recalled", "recall"],
        attributed: context.attribution.recall,
        waiting: "waiting for clients to return delegations",
        until: "until a client returns a delegation",
    };
    if context.breakdown.illumos {
        let advice = vec![
            "find the files that several clients open: nfscope slow shows their paths".to_owned(),
            "sharectl set -p server_delegation=off nfs stops new delegations".into(),
        ];
        return known_wait::result(context, &wait, Vec::new(), advice);
    }
    let advice = vec![
        "find the clients that open the same files: grep -l deleg /proc/fs/nfsd/clients/*/states, and info beside it; nfscope slow shows the inodes"
            .to_owned(),
        "sysctl fs.leases-enable=0 stops new delegations, and leases of programs on the server, until the next boot".into(),
    ];
    let recalls = context.breakdown.recalls.as_ref();
    let more = recalls.map(recall_evidence::all).unwrap_or_default();
    known_wait::result(context, &wait, more, advice)
}
