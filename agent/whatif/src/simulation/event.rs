//! Events, ordered by time.

/// An event, with its request, task or write of the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Event {
    Ask(usize),
    Burst(usize),
    Slept(usize),
    Disk(usize),
    Logged(usize),
    Gathered,
    Written(usize),
}

/// Time of an event, its number among events of the same time, and the event.
#[derive(Debug, Clone, Copy)]
pub(super) struct At(pub f64, pub u64, pub Event);

impl PartialEq for At {
    fn eq(&self, o: &At) -> bool {
        self.cmp(o).is_eq()
    }
}
impl Eq for At {}
impl PartialOrd for At {
    fn partial_cmp(&self, o: &At) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for At {
    fn cmp(&self, o: &At) -> std::cmp::Ordering {
        self.0.total_cmp(&o.0).then(self.1.cmp(&o.1))
    }
}
