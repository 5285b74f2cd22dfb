//! Reasons why there is no prediction.

use std::fmt;

/// Least number of requests of a window for a prediction.
pub(crate) const MIN_REQUESTS: u64 = 100;

/// Reason why there is no prediction, and what to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// Requests of a window that has too few of them.
    TooFew(f64),
    /// Requests without a time of arrival.
    NoClock,
    /// Operations are not split.
    NoPhases,
    /// No threads.
    NoThreads,
    /// No CPU time.
    NoCpus,
    /// Name of a figure that no server has.
    Implausible(&'static str),
    /// Part of execution that is spent in other sleeps, and the phase with most of it.
    Sleeps(f64, &'static str),
    /// Part of the disks' bytes that other programs read or wrote.
    ForeignDisk(f64),
    /// Part of the threads' time that goes into receiving and replying.
    Network(f64),
    /// Part of the log time that belongs to other logs.
    ManyLogs(f64),
    /// Measured and simulated requests per second, measured and simulated residence.
    NotReproduced([f64; 2], [f64; 2]),
    /// Name of the part that the change is about and that the requests do not use.
    NotUsed(&'static str),
    /// The log that has no device of its own, and cannot have one.
    NoLogDevice(String),
    /// The log that lies on the disks that are to change, among several.
    SharedDisks(String),
    /// Name of the part that the change is about and that is not measured.
    NotMeasured(&'static str),
    /// There are no WRITEs, whose size is to change.
    NoWrites,
    /// Least and most requests per second and time in the server, if everything costs by byte or by request.
    WriteSize([f64; 2], [f64; 2]),
    /// Nothing is to change.
    NoChange,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: &f64| format!("{:.0} %", part * 100.0);
        match self {
            Refusal::TooFew(n) => write!(
                f,
                "only {n} requests were measured, and a model needs {}; fix: measure for longer, under load",
                MIN_REQUESTS
            ),
            Refusal::NoClock => f.write_str(
                "more than a tenth of the requests came over UDP or RDMA, and nothing tells when they arrived",
            ),
            Refusal::NoPhases => f.write_str(
                "operations are not split into phases; fix: `nfscope check` says why",
            ),
            Refusal::NoThreads => f.write_str("no nfsd threads were measured; fix: `nfscope check` says why"),
            Refusal::NoCpus => f.write_str("the CPUs' time was not measured; fix: `nfscope check` says why"),
            Refusal::Implausible(what) => write!(
                f,
                "the measured {what} is beyond what the model takes for a server; fix: measure for longer"
            ),
            Refusal::Sleeps(part, most) => write!(
                f,
                "{} of execution time is spent asleep outside of disks and logs, most of it in the phase `{most}`; how that \
                 time changes is not known",
                percent(part)
            ),
            Refusal::ForeignDisk(part) => write!(
                f,
                "{} of the bytes that the exports' disks read and wrote were other programs'; how these go on is not \
                 known; fix: measure while they rest",
                percent(part)
            ),
            Refusal::Network(part) => write!(
                f,
                "{} of the threads' time goes into receiving requests and sending replies; how clients and network \
                 change is not known",
                percent(part)
            ),
            Refusal::ManyLogs(part) => write!(
                f,
                "{} of log waits are for a second log, and the model has one; fix: measure while one export is busy",
                percent(part)
            ),
            Refusal::NotReproduced([rate, model_rate], [residence, model_residence]) => write!(
                f,
                "the model does not reproduce the server: {rate:.0} requests per second and {:.2} ms were measured, \
                 {model_rate:.0} and {:.2} ms simulated",
                residence * 1e3,
                model_residence * 1e3
            ),
            Refusal::NotUsed(what) => write!(f, "no request waited for the {what}: another one would change nothing"),
            Refusal::NoLogDevice(log) => write!(
                f,
                "the log of {log} lies on the data device, and this file system has no separate one; fix: give --disk, which changes both"
            ),
            Refusal::SharedDisks(log) => write!(
                f,
                "the log of {log} lies on the disks of the exports, and nothing tells on which of them: how much of its time is theirs is \
                 not known; fix: measure while one export is busy"
            ),
            Refusal::NotMeasured(what) => write!(f, "the time of the {what}'s device was not measured; fix: `nfscope check` says why"),
            Refusal::NoWrites => f.write_str("no WRITE was measured, and its size is to change"),
            Refusal::WriteSize([few, many], [short, long]) => write!(
                f,
                "{few:.0} to {many:.0} requests per second of {:.2} to {:.2} ms are possible: one recording does not tell what \
                 a WRITE costs by request from what it costs by byte; fix: measure with WRITEs of the other size",
                short * 1e3,
                long * 1e3
            ),
            Refusal::NoChange => f.write_str("nothing is to change; fix: give --threads, --log, --disk, --cpus, --clients or --write-size"),
        }
    }
}

impl std::error::Error for Refusal {}
