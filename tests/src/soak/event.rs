//! Events of the server and the agent between two rounds.

/// Action of an admin, a package or an accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// nfsd stops and starts.
    Restart,
    /// nfsd's module is replaced, for which the probe is detached from it.
    Reload,
    /// SIGHUP with other settings.
    Hangup,
    /// `kill -9` of the process that serves HTTP.
    Kill,
}

/// Rounds in which each event happens at least once.
pub const CYCLE: usize = 10;

impl Event {
    /// Event before round `n`. After a while no event kills `nfscope-http` any more: its growth then shows in one process.
    pub fn before(n: usize, kills: bool) -> Option<Event> {
        match n {
            0 => None,
            _ if n % 10 == 9 => Some(Event::Reload),
            _ if n % 10 == 4 => Some(Event::Restart),
            _ if n % 5 == 2 && kills => Some(Event::Kill),
            _ if n % 5 == 1 => Some(Event::Hangup),
            _ => None,
        }
    }

    /// Name of the event in the table.
    pub fn name(self) -> &'static str {
        match self {
            Event::Restart => "restart of nfsd",
            Event::Reload => "reload of the module",
            Event::Hangup => "SIGHUP",
            Event::Kill => "kill of nfscope-http",
        }
    }

    /// All events.
    pub const ALL: [Event; 4] = [Event::Restart, Event::Reload, Event::Hangup, Event::Kill];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_rounds_have_every_event_until_nobody_is_killed_any_more() {
        let of = |kills: bool| {
            (0..10)
                .filter_map(|n| Event::before(n, kills))
                .collect::<Vec<_>>()
        };
        for event in Event::ALL {
            assert!(of(true).contains(&event), "{event:?}");
            assert_eq!(of(false).contains(&event), event != Event::Kill);
        }
    }
}
