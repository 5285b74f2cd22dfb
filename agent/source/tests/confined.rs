//! Tests the rights of a process after its confinement: this program runs itself, confines itself, and tries.
#![allow(clippy::unwrap_used)]

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use libtest_mimic::{Arguments, Trial};
    use nfscope_source::confinement::Layer;
    use nfscope_source::privileges::confine_stranger;
    use std::fs::{File, read_dir};
    use std::io::{Error, ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, ExitStatus, exit};

    /// An attempt that fails.
    type Fails = fn(&str) -> Error;

    /// Attempts of an intruder, with the error of each. A call that works ends the process with code 2, and one that fails for another
    /// reason with code 3.
    const TRIED: &[(&str, Fails)] = &[
        ("read a file", |_| File::open("/etc/hostname").unwrap_err()),
        ("read its own memory", |_| {
            File::open("/proc/self/mem").unwrap_err()
        }),
        ("write a file", |dir| {
            File::create(format!("{dir}/new")).unwrap_err()
        }),
        ("list a directory", |_| read_dir("/").unwrap_err()),
        ("remove a file", |dir| {
            std::fs::remove_file(format!("{dir}/old")).unwrap_err()
        }),
        ("listen", |_| TcpListener::bind("127.0.0.1:0").unwrap_err()),
        ("connect", |_| {
            TcpStream::connect("127.0.0.1:9").unwrap_err()
        }),
        ("send a packet", |_| {
            UdpSocket::bind("127.0.0.1:0").unwrap_err()
        }),
        ("make a pair of sockets", |_| {
            UnixStream::pair().unwrap_err()
        }),
        ("start a process", |_| {
            Command::new("/bin/true").spawn().unwrap_err()
        }),
        ("signal another process", |_| {
            let sent = rustix::process::test_kill_process(rustix::process::Pid::INIT);
            sent.unwrap_err().into()
        }),
        ("change users", |_| {
            use rustix::process::Uid;
            let root = Uid::ROOT;
            let changed = rustix::thread::set_thread_res_uid(root, root, root);
            changed.unwrap_err().into()
        }),
        ("map a program", |_| {
            use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
            let exec = ProtFlags::READ | ProtFlags::EXEC;
            // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
            let mapped =
                unsafe { mmap_anonymous(std::ptr::null_mut(), 4096, exec, MapFlags::PRIVATE) };
            mapped.unwrap_err().into()
        }),
    ];

    /// Calls that end the process at once.
    const FATAL: &[(&str, fn())] = &[
        ("execve", || drop(Command::new("/bin/true").exec())),
        ("bpf", || call(libc::SYS_bpf)),
        ("ptrace", || call(libc::SYS_ptrace)),
        ("unshare", || call(libc::SYS_unshare)),
        ("perf_event_open", || call(libc::SYS_perf_event_open)),
        ("process_vm_readv", || call(libc::SYS_process_vm_readv)),
    ];

    fn call(number: libc::c_long) {
        // SAFETY: the calls that are tried take zeros for nothing to do, and touch no memory then.
        unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) };
    }

    pub fn main() {
        let args: Vec<String> = std::env::args().collect();
        if let [_, role, what, dir] = &args[..]
            && role == "confined"
        {
            confined(what, dir);
        }
        let ended = |what: &str| -> ExitStatus {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("old"), "").unwrap();
            let mut command = Command::new(std::env::current_exe().unwrap());
            let command = command.args(["confined", what]).arg(dir.path());
            command.status().unwrap()
        };
        let name = |first: &str, what: &str| format!("{first}_{}", what.replace(' ', "_"));
        let mut tests = vec![Trial::test("it_can_end", move || {
            assert_eq!(ended("nothing").code(), Some(0));
            Ok(())
        })];
        tests.extend(TRIED.iter().map(|(what, _)| {
            Trial::test(name("it_cannot", what), move || {
                let status = ended(what);
                assert_eq!(status.code(), Some(0), "{what}: {status}");
                Ok(())
            })
        }));
        tests.extend(FATAL.iter().map(|(what, _)| {
            Trial::test(name("it_is_ended_by", what), move || {
                let status = ended(what);
                assert_eq!(status.signal(), Some(libc::SIGSYS), "{what}: {status}");
                Ok(())
            })
        }));
        libtest_mimic::run(&Arguments::from_args(), tests).exit();
    }

    fn confined(what: &str, dir: &str) -> ! {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let said = confine_stranger().unwrap();
        assert_eq!(said.seccomp, Layer::Holds);
        if let Some((_, tried)) = TRIED.iter().find(|(name, _)| *name == what) {
            let result = std::panic::catch_unwind(|| tried(dir).kind());
            exit(match result {
                Ok(ErrorKind::PermissionDenied) => 0,
                Ok(_) => 3,
                Err(_) => 2,
            });
        }
        if let Some((_, fatal)) = FATAL.iter().find(|(name, _)| *name == what) {
            fatal();
            exit(2);
        }
        // Tests that the work of the process is still possible: threads, memory, sockets that are open, time.
        let sent = std::thread::Builder::new()
            .name("worker".to_owned())
            .spawn(move || theirs.write_all(&vec![7; 1 << 20]))
            .unwrap();
        let mut all = vec![0; 1 << 20];
        ours.read_exact(&mut all).unwrap();
        sent.join().unwrap().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
        exit(i32::from(all.iter().any(|b| *b != 7)))
    }
}
