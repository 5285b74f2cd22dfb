//! `delegation_recalls`: operations wait for clients to return delegations (fs/nfsd/nfs4state.c, nfsd_wait_for_delegreturn). The
//! kernel waits a thirtieth of a second at most, and then tells the client to try again later: `retry_later`.

use crate::rules::context::{Context, RuleResult};
use crate::rules::known_wait::{self, KnownWait};
use nfscope_model::finding::Kind;

pub fn rule(context: &Context) -> RuleResult {
    let wait = KnownWait {
        kind: Kind::DelegationRecalls,
        phase: |p| p.recall,
        attributed: context.attribution.recall,
        waiting: "waiting for clients to return delegations",
        until: "until a client returns a delegation",
    };
    let advice = vec![
        "find the clients that open the same files: grep -l deleg /proc/fs/nfsd/clients/*/states, and info beside it; nfscope slow shows the inodes"
            .to_owned(),
        "a server gives no delegations after: sysctl fs.leases-enable=0, which programs on the server then miss, too".into(),
    ];
    known_wait::result(context, &wait, Vec::new(), advice)
}
