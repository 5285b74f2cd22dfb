//! What happens to the server and the agent between two rounds.

/// Something that an admin, a package or an accident does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// nfsd stops and starts.
    Restart,
    /// nfsd's module is replaced, for which the probe lets go of it.
    Reload,
    /// SIGHUP with other settings.
    Hangup,
    /// `kill -9` of the process that serves HTTP.
    Kill,
}

/// Rounds in which each of them happens.
pub const CYCLE: usize = 10;

impl Event {
    /// Before round `n`. After a while nothing kills what serves HTTP any more: one process then shows whether it grows.
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

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Event::Restart => "restart of nfsd",
            Event::Reload => "reload of the module",
            Event::Hangup => "SIGHUP",
            Event::Kill => "kill of nfscope-http",
        }
    }

    /// All of them.
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
