//! Draws the screen. Pure: state in, cells out.

use crate::app_state::{App, Extent, Hit, Link, Press};
use crate::bar::legend;
use crate::findings_panel;
use crate::help;
use crate::panel;
use crate::spans::{Line, Tone};
use crate::subject::{self, Subject, subjects};
use crate::tab::Tab;
use crate::table::{Key, Table};
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
/// Least width with room for bytes in the title.
const MOVED: u16 = 120;
/// Least size for several panels at once, and the blank columns between two of them.
const SEVERAL: (u16, u16) = (160, 50);
const BETWEEN: u16 = 2;

const FOOTER: &str =
    "q quit  ? help  tab panel  s sort  r reverse  v version  / filter  space pause";
const BY_FOOTER: &str =
    "q quit  ? help  tab panel  C E O V U F by what  s sort  / filter  space pause";
const SLOW_FOOTER: &str =
    "q quit  ? help  tab panel  < > duration  s sort  v version  / filter  space pause";
const CLIENTS_FOOTER: &str =
    "q quit  ? help  tab panel  up down choose  enter details  s sort  / filter";

/// Draws everything; returns the extent of the content.
pub fn draw(app: &App, terminal: TerminalStyle, area: Rect, buf: &mut Buffer) -> Extent {
    let mut page = Page {
        terminal,
        area,
        buf,
        hits: Vec::new(),
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
    if area.height >= TABS {
        page.tabs(used - 1, app.tab);
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
    let is_large = area.width >= SEVERAL.0 && area.height >= SEVERAL.1;
    let several = is_large && app.several && !app.help && app.subject.is_none();
    let tiles: Vec<_> = Tab::TILES
        .into_iter()
        .filter(|t| *t != app.tab)
        .take(4)
        .collect();
    let end = match several {
        // Two rows of tiles below the chosen panel.
        true => used + (bottom - used) * 2 / 5,
        false => bottom,
    };
    let body = Body::of(app, app.tab, terminal, usize::from(area.width));
    let mut extent = body.paint(app.scroll, &mut page, used..end);
    if several {
        let (width, height) = ((area.width - BETWEEN) / 2, (bottom - end) / 2);
        for (i, tab) in (0..).zip(tiles) {
            let x = area.x + (i % 2) * (width + BETWEEN);
            let y = area.y + end + (i / 2) * height;
            let tile = Rect::new(x, y, width, height);
            page.tile(app, tab, tile);
        }
    }
    extent.several = several;
    extent.hits = page.hits;
    extent
}

/// Buffer that lines are put into, and their style.
struct Page<'a> {
    terminal: TerminalStyle,
    area: Rect,
    buf: &'a mut Buffer,
    hits: Vec<Hit>,
}

impl Page<'_> {
    /// Cells of a line that the mouse can press.
    fn hit(&mut self, y: u16, x: usize, width: usize, press: Press) {
        let row = Rect::new(
            self.area.left().saturating_add(x as u16),
            self.area.top() + y,
            width as u16,
            1,
        );
        let area = row.intersection(self.area);
        self.hits.push(Hit { area, press });
    }

    fn tabs(&mut self, y: u16, chosen: Tab) {
        let mut x = 0;
        let line = tabs(chosen, usize::from(self.area.width));
        for (tab, (_, text)) in Tab::ALL.into_iter().zip(&line.0) {
            let width = text.chars().count();
            self.hit(y, x, width, Press::Panel(tab));
            x += width;
        }
    }

    /// A heading: each column's heading sorts.
    fn head(&mut self, y: u16, section: &Section) {
        let text: String = section.head.0.iter().map(|(_, t)| t.as_str()).collect();
        let mut from = 0;
        for (head, key) in &section.keys {
            // Columns that are left out have no heading.
            let Some(at) = text.get(from..).and_then(|rest| rest.find(head)) else {
                continue;
            };
            let x = text[..from + at].chars().count();
            from += at + head.len();
            self.hit(y, x, head.chars().count() + 1, Press::Sort(*key));
        }
        self.line(y, section.head.clone());
    }

    /// A panel beside the chosen one, below its name. A press anywhere else in it chooses it.
    fn tile(&mut self, app: &App, tab: Tab, area: Rect) {
        let mut tile = Page {
            terminal: self.terminal,
            area,
            buf: self.buf,
            hits: Vec::new(),
        };
        let name = format!(" {} {} ", tab.number(), tab.names().0);
        tile.line(1, Line::of(Tone::Strong, name));
        let body = Body::of(app, tab, tile.terminal, usize::from(area.width));
        body.paint(0, &mut tile, 2..area.height);
        self.hits.extend(tile.hits);
        let press = Press::Panel(tab);
        self.hits.push(Hit { area, press });
    }

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
        Some(view) => {
            let mut title = panel::title(view);
            if let Some(moved) = panel::moved(view).filter(|_| area.width >= MOVED) {
                title.push(Tone::Plain, format!("   {moved}"));
            }
            title
        }
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
        let more = format!("press {}", Tab::Findings.number());
        out.extend(app.view().and_then(|v| panel::findings(v, &more)));
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
        for tab in Tab::ALL {
            let (full, short) = tab.names();
            let tone = if tab == chosen {
                Tone::Chosen
            } else {
                Tone::Dim
            };
            line.push(
                tone,
                format!(" {} {} ", tab.number(), if long { full } else { short }),
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
        None if app.tab == Tab::Slow => Line::of(Tone::Dim, SLOW_FOOTER),
        None if app.tab == Tab::By => Line::of(Tone::Dim, BY_FOOTER),
        None if app.tab == Tab::Clients => Line::of(Tone::Dim, CLIENTS_FOOTER),
        None => Line::of(Tone::Dim, FOOTER),
    }
}

/// Phases of the bars in this panel.
fn names(app: &App) -> Option<&'static [&'static str]> {
    let view = app.view()?;
    match app.tab {
        Tab::Operations | Tab::Slow if view.ops.iter().any(|o| o.phases.is_some()) => {
            Some(&phase::OF_OP[..])
        }
        Tab::Threads if view.rpc.iter().any(|r| r.phases.is_some()) => Some(&phase::OF_RPC[..]),
        _ => None,
    }
}

