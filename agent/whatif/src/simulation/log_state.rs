//! State of the log: requests that wait for it, and commits under way.

/// State of the log.
pub(super) struct LogState {
    pub waiting: Vec<usize>,
    pub gathering: bool,
    /// Requests that each commit under way carries.
    pub carried: Vec<Vec<usize>>,
    pub began: Vec<f64>,
    pub is_written: Vec<bool>,
    /// True while a commit has no CPU yet: it will carry all requests that come until then.
    pub is_coming: bool,
    pub idle: Vec<usize>,
}

impl LogState {
    pub fn new(at_once: usize) -> LogState {
        LogState {
            waiting: Vec::new(),
            gathering: false,
            carried: vec![Vec::new(); at_once],
            began: vec![0.0; at_once],
            is_written: vec![false; at_once],
            is_coming: false,
            idle: (0..at_once).collect(),
        }
    }
}
