//! Explanations of the keys and of the columns.

use crate::bar::legend;
use crate::spans::{Line, Tone};
use crate::terminal_style::TerminalStyle;
use nfscope_model::phase;

// Lines of these texts stay below 80 columns.
const KEYS: &[&str] = &[
    "  1 to 8, tab, left, right   select a panel",
    "  z                          on large screens: several panels, or this one alone",
    "  s, S                       next, previous order      r    reverse the order",
    "  t o p P m e n              order by time, ops/s, p50, p99, max, errors, name",
    "  v                          NFS version: all, 3, 4.0, 4.1, 4.2",
    "  /                          only names with this text; enter keeps, esc clears",
    "  space                      pause and resume       + -  longer, shorter windows",
    "  enter                      the chosen client or export alone; esc goes back",
    "  C E O V U F                break-down by client, export, operation, version,",
    "                             user, file, or not      N    paths of files",
    "  < >                        slow operations of a shorter, longer duration",
    "  M                          the mouse selects text, or panels, columns and rows",
    "  up, down, pgup, pgdn, home, end                      scroll",
    "  q, ctrl-c                  quit                      ctrl-z suspend",
    "  esc                        close what is open, end the filters, or quit",
];

const COLUMNS: &[&str] = &[
    "  P50, P99   within 9 % of the true value",
    "  MAX        upper edge of the highest bucket with a value: never below the",
    "             true maximum, at most 19 % above it",
    "  ERR/S      answers with a status other than OK",
    "  SHARE      part of the time of all operations, of all clients, all exports",
    "  BUSY %     part of the threads' time that they spent on requests",
    "  ALL BUSY   part of the window in which all threads were busy: requests wait",
    "  QUEUE P99  from a request's arrival on its socket until a thread picks it up;",
    "             for a disk, in the I/O scheduler's queue",
    "  RPC P99    from arrival until the reply is handed to the socket",
    "  RTT        shortest round trip of the client's TCP connection in five minutes",
    "  HISTORY    the column in order, one mark a window, the newest at the right;",
    "             the highest mark is the row's own maximum. On wide screens only",
    "  coverage   operations timed over operations that the kernel counted",
    "  -          not measured on this host, or nothing happened in this window",
];

const OP: &[&str] = &[
    "  cpu running on a CPU; runqueue ready to run, waiting for a CPU;",
    "  asleep until: log the journal or intent log is durable; disk block I/O outside",
    "  the log ends; throttle written data is stored; upcall a daemon answers;",
    "  recall a client gives a delegation back; reclaim memory is free;",
    "  lock other waits: locks, other threads, anything that is not named.",
    "  `no phases`: this agent does not split operations.",
];

const RPC: &[&str] = &[
    "  queue waiting for a thread; receive read and authenticate the call; upcall",
    "  wait for rpc.mountd meanwhile; execute run its operations; reply hand the",
    "  answer to the socket.",
];

/// Headings, and the lines below them.
pub(super) fn lines(style: TerminalStyle) -> Vec<(Line, Vec<Line>)> {
    let plain =
        |text: &[&str]| -> Vec<Line> { text.iter().map(|t| Line::of(Tone::Plain, *t)).collect() };
    let phases = |names: &[&str], text: &[&str]| {
        let mut all = Vec::new();
        for rare in [false, true] {
            let is_shown = |i: usize| phase::RARE.contains(&names[i]) == rare;
            let of = legend(names, is_shown, style);
            if !of.0.is_empty() {
                let mut line = Line::of(Tone::Plain, "  ");
                line.0.extend(of.0);
                all.push(line);
            }
        }
        all.extend(plain(text));
        all
    };
    let head = |text: &str| Line::of(Tone::Head, text);
    vec![
        (head("KEYS"), plain(KEYS)),
        (
            head("PHASES of an operation: where its time went"),
            phases(&phase::OF_OP, OP),
        ),
        (
            head("PHASES of a request: where its time went"),
            phases(&phase::OF_RPC, RPC),
        ),
        (head("COLUMNS"), plain(COLUMNS)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fits_eighty_columns() {
        let style = TerminalStyle {
            color: true,
            utf8: true,
        };
        for (head, below) in lines(style) {
            assert!(head.width() <= 80);
            for line in below {
                assert!(line.width() <= 80, "{line:?}");
            }
        }
    }
}
