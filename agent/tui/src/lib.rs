//! The screen of `nfscope top`: windows as tables and bars in a terminal, or as plain text.

#![forbid(unsafe_code)]

mod app_state;
mod bar;
mod breakdown;
mod draw;
pub mod event_loop;
mod findings_panel;
mod help;
mod history;
mod panel;
mod plain;
mod slow_panel;
mod spans;
mod sparkline;
mod subject;
mod tab;
mod table;
mod table_columns;
pub mod terminal;
pub mod terminal_style;
mod view;

pub use app_state::{Action, App, Extent, Hit, Link, Press};
pub use breakdown::Breakdown;
pub use draw::draw;
pub use findings_panel::FindingsReport;
pub use plain::plain;
pub use slow_panel::SlowOps;
pub use subject::Subject;
pub use tab::Tab;
pub use table::{Key, Selection, WIDE};
pub use terminal_style::TerminalStyle;
pub use view::{
    Change, Client, Disk, Export, Found, Log, Lost, Op, Phases, Pool, Rpc, Sample, SampledOp, View,
};
