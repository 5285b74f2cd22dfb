//! One request at a time of a client.

/// Step of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    Outside,
    Receive,
    FirstCpu,
    Sleep,
    Disk,
    Log,
    LastCpu,
    Reply,
}

/// A slot of a client for one request at a time.
pub(super) struct Stream {
    pub group: usize,
    pub class: usize,
    pub pool: usize,
    pub thread: usize,
    pub step: Step,
    pub disk_left: u32,
    pub log_left: u32,
    pub cpu: f64,
    pub due: f64,
    pub arrived: f64,
    pub began: f64,
    pub waits_since: f64,
    /// Begin of a log wait that has ended while the thread has no CPU yet.
    pub logged_since: Option<f64>,
}

impl Stream {
    pub fn new(group: usize, due: f64) -> Stream {
        Stream {
            group,
            class: 0,
            pool: 0,
            thread: 0,
            step: Step::Outside,
            disk_left: 0,
            log_left: 0,
            cpu: 0.0,
            due,
            arrived: 0.0,
            began: 0.0,
            waits_since: 0.0,
            logged_since: None,
        }
    }
}
