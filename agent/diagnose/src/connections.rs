//! Connections of clients in a window: the open ones, their limit, and those that the kernel closed because of it.

use crate::ratio::sum;
use nfscope_model::window_parts::numbers;
use nfscope_model::{Window, family as f};

/// Connections that the kernel's limit applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// All connections of the server.
    All,
    /// Connections whose client has not shown a valid file handle yet.
    Unproven,
}

/// Connections of clients. Gauges are those of the window's end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Connections {
    /// Open connections of every transport.
    pub open: f64,
    /// Connections that the limit applies to.
    pub limited: Limited,
    /// Number of open connections that the limit applies to.
    pub limited_open: f64,
    /// Limit of the kernel.
    pub limit: f64,
    /// Connections accepted in the window.
    pub accepted: f64,
    /// Connections closed in the window because of the limit; `None` if they are not counted.
    pub closed_by_limit: Option<f64>,
    /// Packets of new connections that were dropped in the window, because no thread accepted those before them.
    pub drops: f64,
}

impl Connections {
    /// Connections of a window; `None` if they are not measured.
    pub fn of(w: &Window) -> Option<Connections> {
        // The number keeps its sign: a negative one is the kernel's mistake, and is a finding.
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
