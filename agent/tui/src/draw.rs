//! Draws the screen. Pure: state in, cells out.

use crate::app_state::{App, Extent, Link};
use crate::bar::legend;
use crate::help;
use crate::panel;
use crate::spans::{Line, Tone};
use crate::subject::{self, subjects};
use crate::tab::Tab;
use crate::terminal_style::TerminalStyle;
use crate::view::View;
use nfscope_model::phase;
use nfscope_text::units::seconds;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// Smallest screen that has room for a table.
const SMALLEST: (u16, u16) = (24, 5);
/// Least heights with room for the tabs, for a warning and for the legend.
const TABS: u16 = 8;
const WARNING: u16 = 12;
const LEGEND: u16 = 14;

const FOOTER: &str =
    "q quit  ? help  tab panel  s sort  r reverse  v version  / filter  space pause";
const BY_FOOTER: &str =
    "q quit  ? help  tab panel  C E O V U F by what  s sort  / filter  space pause";
const CLIENTS_FOOTER: &str =
    "q quit  ? help  tab panel  up down choose  enter details  s sort  / filter";

/// Draws everything; returns the extent of the content.
pub fn draw(app: &App, terminal: TerminalStyle, area: Rect, buf: &mut Buffer) -> Extent {
    let mut page = Page {
        terminal,
        area,
        buf,
    };
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("too small: {}x{} needed", SMALLEST.0, SMALLEST.1);
        page.line(0, Line::of(Tone::Plain, text));
        return Extent::default();
    }
    let top = top(app, area);
    let used = top.len() as u16;
    for (y, line) in (0..).zip(top) {
        page.line(y, line);
    }
    let last = area.height - 1;
    page.line(last, footer(app));
    let with_legend = area.height >= LEGEND && !app.help;
    let bottom = match names(app).filter(|_| with_legend) {
        Some(names) => {
            let shown = |i: usize| match (app.tab, app.view()) {
                (Tab::Threads, Some(view)) => view.has_rpc_phase(i),
                (_, Some(view)) => view.has_phase(i),
                (_, None) => true,
            };
            page.line(last - 1, legend(names, shown, terminal));
            last - 1
        }
        None => last,
    };
    let body = Body::of(app, terminal, usize::from(area.width));
    body.paint(app.scroll, &mut page, used..bottom)
}

/// Buffer that lines are put into, and their style.
struct Page<'a> {
    terminal: TerminalStyle,
    area: Rect,
    buf: &'a mut Buffer,
}

impl Page<'_> {
    fn line(&mut self, y: u16, line: Line) {
        let (left, right) = (self.area.left(), self.area.right());
        if y >= self.area.height {
            return;
        }
        let mut x = left;
        for (tone, text) in line.cut(usize::from(self.area.width)).0 {
            let text = self.terminal.show(&text);
            let room = usize::from(right.saturating_sub(x));
            let style = cell_style(tone, self.terminal);
            (x, _) = self
                .buf
                .set_stringn(x, self.area.top() + y, text, room, style);
        }
    }
}

fn cell_style(tone: Tone, terminal: TerminalStyle) -> Style {
    let mut style = Style::new();
    let (bold, dim, reverse) = tone.weight();
    for (on, modifier) in [
        (bold, Modifier::BOLD),
        (dim, Modifier::DIM),
        (reverse, Modifier::REVERSED),
    ] {
        if on {
            style = style.add_modifier(modifier);
        }
    }
    if terminal.color {
        let (letters, ground) = tone.colors();
        style.fg = letters.map(Color::Indexed);
        style.bg = ground.map(Color::Indexed);
    }
    style
}

