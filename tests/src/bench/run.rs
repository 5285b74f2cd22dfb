//! `lab bench`, from the first measurement to the tables.

use std::path::Path;

use anyhow::Result;

use super::agent::{OwnAgent, Scraped, Started};
use super::options::Options;
use super::results::Results;
use super::table::Out;
use super::{features, long_recording, possible_cpus, report, resources, rounds};
use crate::{machine, paths};

/// Measures, and prints tables.
pub fn run(options: &Options) -> Result<()> {
    let program = paths::nfscope_program()?;
    let mut results = Results {
        binary: std::fs::metadata(&program)?.len(),
        measured: Vec::new(),
        per_program: Vec::new(),
        native: None,
        days: None,
        inside: None,
        maps: 0,
        sized: Vec::new(),
    };
    if options.reading {
        for possible in possible_cpus::SIZES {
            eprintln!("bench: {possible} possible CPUs");
            results.sized.push(possible_cpus::measure(possible)?);
        }
        let mut out = Out::new(options.markdown);
        resources::resources(&mut out, &results);
        print!("{}", out.text);
        return Ok(());
    }
    if options.features {
        let mut out = Out::new(options.markdown);
        features::show(&mut out, options, &rounds::features(options)?);
        print!("{}", out.text);
        return Ok(());
    }
    if !options.quick {
        if !options.agent {
            results.days = Some(long_recording::days(&program)?);
        }
        match native(&program) {
            Ok(native) => results.native = Some(native),
            Err(e) => eprintln!("bench: not measured on this host itself: {e:#}"),
        }
    }
    if options.agent {
        rounds::resources(options, &mut results)?;
        let mut out = Out::new(options.markdown);
        resources::resources(&mut out, &results);
        print!("{}", out.text);
        return Ok(());
    }
    rounds::run(options, &mut results)?;
    print!("{}", report::render(options, &results));
    Ok(())
}

fn native(program: &Path) -> Result<(Started, Scraped)> {
    // The first start reads the program from the disk.
    let (agent, _) = OwnAgent::start(program, machine::free_port(None)?)?;
    agent.stop()?;
    let (agent, started) = OwnAgent::start(program, machine::free_port(None)?)?;
    let scraped = agent.scrape()?;
    agent.stop()?;
    Ok((started, scraped))
}
