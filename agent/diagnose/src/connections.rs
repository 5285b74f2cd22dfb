//! Connections of clients in a window: how many are open, how many may be, and how many the kernel closed because of that.

use crate::ratio::sum;
use nfscope_model::window_parts::numbers;
use nfscope_model::{Window, family as f};

/// Which connections the kernel's limit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// All of the server.
    All,
    /// Those whose client has not shown a valid file handle yet.
    Unproven,
}

/// Connections of clients. Numbers without a window are of its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Connections {
    /// Open, of every transport.
    pub open: f64,
    /// Which of them the limit is for.
    pub limited: Limited,
    /// So many of those are open.
    pub limited_open: f64,
    /// The limit.
    pub limit: f64,
    /// Accepted in the window.
    pub accepted: f64,
    /// Closed in the window because of the limit; `None` where nothing tells.
    pub closed_by_limit: Option<f64>,
    /// Packets of new connections that were dropped in the window, because no thread accepted those before them.
    pub drops: f64,
}

impl Connections {
    /// Those of a window; `None` where nothing tells.
    pub fn of(w: &Window) -> Option<Connections> {
        // With its sign, which is the kernel's mistake and has to be told.
        let counted = w.delta.numbers(&f::LIMITED_CONNECTIONS);
        let ([which], limited_open) = counted.into_iter().find(|(_, n)| n.is_finite())?;
        let limited = match which {
            "unproven" => Limited::Unproven,
            _ => Limited::All,
        };
        let mut closed = numbers(w, &f::CONNECTIONS_CLOSED)
            .filter(|([_, why], _)| *why == "limit")
            .map(|(_, n)| n)
            .peekable();
        Some(Connections {
            open: sum(numbers(w, &f::CONNECTIONS).map(|(_, n)| n)),
            limited,
            limited_open,
            limit: numbers(w, &f::CONNECTION_LIMIT).map(|(_, n)| n).next()?,
            accepted: sum(numbers(w, &f::CONNECTIONS_ACCEPTED).map(|(_, n)| n)),
            closed_by_limit: closed.peek().is_some().then(|| sum(closed)),
            drops: w.delta.value(&f::LISTENER_DROPS, []).unwrap_or(0.0),
        })
    }
}
