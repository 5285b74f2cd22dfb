//! The store's file: exported, imported, foreign, damaged, in use, and on a full disk.

use crate::fixture::recorder::{Place, agent, good, record, refused, show, signal, wait};
use crate::fixture::said;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names of what lies in a place, in order.
fn files(place: &Place) -> Vec<String> {
    let dir = fs::read_dir(&place.0).unwrap();
    let names = dir.map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// One recording in a store.
fn recorded(place: &Place) -> PathBuf {
    let store = place.store();
    let done = record(&store, agent(), &["one", "--for", "2s"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", said(&done).2);
    store
}

#[test]
fn an_export_is_one_file_that_another_store_takes() {
    let place = Place::new("export");
    let store = recorded(&place);
    let file = place.0.join("one.nfscope");
    let path = file.to_str().unwrap();
    good(&store, &["export", "one", path]);
    let bytes = fs::read(&file).unwrap();
    assert!(refused(&store, &["export", "one", path]).contains("--force"));
    good(&store, &["export", "one", path, "--force"]);
    assert_eq!(files(&place), ["made", "one.nfscope"]);
    // Not even by another name.
    let dots = place.0.join("made/../made/baselines.db");
    let err = refused(
        &store,
        &["export", "one", dots.to_str().unwrap(), "--force"],
    );
    assert!(err.contains("is the store itself"), "{err}");
    let other = place.0.join("other.db");
    fs::write(&file, &bytes).unwrap();
    good(&other, &["import", path]);
    good(&other, &["import", path, "--as", "two"]);
    assert!(refused(&other, &["import", path]).contains("there is a baseline `one` already"));
    assert_eq!(
        fs::read(&file).unwrap(),
        bytes,
        "an import changed its source"
    );
    let recording = |store: &Path, name: &str| {
        nfscope_baseline::store::Store::open(store)
            .unwrap()
            .recording(name)
            .unwrap()
    };
    let (mut one, two) = (recording(&store, "one"), recording(&other, "two"));
    assert_eq!(one, recording(&other, "one"));
    one.metadata.name = "two".to_owned();
    assert_eq!(one, two);
    // A store as such is taken whole.
    let third = place.0.join("third.db");
    good(&third, &["import", other.to_str().unwrap()]);
    assert_eq!(recording(&third, "two"), two);
    assert!(
        refused(&third, &["import", other.to_str().unwrap(), "--as", "x"]).contains("2 baselines")
    );
}

#[test]
fn a_store_in_use_is_taken_with_its_latest_windows() {
    let (place, agent) = (Place::new("in-use"), agent());
    let store = place.store();
    let mut c = record(&store, agent, &["now"]);
    let child = c.stderr(Stdio::piped()).spawn().unwrap();
    wait(&store, "now", 3);
    let other = place.0.join("other.db");
    good(&other, &["import", store.to_str().unwrap()]);
    assert!(show(&other, "now")["windows"].as_u64() >= Some(3));
    signal(&child, libc::SIGTERM);
    let (code, _, err) = said(&child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{err}");
}

#[test]
fn files_that_are_no_stores_are_refused_with_the_reason() {
    let place = Place::new("foreign");
    let store = recorded(&place);
    let file = place.0.join("file");
    let path = file.to_str().unwrap();
    let both = |why: &str| {
        for err in [
            refused(&store, &["import", path]),
            refused(&file, &["list"]),
        ] {
            assert!(err.contains(why), "{err}");
        }
    };
    fs::write(&file, "not a store, however long it may be".repeat(100)).unwrap();
    both("not an SQLite file");
    fs::remove_file(&file).unwrap();
    let db = rusqlite::Connection::open(&file).unwrap();
    db.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(db);
    both("of another program");
    let (code, _, err) = said(&record(&file, agent(), &["a"]).output().unwrap());
    assert!(code == 1 && err.contains("of another program"), "{err}");
    good(&store, &["export", "one", path, "--force"]);
    let db = rusqlite::Connection::open(&file).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    both("later nfscope (schema 99");
    // Bits that fall over, behind the schema.
    good(&store, &["export", "one", path, "--force"]);
    let mut bytes = fs::read(&file).unwrap();
    for b in &mut bytes[3 * 16_384..] {
        *b ^= 0x55;
    }
    fs::write(&file, &bytes).unwrap();
    let err = refused(&store, &["import", path]);
    assert!(err.contains("is damaged"), "{err}");
    // The data of a window alone, which no page check sees.
    good(&store, &["export", "one", path, "--force"]);
    let db = rusqlite::Connection::open(&file).unwrap();
    db.execute_batch("UPDATE \"window\" SET data = x'0102' WHERE seq = 0")
        .unwrap();
    drop(db);
    let err = refused(&store, &["import", path]);
    assert!(err.contains("a window cannot be decoded"), "{err}");
    assert!(refused(&store, &["import", "/no/such/file"]).contains("/no/such/file"));
    let missing = refused(&place.0.join("none.db"), &["list"]);
    assert!(
        missing.contains("nfscope baseline record NAME"),
        "{missing}"
    );
    assert_eq!(files(&place), ["file", "made"]);
}

/// A small disk; `None` where this process may not mount one.
struct Disk(Place);

impl Disk {
    fn new() -> Option<Disk> {
        let place = Place::new("disk");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(&place.0)
            .output();
        mount.is_ok_and(|o| o.status.success()).then(|| Disk(place))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0.0).status();
    }
}

#[test]
fn a_full_disk_ends_a_recording_that_stays_readable() {
    let Some(disk) = Disk::new() else {
        println!("SKIPPED: a full disk: this process may not mount a small one");
        return;
    };
    let store = disk.0.0.join("baselines.db");
    let (code, _, err) = said(&record(&store, agent(), &["full"]).output().unwrap());
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains("the disk is full") && err.contains("free some space"),
        "{err}"
    );
    let windows = show(&store, "full")["windows"].as_u64().unwrap();
    assert!(
        windows > 0 && err.contains(&format!("{windows} finished window")),
        "{err}"
    );
    // With no room even for the index of the log.
    let filler = disk.0.0.join("filler");
    let _ = fs::write(&filler, vec![1; 2 << 20]);
    assert_eq!(show(&store, "full")["windows"].as_u64(), Some(windows));
    assert!(good(&store, &["list"]).contains("(interrupted)"));
    let err = refused(&store, &["rm", "full"]);
    assert!(err.contains("the disk is full"), "{err}");
    let more = Command::new("mount")
        .args(["-o", "remount,size=4m"])
        .arg(&disk.0.0)
        .status();
    assert!(more.unwrap().success());
    good(&store, &["rm", "full"]);
    assert_eq!(good(&store, &["list", "--json"]), "[]\n");
}
