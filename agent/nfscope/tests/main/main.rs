//! Tests of this crate from outside: commands, pages and the screen. They are one program, so that it is linked once. Tests that measure or
//! change their process are programs of their own.
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
mod trace_study;
mod undecided;
mod verdicts;
mod what_if;
mod workload;
