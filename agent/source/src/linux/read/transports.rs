//! The server's lists of transports, as a BPF iterator reads them.

use crate::linux::load::object::Loaded;
use nfscope_probes::types as t;

/// Limit of walks over the lists. A walk holds no lock: if a list changes meanwhile, the next walk begins.
const TRIES: usize = 8;

/// Complete lists of the server; `None` if there is none, or the lists change all the time.
pub(super) fn now(l: &Loaded) -> Option<t::transports_now> {
    const NOW: &str = ".data.nfsd_xprt_now";
    for _ in 0..TRIES {
        l.set(NOW, &t::transports_now::default()).ok()?;
        l.iterate("nfsd_transports").ok()?;
        let now: t::transports_now = l.get(NOW)?;
        if now.server == 0 {
            return None;
        }
        if now.torn == 0 {
            return Some(now);
        }
    }
    None
}
