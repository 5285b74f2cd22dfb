//! The rows in which all CPUs count for a client and an export: each addition takes their cache line from other CPUs.
#![allow(clippy::unwrap_used)]

use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use nfscope_probes::types::{session_row, table_shape};

const WRITES: u32 = 100;

/// The driver of the probe's own programs (bench/drive.bpf.c).
fn driver() -> Object {
    let mut open = ObjectBuilder::default();
    let open = open.name("nfsd").unwrap();
    let mut open = open.open_memory(nfscope_probes::NFSD_DRIVE).unwrap();
    for mut program in open.progs_mut() {
        let driver = program.name() == "nfsd_drive";
        program.set_autoload(driver);
    }
    // The verifier takes the least time with the settings for one CPU, and with waits by the scheduler's books.
    let shape = table_shape {
        pools: 1,
        client_rows: 1,
        alone: 1,
        books: 1,
        ..Default::default()
    };
    // SAFETY: a structure of integers of one size, without padding.
    let shape =
        unsafe { std::slice::from_raw_parts((&raw const shape).cast::<u8>(), size_of_val(&shape)) };
    let rodata = open.maps_mut().find(|m| m.name() == ".rodata.nfsd_shape");
    rodata.unwrap().set_initial_value(shape).unwrap();
    open.load().unwrap()
}

/// Sends stable WRITEs of a client of its own.
fn writes(driver: &Object, client: u32) {
    let mut context = [0; 16];
    context[0] = 1;
    context[4..8].copy_from_slice(&client.to_ne_bytes());
    context[8..12].copy_from_slice(&WRITES.to_ne_bytes());
    let input = ProgramInput {
        context_in: Some(&mut context),
        ..Default::default()
    };
    let run = || {
        let program = driver.progs_mut().find(|p| p.name() == "nfsd_drive");
        program.unwrap().test_run(input).unwrap().return_value
    };
    // The probe recognises nfsd's threads by their name.
    let thread = std::thread::Builder::new().name("nfsd".into());
    let returned = std::thread::scope(|s| thread.spawn_scoped(s, run).unwrap().join().unwrap());
    assert_eq!(returned, 0);
}

/// Bytes of a row.
fn row(driver: &Object, row: usize) -> Vec<u8> {
    let rows = driver.maps().find(|m| m.name() == ".bss.nfsd_rows");
    let all = rows.unwrap().lookup(&[0; 4], MapFlags::ANY);
    let bytes = size_of::<session_row>();
    all.unwrap().unwrap()[row * bytes..][..bytes].to_vec()
}

#[test]
fn requests_without_a_row_write_none_that_all_of_them_share() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: session rows: this process may not load programs");
        return;
    }
    let driver = driver();
    writes(&driver, 0);
    assert!(row(&driver, 0).iter().all(|b| *b == 0));
    let free = driver.maps().find(|m| m.name() == "nfsd_free_rows");
    let free = free.unwrap();
    free.update(&[], &1u32.to_ne_bytes(), MapFlags::ANY)
        .unwrap();
    writes(&driver, 1);
    let counted = row(&driver, 1);
    let stable = std::mem::offset_of!(session_row, stable);
    assert_eq!(counted[stable..][..8], u64::from(WRITES).to_ne_bytes());
    assert!(row(&driver, 0).iter().all(|b| *b == 0));
}
