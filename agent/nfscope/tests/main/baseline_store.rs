//! File of the store: exported, imported, foreign, damaged, in use, and on a full disk.

use crate::fixture::recorder::{Place, agent, ask, good, record, refused, show, signal, wait};
use crate::fixture::recordings::{FLASH, recording, writes};
use crate::fixture::said;
use nfscope_baseline::recording::Metadata;
use nfscope_baseline::store::{Error, State, Store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Names of the files in a directory, sorted.
fn files(place: &Place) -> Vec<String> {
    let dir = fs::read_dir(&place.0).unwrap();
    let names = dir.map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

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
    // Fix in the error: another file. Another store would not help.
    for nowhere in ["/proc/x", "/nosuch/x"] {
        let why = refused(&store, &["export", "one", nowhere]);
        assert!(why.contains("name a file that you may write"), "{why}");
        assert!(why.contains(nowhere) && !why.contains("--store"), "{why}");
    }
    good(&store, &["export", "one", path, "--force"]);
    assert_eq!(files(&place), ["made", "one.nfscope"]);
    // Path of the store under another name: refused, too.
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
    // Import of a store: all of its recordings are taken.
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
    // Flipped bits behind the pages of the schema.
    good(&store, &["export", "one", path, "--force"]);
    let mut bytes = fs::read(&file).unwrap();
    for b in &mut bytes[3 * 16_384..] {
        *b ^= 0x55;
    }
    fs::write(&file, &bytes).unwrap();
    let err = refused(&store, &["import", path]);
    assert!(err.contains("is damaged"), "{err}");
    // Data of a single window: no check of pages sees that.
    good(&store, &["export", "one", path, "--force"]);
    let db = rusqlite::Connection::open(&file).unwrap();
    db.execute_batch("UPDATE \"window\" SET data = x'0102' WHERE seq = 0")
        .unwrap();
    drop(db);
    let err = refused(&store, &["import", path]);
    assert!(
        err.contains("window 0 of `one` is not what was recorded"),
        "{err}"
    );
    assert!(refused(&store, &["import", "/no/such/file"]).contains("/no/such/file"));
    let missing = refused(&place.0.join("none.db"), &["list"]);
    assert!(
        missing.contains("nfscope baseline record NAME"),
        "{missing}"
    );
    assert_eq!(files(&place), ["file", "made"]);
}

/// Small tmpfs. `None` if this process may not mount one.
struct Disk(Place);

impl Disk {
    fn new(word: &str) -> Option<Disk> {
        let place = Place::new(word);
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
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

impl Disk {
    /// Fills the disk, and returns the file that does.
    fn fill(&self) -> PathBuf {
        let filler = self.0.0.join("filler");
        let mut file = fs::File::create(&filler).unwrap();
        while file.write_all(&[1; 512]).is_ok() {}
        filler
    }
}

#[test]
fn a_recording_waits_for_room_and_loses_nothing() {
    let Some(disk) = Disk::new("room") else {
        println!("SKIPPED: a full disk: this process may not mount a small one");
        return;
    };
    let store = disk.0.0.join("baselines.db");
    let mut c = record(&store, agent(), &["full"]);
    let mut child = c.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    wait(&store, "full", 2);
    let filler = disk.fill();
    let waits = lines.next().unwrap().unwrap();
    assert!(
        waits.contains("the disk is full") && waits.contains("windows are kept in memory; waiting"),
        "{waits}"
    );
    std::thread::sleep(Duration::from_secs(3));
    fs::remove_file(&filler).unwrap();
    let before = show(&store, "full")["windows"].as_u64().unwrap();
    wait(&store, "full", before + 25);
    signal(&child, libc::SIGTERM);
    let end = lines.next().unwrap().unwrap();
    assert!(
        end.contains("is kept") && end.contains("nothing is missing"),
        "{end}"
    );
    assert!(child.wait().unwrap().success());
    assert_eq!(show(&store, "full")["gaps"], serde_json::json!([]));
}

#[test]
fn recordings_on_a_full_disk_can_be_read_and_removed() {
    let Some(disk) = Disk::new("full") else {
        println!("SKIPPED: a full disk: this process may not mount a small one");
        return;
    };
    let path = disk.0.0.join("baselines.db");
    let mut store = Store::create(&path).unwrap();
    store
        .put(&recording("full", 1, 60, &writes(FLASH)))
        .unwrap();
    store
        .put(&recording("kept", 2, 12, &writes(FLASH)))
        .unwrap();
    drop(store);
    disk.fill();
    let before = fs::metadata(&path).unwrap().len();
    assert!(good(&path, &["list"]).contains("full"));
    good(&path, &["check"]);
    good(&path, &["rm", "full"]);
    assert!(!good(&path, &["list"]).contains("full"));
    assert!(fs::metadata(&path).unwrap().len() <= before);
    assert_eq!(show(&path, "kept")["windows"], 12);
    good(&path, &["check"]);
}

/// Flipped bits, overwritten sectors, truncated files: every result is right or an error.
#[test]
fn a_thousand_damaged_stores_tell_nothing_wrong() {
    let place = Place::new("damaged");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    for (name, seed) in [("before", 1), ("after", 2)] {
        let mut r = recording(name, seed, 12, &writes(FLASH));
        r.metadata.labels = [("disks".to_owned(), name.to_owned())].into();
        store.put(&r).unwrap();
    }
    drop(store);
    let bytes = fs::read(&path).unwrap();
    type Listed = Vec<(Metadata, u64, Duration)>;
    let listed = |store: &Store| -> Result<Listed, Error> {
        let all = store.list()?.into_iter();
        let sound = all.filter(|e| e.state != State::Damaged);
        Ok(sound.map(|e| (e.metadata, e.windows, e.length)).collect())
    };
    let store = Store::open(&path).unwrap();
    let truth = listed(&store).unwrap();
    let recordings = ["before", "after"].map(|name| store.recording(name).unwrap());
    drop(store);
    let mut random = SmallRng::seed_from_u64(7);
    let broken = place.0.join("broken.db");
    let (mut right, mut refused) = (0, 0);
    for i in 0..1000 {
        let mut damaged = bytes.clone();
        match i % 4 {
            0 | 1 => {
                for _ in 0..random.random_range(1..4) {
                    let at = random.random_range(0..damaged.len());
                    damaged[at] ^= 1 << random.random_range(0..8);
                }
            }
            2 => {
                let at = random.random_range(0..damaged.len() / 512) * 512;
                let fill: u8 = random.random();
                damaged[at..at + 512].fill(fill);
            }
            _ => damaged.truncate(random.random_range(0..damaged.len())),
        }
        fs::write(&broken, &damaged).unwrap();
        let mut count = |is_right: bool| match is_right {
            true => right += 1,
            false => refused += 1,
        };
        let Ok(store) = Store::open(&broken) else {
            count(false);
            continue;
        };
        match listed(&store) {
            Ok(list) => {
                assert!(list.iter().all(|e| truth.contains(e)), "{i}: {list:?}");
                let all = store.list().map_or(0, |all| all.len());
                assert_eq!(all, truth.len(), "{i}: a baseline is gone without a word");
                count(list.len() == truth.len());
            }
            Err(_) => count(false),
        }
        for (name, whole) in ["before", "after"].iter().zip(&recordings) {
            match store.recording(name) {
                Ok(r) => {
                    assert!(r == *whole, "{i}: {name} tells something else");
                    count(true);
                }
                Err(_) => count(false),
            }
        }
    }
    println!("1000 damaged files: {right} answers right, {refused} refused, none wrong");
    assert!(right > 300 && refused > 300);
}

/// A store of the schema without checksums can be read and imported. Damage is not mistaken for age.
#[test]
fn recordings_from_before_checksums_stay_readable() {
    let place = Place::new("old");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    let old = recording("old", 1, 12, &writes(FLASH));
    store.put(&old).unwrap();
    drop(store);
    // Schema of the older release.
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "ALTER TABLE baseline DROP COLUMN windows; ALTER TABLE baseline DROP COLUMN length_ns;
         ALTER TABLE baseline DROP COLUMN series_sum; ALTER TABLE baseline DROP COLUMN windows_sum;
         ALTER TABLE baseline DROP COLUMN checksum; ALTER TABLE \"window\" DROP COLUMN checksum; PRAGMA user_version = 1",
    )
    .unwrap();
    drop(db);
    let whole = |store: &Store| {
        let back = store.recording("old").unwrap();
        (back.metadata, back.series, back.windows.len())
    };
    let store = Store::open(&path).unwrap();
    let expected = (old.metadata.clone(), old.series.clone(), old.windows.len());
    assert_eq!(whole(&store), expected);
    drop(store);
    let said = good(&path, &["check"]);
    assert!(
        said.contains("recorded before there were checksums"),
        "{said}"
    );
    // Imported recordings have checksums from then on.
    let copy = place.0.join("copy.db");
    good(&copy, &["import", path.to_str().unwrap()]);
    assert!(good(&copy, &["check"]).contains("as recorded"));
    // Missing checksums: damage.
    let db = rusqlite::Connection::open(&copy).unwrap();
    db.execute_batch("UPDATE \"window\" SET checksum = NULL WHERE seq = 3")
        .unwrap();
    drop(db);
    let err = refused(&copy, &["show", "old"]);
    assert!(
        err.contains("window 3 of `old` is not what was recorded"),
        "{err}"
    );
    let (code, out, _) = ask(&copy, &["check"]);
    assert!(code == 1 && out.contains("is damaged"), "{out}");
}

/// Names in a foreign file, and lengths that overflow.
#[test]
fn a_hostile_file_steers_no_terminal_and_blocks_no_other_baseline() {
    let place = Place::new("hostile");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    let mut hostile = recording("hostile", 1, 12, &writes(FLASH));
    hostile.metadata.host = "nfs1\u{1b}[2J\nforged".into();
    hostile.metadata.kernel = Some("6.1\r\nforged".into());
    hostile.metadata.labels = [("a\u{9b}31m".to_owned(), "b\u{7}\nforged".to_owned())].into();
    for key in &mut hostile.series {
        for label in key.labels.iter_mut().filter(|l| *l == "write") {
            *label = "write\u{1b}]0;x\u{7}\nforged".into();
        }
    }
    store.put(&hostile).unwrap();
    store
        .put(&recording("good", 2, 12, &writes(FLASH)))
        .unwrap();
    drop(store);
    for arguments in [
        &["list"][..],
        &["show", "hostile"],
        &["compare", "hostile", "good"],
        &["changes", "hostile"],
        &["check"],
    ] {
        let text = good(&path, arguments);
        let steers = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(steers), "{arguments:?}: {text:?}");
        // Forged lines: none begins like a line of the program.
        assert!(!text.contains("\nforged"), "{arguments:?}: {text}");
    }
    let store_of = ["--store", path.to_str().unwrap()];
    let capacity = Command::new(env!("CARGO_BIN_EXE_nfscope"))
        .args(["capacity", "hostile"])
        .args(store_of)
        .output();
    let text = String::from_utf8(capacity.unwrap().stdout).unwrap();
    assert!(
        text.contains("RESOURCE") && !text.contains("\nforged"),
        "{text}"
    );
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "UPDATE \"window\" SET length_ns = 9223372036854775807 WHERE baseline = (SELECT id FROM baseline WHERE name = 'hostile')",
    )
    .unwrap();
    drop(db);
    let list = good(&path, &["list"]);
    assert!(
        list.contains("(damaged)") && list.contains("good"),
        "{list}"
    );
    good(&path, &["show", "good"]);
    assert!(refused(&path, &["show", "hostile"]).contains("is damaged"));
    good(&path, &["rm", "hostile"]);
    assert!(!good(&path, &["list"]).contains("hostile"));
}
