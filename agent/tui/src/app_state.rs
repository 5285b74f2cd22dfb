//! State of the screen: the user's choices, and the state of the agent. Pure: keys and news in, state out.

use crate::breakdown::Breakdown;
use crate::findings_panel::FindingsReport;
use crate::history::History;
use crate::slow_panel::SlowOps;
use crate::subject::{self, Subject, subjects};
use crate::tab::Tab;
use crate::table::{Key, Selection, Table};
use crate::view::{Sample, View};
use nfscope_api::breakdown_line::Line;
use nfscope_api::breakdown_query::{self, Query};
use nfscope_api::slow_line;
use nfscope_model::{Dimension, SlowFilter};
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::{Position, Rect};
use std::net::IpAddr;
use std::time::Duration;

/// Window lengths through which `+` and `-` step, in milliseconds.
const INTERVALS: [u64; 9] = [
    500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000,
];
/// Lines for each step of the mouse's wheel.
const WHEEL: usize = 3;

/// State of the connection to the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Link {
    /// The first window has begun.
    Begun,
    /// The agent answers, and has no clock yet.
    Attaching,
    /// Windows arrive.
    Live,
    /// The agent does not answer.
    Gone {
        /// Text of the error.
        why: String,
        /// Time since the first failure.
        since: Duration,
    },
}

/// Everything that the screen depends on but its size and its colours.
#[derive(Debug)]
pub struct App {
    /// Panel shown.
    pub tab: Tab,
    /// Rows shown, and their order.
    pub selection: Selection,
    /// The filter's text while it is being typed.
    pub typing: Option<String>,
    /// True while the explanations are shown.
    pub help: bool,
    /// Lines scrolled above the screen, of the panel or of the explanations.
    pub scroll: usize,
    /// State of the connection to the agent.
    pub link: Link,
    /// Length of a window.
    pub interval: Duration,
    /// Client or export with the mark in the panel of clients.
    pub chosen: Option<Subject>,
    /// Client or export that is shown by itself.
    pub subject: Option<Subject>,
    /// Query and rows of the break-down panel.
    pub breakdown: Breakdown,
    /// Filter and rows of the panel of slow operations.
    pub slow: SlowOps,
    /// True while a large screen may show several panels at once.
    pub several: bool,
    /// True while the program gets the mouse; false while the terminal selects text with it.
    pub mouse: bool,
    /// The agent's findings, or the reason why there are none.
    findings: Option<Result<FindingsReport, String>>,
    /// Every operation of the client or export that is shown by itself, if a filter can select them.
    counted: Option<Breakdown>,
    shown: Option<View>,
    /// Latest window while paused, to continue with; `None` while not paused.
    held: Option<Option<View>>,
    history: History,
    sample: Option<Sample>,
    /// Windows that have passed unseen while paused.
    unseen: usize,
    extent: Extent,
}

/// Effect of a press of the mouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Press {
    /// Shows a panel.
    Panel(Tab),
    /// Sorts by a key, or reverses its order.
    Sort(Key),
    /// Moves the mark to a client or export, or shows the marked one by itself.
    Row(Subject),
}

/// Cells that the mouse can press.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Cells of the screen.
    pub area: Rect,
    /// Effect.
    pub press: Press,
}

/// Length of the content that was drawn last, and the part of it that fits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extent {
    /// Lines of the content.
    pub lines: usize,
    /// Lines on the screen.
    pub page: usize,
    /// Lines scrolled above the screen.
    pub scroll: usize,
    /// True if several panels are on the screen.
    pub several: bool,
    /// Cells that the mouse can press; where two overlap, the first one counts.
    pub hits: Vec<Hit>,
}

/// Action of the program after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Continue.
    None,
    /// End.
    Quit,
    /// Stop until the shell continues the program.
    Suspend,
    /// Use this window length from now on.
    Interval(Duration),
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
}

impl Default for App {
    fn default() -> Self {
        App {
            tab: Tab::Operations,
            selection: Selection::default(),
            typing: None,
            help: false,
            scroll: 0,
            link: Link::Begun,
            interval: Duration::from_secs(2),
            chosen: None,
            subject: None,
            breakdown: Breakdown::new(usual_query()),
            slow: SlowOps::default(),
            several: true,
            mouse: true,
            findings: None,
            counted: None,
            shown: None,
            held: None,
            history: History::default(),
            sample: None,
            unseen: 0,
            extent: Extent::default(),
        }
    }
}

