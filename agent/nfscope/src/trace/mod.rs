//! `nfscope trace`: the operations of a real load, recorded and replayed.

pub mod cli;
mod identity;
mod record;
mod replay;

use cli::TraceCommand;

/// Runs a part of the command.
///
/// # Errors
/// Errors of the part.
pub fn run(command: &TraceCommand) -> anyhow::Result<String> {
    match command {
        TraceCommand::Record(args) => record::run(args).map(|()| String::new()),
        TraceCommand::Replay(args) => replay::run(args),
    }
}