/// Lines above the table.
fn top(app: &App, area: Rect) -> Vec<Line> {
    let width = usize::from(area.width);
    let title = match app.view() {
        Some(view) => panel::title(view),
        None => Line::of(Tone::Strong, "nfscope"),
    };
    let state = state(app, title.width(), width);
    let mut out = vec![aside(title, state, width)];
    out.push(match (&app.link, app.view()) {
        (Link::Gone { why, since }, _) => {
            let text = format!(
                "no answer from the agent for {} s, trying again: {why}",
                since.as_secs()
            );
            Line::of(Tone::Alarm, text)
        }
        (Link::Attaching, _) => Line::of(Tone::Warning, "the agent is attaching its probes"),
        (_, Some(view)) => panel::threads(view),
        (_, None) => Line::of(Tone::Dim, "collecting the first window"),
    });
    let warning = app.view().and_then(panel::warning);
    if area.height >= WARNING || app.view().is_some_and(|v| !v.timed) {
        out.extend(warning);
    }
    if area.height >= WARNING {
        out.extend(app.view().and_then(panel::server_state));
        out.extend(app.view().and_then(panel::findings));
    }
    if area.height >= TABS {
        out.push(aside(tabs(app.tab, width), filters(app), width));
    }
    out
}

/// State beside a title of this width, on a screen of `width`.
fn state(app: &App, title: usize, width: usize) -> Line {
    match &app.link {
        Link::Gone { .. } => Line::of(Tone::Alarm, "AGENT GONE"),
        _ if app.paused() => Line::of(Tone::Chosen, " PAUSED "),
        _ => {
            let every = format!("every {}", seconds(app.interval.as_secs_f64()));
            let fits = title + 3 + every.len() <= width;
            Line::of(Tone::Dim, if fits { every } else { String::new() })
        }
    }
}

fn filters(app: &App) -> Line {
    let s = &app.selection;
    let mut set = Vec::new();
    set.extend(s.version.as_ref().map(|v| format!("v{v}")));
    if !s.text.is_empty() {
        set.push(format!("/{}", s.text));
    }
    Line::of(Tone::Warning, set.join(" "))
}

fn tabs(chosen: Tab, width: usize) -> Line {
    let line = |long: bool| {
        let mut line = Line::default();
        for (i, tab) in Tab::ALL.into_iter().enumerate() {
            let (full, short) = tab.names();
            let tone = if tab == chosen {
                Tone::Chosen
            } else {
                Tone::Dim
            };
            line.push(
                tone,
                format!(" {} {} ", i + 1, if long { full } else { short }),
            );
        }
        line
    };
    // The filters stand beside the tabs, so the long names need room to spare.
    let long = line(true);
    if long.width() + 4 <= width {
        long
    } else {
        line(false)
    }
}

/// `line`, with `right` at the right margin. Where both do not fit, `line` is cut, because `right` has the news.
fn aside(line: Line, right: Line, width: usize) -> Line {
    let room = width.saturating_sub(right.width());
    if right.width() == 0 {
        return line;
    }
    let mut line = line.cut(room.saturating_sub(1));
    let gap = room.saturating_sub(line.width());
    line.push(Tone::Plain, " ".repeat(gap));
    line.0.extend(right.0);
    line
}

fn footer(app: &App) -> Line {
    match &app.typing {
        Some(text) => {
            let mut line = Line::of(Tone::Strong, format!("/{text}"));
            line.push(Tone::Chosen, " ");
            line.push(Tone::Dim, "  enter keeps the filter, esc clears it");
            line
        }
        None if app.subject.is_some() => Line::of(
            Tone::Dim,
            "esc, enter back  up down scroll  + - interval  space pause",
        ),
        None if app.help => Line::of(Tone::Dim, "? closes  up down pgup pgdn scroll"),
        None if app.tab == Tab::By => Line::of(Tone::Dim, BY_FOOTER),
        None if app.tab == Tab::Clients => Line::of(Tone::Dim, CLIENTS_FOOTER),
        None => Line::of(Tone::Dim, FOOTER),
    }
}

