//! Evidence about recalls, for the rules whose cause they may be.

use crate::recalls::Recalls;
use crate::rules::evidence::{evidence, tail};
use nfscope_model::family as f;
use nfscope_model::finding::Evidence;
use nfscope_text::units::{many, seconds};

/// Most clients that are named.
const NAMED: usize = 2;

/// Evidence about the times that clients take, and about the clients.
pub fn all(recalls: &Recalls) -> Vec<Evidence> {
    let mut all = Vec::new();
    if let Some((h, mean)) = recalls.returned.as_ref().and_then(|h| Some((h, h.mean()?))) {
        let text = format!(
            "a client returns a delegation {} after the recall on average, {}: {} of {:.0} recalled",
            seconds(mean),
            tail(h, mean),
            h.count(),
            recalls.recalls.max(h.count() as f64)
        );
        all.push(evidence(&f::RECALL_SECONDS.info, mean, None, text));
    }
    // Recalls that are pending for no longer than usual are no evidence.
    let usual = recalls.returned.as_ref().and_then(|h| h.mean());
    if recalls.pending > 0.0 && usual.is_none_or(|usual| recalls.oldest > usual) {
        let text = format!(
            "{} not returned yet, the oldest {} after its recall",
            match recalls.pending {
                1.0 => "1 recalled delegation is".to_owned(),
                n => format!("{n:.0} recalled delegations are"),
            },
            seconds(recalls.oldest)
        );
        all.push(evidence(
            &f::RECALLS_PENDING.info,
            recalls.pending,
            None,
            text,
        ));
    }
    if recalls.revoked > 0.0 {
        let text = format!("the server revoked {}", many(recalls.revoked, "delegation"));
        all.push(evidence(
            &f::DELEGATIONS_REVOKED.info,
            recalls.revoked,
            None,
            text,
        ));
    }
    for h in recalls.holders.iter().take(NAMED) {
        let asked = many(h.recalls, "delegation");
        let name = &h.name;
        let took = h.seconds.map(seconds);
        let text = match (h.pending, took) {
            (0.0, Some(took)) => {
                format!("{name} was asked to return {asked}, and took {took} in all")
            }
            (0.0, None) => format!("{name} was asked to return {asked}"),
            (n, Some(took)) => format!(
                "{name} was asked to return {asked}, took {took} in all, and has {n:.0} still to return"
            ),
            (n, None) => {
                format!("{name} was asked to return {asked}, and has {n:.0} still to return")
            }
        };
        all.push(evidence(&f::CLIENT_RECALLS.info, h.recalls, None, text));
    }
    all
}