impl App {
    /// Window on the screen.
    pub fn view(&self) -> Option<&View> {
        self.shown.as_ref()
    }

    /// Returns true while windows pass unseen.
    pub fn paused(&self) -> bool {
        self.held.is_some()
    }

    /// Takes a new window. While paused it is kept for later.
    pub fn take(&mut self, view: View) {
        self.link = Link::Live;
        self.history.push(&view);
        match &mut self.held {
            Some(held) => {
                *held = Some(view);
                self.unseen += 1;
            }
            None => self.shown = Some(view),
        }
    }

    /// Takes a new state of the connection. No window spans it, so history begins anew.
    pub fn news(&mut self, link: Link) {
        self.link = link;
        self.history.clear();
        self.unseen = 0;
    }

    /// Gives the rows of a table their values in the windows before.
    pub(super) fn fill_history(&self, table: &mut Table) {
        self.history.fill(table, self.selection.key, self.unseen);
    }

    /// Address of the client that is shown by itself, whose operations are to be sampled.
    pub fn wants_sample(&self) -> Option<IpAddr> {
        let shown = self.subject.as_ref().filter(|_| !self.paused());
        shown.and_then(Subject::address)
    }

    /// Query of the break-down that is wanted now.
    pub fn wants_breakdown(&self) -> Option<&Query> {
        let shown = match &self.counted {
            None if self.tab != Tab::By => return None,
            None => &self.breakdown,
            Some(counted) => counted,
        };
        (!self.paused()).then_some(&shown.query)
    }

    /// Filter of the slow operations that are wanted now.
    pub fn wants_slow(&self) -> Option<&SlowFilter> {
        let shown = self.tab == Tab::Slow && !self.paused();
        shown.then_some(&self.slow.filter)
    }

    /// Takes a line of the wanted slow operations, or the error in place of it. `called` names a client.
    pub fn take_slow(
        &mut self,
        told: anyhow::Result<slow_line::Line>,
        called: impl Fn(&str) -> Option<String>,
    ) {
        self.slow.take(told, called);
    }

    /// Returns true while the agent's findings are on the screen.
    pub fn wants_findings(&self) -> bool {
        (self.tab == Tab::Findings || self.extent.several) && !self.paused()
    }

    /// Takes the agent's findings, or the reason why there are none.
    pub fn take_findings(&mut self, told: Result<FindingsReport, String>) {
        self.findings = Some(told);
    }

    /// The agent's findings; `None` before the first answer.
    pub(super) fn findings(&self) -> Option<&Result<FindingsReport, String>> {
        self.findings.as_ref()
    }

    /// Takes a line of the wanted break-down, or the error in place of it.
    pub fn take_breakdown(&mut self, told: anyhow::Result<Line>) {
        match &mut self.counted {
            Some(counted) => counted.take(told),
            None => self.breakdown.take(told),
        }
    }

    /// Every operation of the client or export that is shown by itself.
    pub(super) fn counted(&self) -> Option<&Breakdown> {
        self.counted.as_ref()
    }

    /// Sets the window length, and the intervals of break-downs as near to it as their limits allow.
    pub fn set_interval(&mut self, length: Duration) {
        self.interval = length;
        let all = [Some(&mut self.breakdown), self.counted.as_mut()];
        all.into_iter().flatten().for_each(|b| b.every(length));
    }

    /// Takes the sample of a client, if that client is still shown.
    pub fn take_sample(&mut self, sample: Sample) {
        if self.wants_sample() == Some(sample.client) {
            self.sample = Some(sample);
        }
    }

    /// Sample of the client that is shown by itself.
    pub(super) fn sample(&self) -> Option<&Sample> {
        let shown = self.subject.as_ref().and_then(Subject::address);
        self.sample.as_ref().filter(|s| Some(s.client) == shown)
    }

    /// Client or export with the mark, where the panel shows one.
    pub(super) fn marked(&self) -> Option<Subject> {
        if self.tab != Tab::Clients || self.help || self.subject.is_some() {
            return None;
        }
        let all: Vec<_> = subjects(self.view()?, &self.selection).concat();
        subject::step(&all, self.chosen.as_ref(), 0)
    }

    /// Remembers the extent of what was drawn, so that scrolling stops at its end.
    pub fn fit(&mut self, extent: Extent) {
        self.scroll = extent.scroll.min(extent.lines.saturating_sub(extent.page));
        self.extent = extent;
    }

