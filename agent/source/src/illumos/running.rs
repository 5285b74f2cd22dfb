//! A script that runs all the time: its process, its totals, and the parts that this host lacks.

use super::child::{Child, Reader};
use super::complaint::Complaint;
use super::frame::{Event, Parser};
use super::read::held::{self, Told};
use super::read::kernel::Kernel;
use super::runner::{Patience, Runner, Step};
use super::scripts::{OPTIONS, Parts, Script};
use super::tools::Tools;
use super::totals::Totals;
use crate::clock::monotonic_ns;
use std::time::Instant;

/// Frames that are held until they are taken.
const KEEP: usize = 4;
/// A script keeps a line for each thread that ever had an operation. With more threads it is restarted, as soon as no thread has an
/// operation in hand.
const MOST_THREADS: usize = 4096;

/// A script and its process.
pub struct Running {
    /// The script.
    pub script: &'static Script,
    /// The process of the script.
    pub runner: Runner<Event>,
    /// Totals of its frames.
    pub totals: Totals,
    /// Time of its last frame.
    pub at_ns: u64,
}

/// Reads the text of scripts. A frame's values are those of the moment at which `dtrace` prints it, and the agent reads it nearly at once.
impl Reader for Parser {
    type Value = Event;

    fn feed(&mut self, text: &[u8], done: &mut dyn FnMut(Event)) {
        let mut now = None;
        Parser::feed(self, text, &mut |mut event| {
            if let Event::Frame(frame) = &mut event {
                frame.at = *now.get_or_insert_with(monotonic_ns);
            }
            done(event);
        });
    }

    fn bad(&self) -> u64 {
        Parser::bad(self)
    }
}

/// Arguments with which `dtrace` reads a script from its standard input. If the script were an argument, `dtrace` would repeat the whole of
/// it in front of each message.
pub fn dtrace_arguments(more: &[&str]) -> Vec<String> {
    let options = OPTIONS.iter().chain(more).flat_map(|option| ["-x", option]);
    let all = options.chain(["-s", "/dev/stdin"]);
    all.map(str::to_owned).collect()
}

/// A `dtrace` that runs this text.
pub fn dtrace<R: Reader>(
    tools: &Tools,
    text: String,
    more: &[&str],
    reader: R,
    keep: usize,
) -> std::io::Result<Child<R::Value>> {
    let arguments = dtrace_arguments(more);
    Child::start(&tools.dtrace, &arguments, text, reader, keep)
}

impl Running {
    /// Makes a script without a process.
    pub fn new(script: &'static Script, patience: Patience) -> Running {
        Running {
            script,
            runner: Runner::new(patience),
            totals: Totals::default(),
            at_ns: 0,
        }
    }

    /// Does the work that is due, and takes the frames of the script.
    pub fn tick(&mut self, tools: &Tools, parts: &mut Parts, kernel: &mut Kernel) {
        let Running {
            script,
            runner,
            totals,
            at_ns,
        } = self;
        let times_operations = script.required;
        let text = || script.text(*parts, &std::process::id().to_string());
        let step = runner.tick(
            Instant::now(),
            || dtrace(tools, text(), &[], Parser::default(), KEEP),
            |event| match event {
                Event::Hello(_) if times_operations => kernel.began(monotonic_ns()),
                Event::Hello(_) | Event::Slow(_) => {}
                Event::Frame(frame) => {
                    *at_ns = (*at_ns).max(frame.at);
                    totals.add(&frame);
                }
            },
        );
        if step == Step::Ended {
            totals.restart();
            self.leave_out(parts);
        } else if held::threads(&self.totals) > MOST_THREADS && !held::any(&self.totals) {
            self.runner.renew();
            self.totals.restart();
        }
    }

    /// Totals of the script for threads, and the time of its last frame.
    pub fn told(&self) -> Told<'_> {
        Told {
            totals: &self.totals,
            at_ns: (self.runner.runs() && self.at_ns > 0).then_some(self.at_ns),
        }
    }

    /// Removes the parts from the script that this host lacks.
    fn leave_out(&mut self, parts: &mut Parts) {
        let Some(failure) = self.runner.failure() else {
            return;
        };
        use Complaint::{NoExports, NoMember, NoProbe};
        let lacks = matches!(failure.fault, Some(NoExports | NoMember | NoProbe));
        if lacks && parts.leave_out(&failure.why) {
            self.runner.hurry();
        }
    }
}
