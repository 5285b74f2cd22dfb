//! Everything of this crate that is tested from outside: the commands, the pages, the screen. One program, so that it is linked
//! once; what measures this process or changes it has programs of its own.
#![allow(missing_docs, clippy::unwrap_used)]

mod agreement;
#[cfg(target_os = "linux")]
mod attach;
mod baseline;
mod baseline_size;
mod baseline_store;
mod campaigns;
mod capacity;
mod cli;
mod commands_doc;
mod comparable;
mod compare;
mod comparison;
mod control;
mod days;
mod demo;
mod diagnose;
mod diagnose_cli;
mod docs;
mod doctor_doc;
#[cfg(target_os = "linux")]
mod dtrace;
mod episodes;
mod experiment;
mod experiment_run;
mod exposition;
#[path = "../fixture/mod.rs"]
#[allow(dead_code)]
mod fixture;
mod host_readers;
mod layers;
mod mcp;
mod mix;
mod outages;
mod past;
mod picture;
mod primary;
mod proof;
mod screen;
mod secure;
mod signed;
mod slow_cli;
mod stream;
mod stuck_cli;
mod table;
mod terminal;
mod undecided;
mod verdicts;
mod what_if;
mod workload;
