//! What the user has chosen and what is known of the agent. Pure: keys and news in, state out.

use crate::tui::table::{Key, Selection};
use crate::tui::view::View;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;

/// One panel of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// Procedures and component operations.
    Operations,
    /// Thread pools, requests.
    Threads,
    /// Journals, block devices.
    Disks,
    /// Clients, exports.
    Clients,
    /// Coverage, what was lost, what does not run.
    Probes,
}

impl Tab {
    /// From left to right.
    pub const ALL: [Tab; 5] = [
        Tab::Operations,
        Tab::Threads,
        Tab::Disks,
        Tab::Clients,
        Tab::Probes,
    ];

    /// In full, and where there is little room.
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Tab::Operations => ("Operations", "Ops"),
            Tab::Threads => ("Threads, RPC", "Threads"),
            Tab::Disks => ("Logs, disks", "Disks"),
            Tab::Clients => ("Clients, exports", "Clients"),
            Tab::Probes => ("Probes", "Probes"),
        }
    }

    fn step(self, by: usize) -> Tab {
        let i = Tab::ALL.iter().position(|t| *t == self).unwrap_or(0);
        Tab::ALL[(i + by) % Tab::ALL.len()]
    }
}

/// How it stands with the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Link {
    /// The first window has begun.
    Begun,
    /// It answers, and has no clock yet.
    Attaching,
    /// Windows come.
    Live,
    /// It does not answer.
    Gone {
        /// As an error tells it.
        why: String,
        /// Since when.
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
    /// The explanations are shown.
    pub help: bool,
    /// Lines above the screen, of the panel or of the explanations.
    pub scroll: usize,
    /// How it stands with the agent.
    pub link: Link,
    shown: Option<View>,
    /// While paused: the latest, to go on with.
    held: Option<Option<View>>,
    extent: Extent,
}

/// How much there was to show at last, and how much of it fits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// All lines.
    pub lines: usize,
    /// Lines on the screen.
    pub page: usize,
}

/// What a key asks of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// To go on.
    None,
    /// To end.
    Quit,
    /// To stop until the shell continues it.
    Suspend,
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
            shown: None,
            held: None,
            extent: Extent::default(),
        }
    }
}

impl App {
    /// The window on the screen.
    pub fn view(&self) -> Option<&View> {
        self.shown.as_ref()
    }

    /// True while windows pass unseen.
    pub fn paused(&self) -> bool {
        self.held.is_some()
    }

    /// Takes a new window; paused, it is kept for later.
    pub fn take(&mut self, view: View) {
        self.link = Link::Live;
        match &mut self.held {
            Some(held) => *held = Some(view),
            None => self.shown = Some(view),
        }
    }

    /// Remembers what was drawn: nobody can scroll past the end of it.
    pub fn fit(&mut self, extent: Extent) {
        self.extent = extent;
        self.scroll = self.scroll.min(extent.lines.saturating_sub(extent.page));
    }

    /// Takes a key.
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
        if self.scrolled(key.code) {
            return Action::None;
        }
        match key.code {
            KeyCode::Char('?' | 'h') => self.turn_help(!self.help),
            KeyCode::Esc | KeyCode::Char('q') if self.help => self.turn_help(false),
            KeyCode::Esc | KeyCode::Char('q') => return Action::Quit,
            _ if self.help => {}
            KeyCode::Char('/') => self.typing = Some(self.selection.text.clone()),
            KeyCode::Char(' ') => self.pause(),
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

    /// Rows follow every letter.
    fn typed(&mut self, text: String) -> Action {
        self.selection.text.clone_from(&text);
        self.typing = Some(text);
        self.scroll = 0;
        Action::None
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
        self.tab = tab;
        self.scroll = 0;
    }

    fn sort_by(&mut self, key: Key) {
        self.selection.key = key;
        self.selection.reverse = false;
        self.scroll = 0;
    }

    fn pause(&mut self) {
        match self.held.take() {
            Some(latest) => self.shown = latest.or(self.shown.take()),
            None => self.held = Some(None),
        }
    }

    /// All, then each version; `4`, which tells no minor version, only where there is such a row.
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

fn step(key: Key, by: usize) -> Key {
    let i = Key::ALL.iter().position(|k| *k == key).unwrap_or(0);
    Key::ALL[(i + by) % Key::ALL.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(app: &mut App, keys: &str) -> Action {
        let press = |c| app.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        keys.chars().map(press).last().unwrap()
    }

    fn code(app: &mut App, code: KeyCode) -> Action {
        app.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn letters_are_text_while_a_filter_is_typed() {
        let mut app = App::default();
        assert_eq!(press(&mut app, "/qx"), Action::None);
        assert_eq!(app.selection.text, "qx");
        code(&mut app, KeyCode::Backspace);
        code(&mut app, KeyCode::Enter);
        assert_eq!((app.selection.text.as_str(), &app.typing), ("q", &None));
        press(&mut app, "/a");
        assert_eq!(code(&mut app, KeyCode::Esc), Action::None);
        assert_eq!((app.selection.text.as_str(), &app.typing), ("", &None));
        assert_eq!(code(&mut app, KeyCode::Esc), Action::Quit);
    }

    #[test]
    fn versions_come_round() {
        let mut app = App::default();
        let mut seen = Vec::new();
        for _ in 0..5 {
            press(&mut app, "v");
            seen.push(app.selection.version.clone().unwrap_or("all".into()));
        }
        assert_eq!(seen, ["3", "4.0", "4.1", "4.2", "all"]);
    }

    #[test]
    fn help_takes_the_keys_that_would_change_what_is_behind_it() {
        let mut app = App::default();
        press(&mut app, "?n3");
        assert_eq!((app.help, app.tab), (true, Tab::Operations));
        assert_eq!(app.selection, Selection::default());
        assert_eq!(press(&mut app, "q"), Action::None);
        assert!(!app.help);
        assert_eq!(press(&mut app, "q"), Action::Quit);
    }

    #[test]
    fn a_pause_ends_with_the_latest_window() {
        let of = |seconds| View {
            window_seconds: seconds,
            ..View::default()
        };
        let mut app = App::default();
        app.take(of(1.0));
        press(&mut app, " ");
        app.take(of(2.0));
        app.take(of(3.0));
        assert_eq!(app.view().unwrap().window_seconds, 1.0);
        press(&mut app, " ");
        assert_eq!(app.view().unwrap().window_seconds, 3.0);
        press(&mut app, "  ");
        assert_eq!(app.view().unwrap().window_seconds, 3.0);
    }

    #[test]
    fn scrolling_ends_at_the_last_page() {
        let mut app = App::default();
        app.fit(Extent {
            lines: 30,
            page: 10,
        });
        code(&mut app, KeyCode::PageDown);
        assert_eq!(app.scroll, 9);
        code(&mut app, KeyCode::End);
        code(&mut app, KeyCode::Down);
        assert_eq!(app.scroll, 20);
        app.fit(Extent {
            lines: 12,
            page: 10,
        });
        assert_eq!(app.scroll, 2);
        press(&mut app, "2");
        assert_eq!((app.tab, app.scroll), (Tab::Threads, 0));
    }

    #[test]
    fn sorting_steps_and_jumps() {
        let mut app = App::default();
        press(&mut app, "sr");
        assert_eq!(
            (app.selection.key, app.selection.reverse),
            (Key::Rate, true)
        );
        press(&mut app, "e");
        assert_eq!(
            (app.selection.key, app.selection.reverse),
            (Key::Errors, false)
        );
        press(&mut app, "tS");
        assert_eq!(app.selection.key, Key::Name);
    }
}
