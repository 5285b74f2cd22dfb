//! The screen of `nfscope top`: windows as tables and bars in a terminal, or as plain text.

mod app_state;
mod bar;
mod draw;
pub mod event_loop;
mod help;
mod panel;
mod plain;
mod spans;
mod table;
mod table_columns;
pub mod terminal;
pub mod terminal_style;
mod view;

pub use app_state::{Action, App, Extent, Link, Tab};
pub use draw::draw;
pub use plain::plain;
pub use table::{Key, Selection};
pub use terminal_style::TerminalStyle;
pub use view::{Change, Client, Disk, Export, Found, Log, Lost, Op, Phases, Pool, Rpc, View};
