//! A thread of the kernel, as procfs shows it.

use std::io;

use crate::host_table;

/// State of a thread for the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The thread runs, or waits for a CPU.
    Running,
    /// The thread sleeps.
    Asleep,
    /// The thread waits for work (TASK_IDLE, which nfsd's threads use from 6.6 on).
    Idle,
}

/// State of an nfsd thread; `None` if no nfsd thread has this id.
pub fn state(thread: u32) -> Option<State> {
    parse(&host_table::read_at(
        "/proc/TID/stat",
        format!("/proc/{thread}/stat"),
    )?)
}

pub(crate) fn parse(stat: &str) -> Option<State> {
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    if !name.starts_with("nfsd") {
        return None;
    }
    Some(match rest.trim_start().chars().next()? {
        'R' => State::Running,
        'I' => State::Idle,
        _ => State::Asleep,
    })
}

/// Functions in which a thread sleeps, the innermost first; empty without the right to read them, and while it runs.
pub fn kernel_stack(thread: u32) -> Vec<String> {
    let frames = kernel_frames(thread).unwrap_or_default();
    let function = |frame: String| frame.split(' ').next().map(str::to_owned);
    frames.into_iter().filter_map(function).collect()
}

/// Functions in which a thread sleeps, each with its module if it is in one: `nfsd_read [nfsd]`.
///
/// # Errors
/// Fails without the right to read the functions, and if there is no such thread.
pub fn kernel_frames(thread: u32) -> io::Result<Vec<String>> {
    let text = host_table::try_read_at("/proc/TID/stack", format!("/proc/{thread}/stack"))?;
    Ok(frames(&text))
}

/// Lines of `[<0>] io_schedule+0x46/0x80` or `[<0>] nfsd_read+0x1a/0x30 [nfsd]`.
pub(crate) fn frames(stack: &str) -> Vec<String> {
    let frame = |line: &str| {
        let rest = line.split_once("] ")?.1;
        let function = rest.split(['+', ' ']).next()?;
        Some(match rest.split_once(" [") {
            Some((_, module)) => format!("{function} [{module}"),
            None => function.to_owned(),
        })
    };
    stack.lines().filter_map(frame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_state() {
        assert_eq!(parse("812 (nfsd) D 2 0 0 0 -1"), Some(State::Asleep));
        assert_eq!(parse("812 (nfsd) R 2 0 0 0 -1"), Some(State::Running));
        assert_eq!(parse("812 (nfsd) I 2 0 0 0 -1"), Some(State::Idle));
        assert_eq!(parse("812 (a) b) D 2"), None);
        assert_eq!(parse(""), None);
        assert_eq!(state(0), None);
    }

    #[test]
    fn a_stack_is_its_functions() {
        let text = "[<0>] io_schedule+0x46/0x80\n[<0>] folio_wait_bit_common+0x13d/0x350\n\
                    [<0>] nfsd_read+0x1a/0x30 [nfsd]\n";
        assert_eq!(
            frames(text),
            ["io_schedule", "folio_wait_bit_common", "nfsd_read [nfsd]"]
        );
        assert_eq!(kernel_stack(0), [""; 0]);
        assert!(kernel_frames(0).is_err());
    }
}
