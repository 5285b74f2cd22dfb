//! Sentences about clients that do not take their replies.

use crate::rules::evidence::bytes;
use nfscope_model::Unacknowledged;
use nfscope_text::units::{seconds, times};

/// Returns true if TCP has noticed by now that the client takes no data.
pub fn is_late(c: &Unacknowledged) -> bool {
    c.retransmissions > 0.0 || c.zero_window_bytes > 0.0
}

/// Description of the client in a sentence, after its address.
pub fn described(c: &Unacknowledged) -> String {
    let again = match c.retransmissions {
        0.0 => String::new(),
        n => format!("; TCP has sent the oldest {} again", times(n)),
    };
    let window = match c.zero_window_bytes {
        0.0 => "",
        _ => "; the client announces that it takes no more for now (a TCP window of zero)",
    };
    format!(
        "{} of replies to {} have not been acknowledged for at least {}{again}{window}",
        bytes(c.bytes),
        c.client,
        seconds(c.seconds)
    )
}