/// Phases of the bars in this panel.
fn names(app: &App) -> Option<&'static [&'static str]> {
    let view = app.view()?;
    match app.tab {
        Tab::Operations if view.ops.iter().any(|o| o.phases.is_some()) => Some(&phase::OF_OP[..]),
        Tab::Threads if view.rpc.iter().any(|r| r.phases.is_some()) => Some(&phase::OF_RPC[..]),
        _ => None,
    }
}

/// Headings with the lines below them, and the number of the line with the mark.
struct Body(Vec<(Line, Vec<Line>)>, Option<usize>);

/// Highlights the marked row; returns the number of its line.
fn mark(app: &App, view: &View, sections: &mut [(Line, Vec<Line>)], width: usize) -> Option<usize> {
    let marked = app.marked()?;
    let mut above = 0;
    for ((_, lines), rows) in sections.iter_mut().zip(subjects(view, &app.selection)) {
        if let Some(i) = rows.iter().position(|row| *row == marked) {
            let line = lines.get_mut(i)?;
            let text: String = line.0.iter().map(|(_, text)| text.as_str()).collect();
            *line = Line::of(Tone::Chosen, format!("{text:width$}"));
            return Some(above + i);
        }
        // A blank and the next heading follow a table.
        above += lines.len() + 2;
    }
    None
}

impl Body {
    fn of(app: &App, terminal: TerminalStyle, width: usize) -> Body {
        if app.help {
            return Body(help::lines(terminal), None);
        }
        let Some(view) = app.view() else {
            return Body(Vec::new(), None);
        };
        if app.tab == Tab::By {
            let table = app.breakdown.table(&app.selection);
            let table = table.lines(width, Some(&app.selection), terminal);
            let notes = (app.breakdown.title(), app.breakdown.notes());
            return Body(vec![table, notes], None);
        }
        let mut tables = match &app.subject {
            Some(subject) => subject::tables(subject, view, app.sample(), &app.selection),
            None => panel::tables(app.tab, view, &app.selection),
        };
        tables.iter_mut().for_each(|t| app.fill_history(t));
        if let Some(counted) = app.counted() {
            // History is kept for the whole server only, so this table comes without it.
            let counted = subject::counted(counted, &app.selection);
            tables.insert(tables.len().min(2), counted);
        }
        let order = Some(&app.selection);
        let mut out: Vec<_> = tables
            .iter()
            .map(|t| t.lines(width, order, terminal))
            .collect();
        if app.tab == Tab::Probes {
            let mut lines = panel::probes(view).into_iter();
            out.extend(lines.next().map(|head| (head, lines.collect())));
        }
        if let Some(subject) = &app.subject {
            let (counted, sample) = (app.counted(), app.sample());
            out.push(subject::notes(subject, counted, sample, &view.host));
        }
        let marked = mark(app, view, &mut out, width);
        Body(out, marked)
    }

    /// Paints the lines from `scroll` on. The heading above the first visible line stays on top of it.
    fn paint(self, scroll: usize, page: &mut Page, rows: std::ops::Range<u16>) -> Extent {
        let mut lines = Vec::new();
        for (section, (head, below)) in self.0.iter().enumerate() {
            if section > 0 {
                lines.push((section - 1, Line::default()));
                lines.push((section, head.clone()));
            }
            lines.extend(below.iter().map(|l| (section, l.clone())));
        }
        let room = usize::from(rows.len() as u16).saturating_sub(1);
        let mut from = scroll.min(lines.len().saturating_sub(room));
        if let Some(marked) = self.1 {
            from = from.min(marked).max((marked + 1).saturating_sub(room));
        }
        let extent = Extent {
            lines: lines.len(),
            page: room,
            scroll: from,
        };
        let Some((section, first)) = lines.get(from) else {
            return extent;
        };
        let head = &self.0[*section].0;
        page.line(rows.start, head.clone());
        let skip = from + usize::from(first == head);
        for (y, (_, line)) in (rows.start + 1..rows.end).zip(lines.drain(..).skip(skip)) {
            page.line(y, line);
        }
        extent
    }
}