    /// Handles an event of the mouse: its wheel scrolls, its left button presses what is drawn there.
    pub fn mouse(&mut self, event: MouseEvent) {
        let wheel = match event.kind {
            MouseEventKind::ScrollUp => KeyCode::Up,
            MouseEventKind::ScrollDown => KeyCode::Down,
            MouseEventKind::Down(MouseButton::Left) => {
                let at = Position::new(event.column, event.row);
                let hit = self.extent.hits.iter().find(|h| h.area.contains(at));
                if let Some(press) = hit.map(|h| h.press.clone()) {
                    self.press(press);
                }
                return;
            }
            _ => return,
        };
        for _ in 0..WHEEL {
            let _ = self.moved(wheel) || self.scrolled(wheel);
        }
    }

    fn press(&mut self, press: Press) {
        match press {
            Press::Panel(tab) => self.turn(tab),
            Press::Sort(key) if self.selection.key == key => {
                self.selection.reverse = !self.selection.reverse;
            }
            Press::Sort(key) => self.sort_by(key),
            Press::Row(subject) if self.marked().as_ref() == Some(&subject) => {
                self.show(Some(subject));
            }
            Press::Row(subject) => self.chosen = Some(subject),
        }
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Action::Quit,
                KeyCode::Char('z') => Action::Suspend,
                KeyCode::Char('u') if self.typing.is_some() => self.typed(String::new()),
                _ => Action::None,
            };
        }
        if let Some(text) = self.typing.take() {
            return self.edit(text, key.code);
        }
        if self.moved(key.code) || self.scrolled(key.code) {
            return Action::None;
        }
        if let KeyCode::Char(c) = key.code
            && !self.help
            && match self.tab {
                Tab::By => self.breakdown.turn(c),
                Tab::Slow => self.slow.turn(c),
                _ => false,
            }
        {
            self.scroll = 0;
            return Action::None;
        }
        match key.code {
            KeyCode::Char('?' | 'h') => self.turn_help(!self.help),
            KeyCode::Esc | KeyCode::Char('q') if self.help => self.turn_help(false),
            KeyCode::Esc | KeyCode::Char('q') if self.subject.is_some() => self.show(None),
            KeyCode::Esc if self.is_filtered() => self.show_all(),
            KeyCode::Esc | KeyCode::Char('q') => return Action::Quit,
            _ if self.help => {}
            KeyCode::Char('+' | '=') => return self.interval(true),
            KeyCode::Char('-') => return self.interval(false),
            KeyCode::Enter if self.subject.is_some() => self.show(None),
            KeyCode::Enter => self.show(self.marked()),
            KeyCode::Char('/') => self.typing = Some(self.selection.text.clone()),
            KeyCode::Char(' ') => self.pause(),
            KeyCode::Char('z') => self.several = !self.several,
            KeyCode::Char('M') => {
                self.mouse = !self.mouse;
                return Action::Mouse(self.mouse);
            }
            KeyCode::Char('r') => self.selection.reverse = !self.selection.reverse,
            KeyCode::Char('v') => self.next_version(),
            KeyCode::Char('s') => self.sort_by(step(self.selection.key, 1)),
            KeyCode::Char('S') => self.sort_by(step(self.selection.key, Key::ALL.len() - 1)),
            KeyCode::Char('t') => self.sort_by(Key::Time),
            KeyCode::Char('o') => self.sort_by(Key::Rate),
            KeyCode::Char('p') => self.sort_by(Key::P50),
            KeyCode::Char('P') => self.sort_by(Key::P99),
            KeyCode::Char('m') => self.sort_by(Key::Max),
            KeyCode::Char('e') => self.sort_by(Key::Errors),
            KeyCode::Char('n') => self.sort_by(Key::Name),
            KeyCode::Tab | KeyCode::Right => self.turn(self.tab.step(1)),
            KeyCode::BackTab | KeyCode::Left => self.turn(self.tab.step(Tab::ALL.len() - 1)),
            KeyCode::Char(c) => {
                let i = c.to_digit(10).and_then(|n| (n as usize).checked_sub(1));
                if let Some(tab) = i.and_then(|i| Tab::ALL.get(i)) {
                    self.turn(*tab);
                }
            }
            _ => {}
        }
        Action::None
    }

    fn edit(&mut self, mut text: String, code: KeyCode) -> Action {
        match code {
            KeyCode::Enter => return Action::None,
            KeyCode::Esc => {
                self.selection.text.clear();
                return Action::None;
            }
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(c) => text.push(c),
            _ => {}
        }
        self.typed(text)
    }

    /// Sets the filter's text: rows follow every letter.
    fn typed(&mut self, text: String) -> Action {
        self.selection.text.clone_from(&text);
        self.typing = Some(text);
        self.scroll = 0;
        Action::None
    }

    fn is_filtered(&self) -> bool {
        let by = self.tab == Tab::By && !self.breakdown.query.filters.is_empty();
        by || !self.selection.text.is_empty() || self.selection.version.is_some()
    }

    fn show_all(&mut self) {
        self.selection.text.clear();
        self.selection.version = None;
        if self.tab == Tab::By {
            self.breakdown.show_all();
        }
        self.scroll = 0;
    }

    fn show(&mut self, subject: Option<Subject>) {
        if subject.is_some() {
            self.chosen.clone_from(&subject);
        }
        let query = subject.as_ref().and_then(|s| s.query(self.interval));
        self.counted = query.map(Breakdown::new);
        self.subject = subject;
        self.scroll = 0;
    }

    /// Steps to the next window length, if there is one.
    fn interval(&mut self, longer: bool) -> Action {
        let all = INTERVALS.map(Duration::from_millis);
        let next = match longer {
            true => all.into_iter().find(|i| *i > self.interval),
            false => all.into_iter().rev().find(|i| *i < self.interval),
        };
        let Some(next) = next else {
            return Action::None;
        };
        self.set_interval(next);
        Action::Interval(next)
    }

    /// Moves the mark in the panel of clients; the screen follows it.
    fn moved(&mut self, code: KeyCode) -> bool {
        let Some(marked) = self.marked() else {
            return false;
        };
        let page = self.extent.page.saturating_sub(1).max(1).cast_signed();
        let by = match code {
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::PageUp => -page,
            KeyCode::PageDown => page,
            KeyCode::Home | KeyCode::Char('g') => isize::MIN,
            KeyCode::End | KeyCode::Char('G') => isize::MAX,
            _ => return false,
        };
        let all = self.view().map(|v| subjects(v, &self.selection).concat());
        self.chosen = subject::step(&all.unwrap_or_default(), Some(&marked), by);
        true
    }

    fn scrolled(&mut self, code: KeyCode) -> bool {
        let last = self.extent.lines.saturating_sub(self.extent.page);
        let page = self.extent.page.saturating_sub(1).max(1);
        self.scroll = match code {
            KeyCode::Up | KeyCode::Char('k') => self.scroll.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll + 1,
            KeyCode::PageUp => self.scroll.saturating_sub(page),
            KeyCode::PageDown => self.scroll + page,
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => return false,
        }
        .min(last);
        true
    }

    fn turn_help(&mut self, on: bool) {
        self.help = on;
        self.scroll = 0;
    }

    fn turn(&mut self, tab: Tab) {
        self.help = false;
        self.tab = tab;
        self.show(None);
    }

    fn sort_by(&mut self, key: Key) {
        self.selection.key = key;
        self.selection.reverse = false;
        self.scroll = 0;
    }

    fn pause(&mut self) {
        self.unseen = 0;
        match self.held.take() {
            Some(latest) => self.shown = latest.or(self.shown.take()),
            None => self.held = Some(None),
        }
    }

    /// Steps through all versions, then each one. `4` stands for an unknown minor version, and is offered only where there is such a row.
    fn next_version(&mut self) {
        let has_4 = |v: &View| v.ops.iter().any(|o| o.version == "4");
        let bare = self.shown.as_ref().is_some_and(has_4).then_some("4");
        let mut order = ["3", "4.0", "4.1", "4.2"].into_iter().chain(bare);
        self.selection.version = match self.selection.version.as_deref() {
            None => order.next(),
            Some(now) => order.skip_while(|v| *v != now).nth(1),
        }
        .map(str::to_owned);
        self.scroll = 0;
    }
}

/// Default query of the break-down panel.
fn usual_query() -> Query {
    Query {
        by: vec![Dimension::Client, Dimension::Op],
        filters: Vec::new(),
        paths: false,
        interval: breakdown_query::INTERVAL,
        rows: breakdown_query::ROWS,
    }
}

fn step(key: Key, by: usize) -> Key {
    let i = Key::ALL.iter().position(|k| *k == key).unwrap_or(0);
    Key::ALL[(i + by) % Key::ALL.len()]
}

#[cfg(test)]
#[path = "app_state_tests.rs"]
mod tests;
