//! The panels.

/// A panel of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// Procedures and component operations.
    Operations,
    /// Thread pools, requests.
    Threads,
    /// Journals, block devices.
    Disks,
    /// Clients, exports.
    Clients,
    /// A break-down by the user's query.
    By,
    /// Coverage, lost events, programs that do not run.
    Probes,
    /// Findings with their evidence, and changes with a predicted gain.
    Findings,
    /// Single slow operations as they end.
    Slow,
}

impl Tab {
    /// Panels from left to right.
    pub const ALL: [Tab; 8] = [
        Tab::Operations,
        Tab::Threads,
        Tab::Disks,
        Tab::Clients,
        Tab::Probes,
        Tab::By,
        Tab::Findings,
        Tab::Slow,
    ];

    /// Panels that a large screen shows beside the chosen one. The others cost the server something, or are rarely wanted.
    pub(super) const TILES: [Tab; 5] = [
        Tab::Operations,
        Tab::Clients,
        Tab::Findings,
        Tab::Disks,
        Tab::Threads,
    ];

    /// Number of the panel, from 1 on: its key.
    pub(super) fn number(self) -> usize {
        Tab::ALL
            .iter()
            .position(|t| *t == self)
            .map_or(0, |i| i + 1)
    }

    /// Name in full, and a short one for narrow screens.
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Tab::Operations => ("Operations", "Ops"),
            Tab::Threads => ("Threads, RPC", "Threads"),
            Tab::Disks => ("Logs, disks", "Disks"),
            Tab::Clients => ("Clients, exports", "Clients"),
            Tab::By => ("Break-down", "By"),
            Tab::Probes => ("Probes", "Probes"),
            Tab::Findings => ("Findings", "Found"),
            Tab::Slow => ("Slow", "Slow"),
        }
    }

    pub(super) fn step(self, by: usize) -> Tab {
        let i = Tab::ALL.iter().position(|t| *t == self).unwrap_or(0);
        Tab::ALL[(i + by) % Tab::ALL.len()]
    }
}