/// A heading, and the lines below it.
#[derive(Default)]
struct Section {
    head: Line,
    lines: Vec<Line>,
    /// Headings of columns in the heading, and their sort keys.
    keys: Vec<(&'static str, Key)>,
    /// Clients or exports of the lines, where the mouse can choose them.
    subjects: Vec<Subject>,
}

impl From<(Line, Vec<Line>)> for Section {
    fn from((head, lines): (Line, Vec<Line>)) -> Section {
        Section {
            head,
            lines,
            ..Section::default()
        }
    }
}

/// Sections, and the number of the line with the mark.
struct Body(Vec<Section>, Option<usize>);

/// Highlights the marked row; returns the number of its line.
fn mark(app: &App, view: &View, sections: &mut [Section], width: usize) -> Option<usize> {
    let marked = app.marked()?;
    let mut above = 0;
    let mut found = None;
    for (section, rows) in sections.iter_mut().zip(subjects(view, &app.selection)) {
        if let Some(i) = rows.iter().position(|row| *row == marked)
            && let Some(line) = section.lines.get_mut(i)
        {
            let text: String = line.0.iter().map(|(_, text)| text.as_str()).collect();
            *line = Line::of(Tone::Chosen, format!("{text:width$}"));
            found.get_or_insert(above + i);
        }
        section.subjects = rows;
        // A blank and the next heading follow a table.
        above += section.lines.len() + 2;
    }
    found
}

/// Kind of a line of a body.
#[derive(Clone, Copy, PartialEq)]
enum Row {
    Blank,
    Head,
    /// Line of a section with this number.
    Line(usize),
}

impl Body {
    fn of(app: &App, tab: Tab, terminal: TerminalStyle, width: usize) -> Body {
        let plain = |all: Vec<(Line, Vec<Line>)>| all.into_iter().map(Section::from).collect();
        if app.help {
            return Body(plain(help::lines(terminal)), None);
        }
        let Some(view) = app.view() else {
            return Body(Vec::new(), None);
        };
        let order = Some(&app.selection);
        let section = |t: &Table| Section {
            keys: t.keys(),
            ..t.lines(width, order, terminal).into()
        };
        match tab {
            Tab::By => {
                let notes = (app.breakdown.title(), app.breakdown.notes());
                let table = section(&app.breakdown.table(&app.selection));
                return Body(vec![table, notes.into()], None);
            }
            Tab::Slow => {
                let table = section(&app.slow.table(&app.selection));
                return Body(vec![table, app.slow.notes().into()], None);
            }
            Tab::Findings => {
                let all = findings_panel::sections(view, app.findings(), width);
                return Body(plain(all), None);
            }
            _ => {}
        }
        let mut tables = match &app.subject {
            Some(subject) => subject::tables(subject, view, app.sample(), &app.selection),
            None => panel::tables(tab, view, &app.selection),
        };
        tables.iter_mut().for_each(|t| app.fill_history(t));
        if let Some(counted) = app.counted() {
            // History is kept for the whole server only, so this table comes without it.
            let counted = subject::counted(counted, &app.selection);
            tables.insert(tables.len().min(2), counted);
        }
        let mut out: Vec<Section> = tables.iter().map(section).collect();
        if tab == Tab::Probes {
            let mut lines = panel::probes(view).into_iter();
            out.extend(lines.next().map(|head| (head, lines.collect()).into()));
        }
        if let Some(subject) = &app.subject {
            let (counted, sample) = (app.counted(), app.sample());
            out.push(subject::notes(subject, counted, sample, &view.host).into());
        }
        let marked = match tab == app.tab {
            true => mark(app, view, &mut out, width),
            false => None,
        };
        Body(out, marked)
    }

    /// Paints the lines from `scroll` on. The heading above the first visible line stays on top of it.
    fn paint(self, scroll: usize, page: &mut Page, rows: std::ops::Range<u16>) -> Extent {
        let mut lines = Vec::new();
        for (i, section) in self.0.iter().enumerate() {
            if i > 0 {
                lines.push((i - 1, Line::default(), Row::Blank));
                lines.push((i, section.head.clone(), Row::Head));
            }
            let below = section.lines.iter().enumerate();
            lines.extend(below.map(|(n, l)| (i, l.clone(), Row::Line(n))));
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
            ..Extent::default()
        };
        let Some((section, _, first)) = lines.get(from) else {
            return extent;
        };
        page.head(rows.start, &self.0[*section]);
        let skip = from + usize::from(*first == Row::Head);
        for (y, (i, line, row)) in (rows.start + 1..rows.end).zip(lines.drain(..).skip(skip)) {
            let section = &self.0[i];
            match row {
                Row::Head => page.head(y, section),
                Row::Blank => {}
                Row::Line(n) => {
                    if let Some(subject) = section.subjects.get(n) {
                        let width = usize::from(page.area.width);
                        page.hit(y, 0, width, Press::Row(subject.clone()));
                    }
                    page.line(y, line);
                }
            }
        }
        extent
    }
}
