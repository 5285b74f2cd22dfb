//! A client among many that work: its requests are few beside the sum, and yet much of the server's time.

use super::test_server::{SERVER, Server, kinds, page};
use crate::breakdown::Breakdown;
use crate::by_client::{ClientOps, Counted};
use crate::evaluate::evaluate_observed;
use crate::observed::{Observed, SharedOwner};
use nfscope_model::finding::{Diagnosis, Kind};
use nfscope_model::{Snapshot, Window, family as f};
use std::time::Duration;

fn judge(delta: Snapshot, observed: &Observed) -> Diagnosis {
    let window = Window {
        length: Duration::from_secs(10),
        delta,
    };
    evaluate_observed(&window, &Breakdown::of(&window), observed)
}

fn client(name: &str, ops: &[(&str, f64, f64)]) -> ClientOps {
    let of = |(op, n, seconds): &(&str, f64, f64)| ((*op).to_owned(), (*n, *seconds));
    ClientOps {
        client: name.to_owned(),
        ops: ops.iter().map(of).collect(),
    }
}

fn counted(clients: Vec<ClientOps>) -> Observed {
    Observed {
        clients: Some(Counted {
            length: 10.0,
            clients,
        }),
        ..Observed::default()
    }
}

/// GETATTRs are half of all requests and of their time, and all that one client sends.
#[test]
fn a_client_that_only_asks_is_found_among_others_that_work() {
    let getattr = Server {
        op: "getattr",
        count: 10_000,
        ..SERVER
    };
    let mut s = getattr.snapshot();
    let others = Server {
        op: "write",
        count: 10_000,
        ..SERVER
    };
    s.counter(&f::OP_PHASE, ["3", "write", "cpu"], 1.0);
    s.histogram(
        &f::OP_DURATION,
        ["3", "write"],
        super::test_server::histogram(&[(100e-6, others.count)]),
    );
    s.counter(&f::RPC_PHASE, ["3", "execute"], 2.0);
    s.histogram(
        &f::RPC_DURATION,
        ["3"],
        super::test_server::histogram(&[(120e-6, 20_000)]),
    );
    super::test_server::measured(&mut s, "3", 10_000);
    let asks = client("10.0.0.7", &[("getattr", 10_000.0, 1.0)]);
    let works = client("10.0.0.8", &[("write", 10_000.0, 1.0)]);
    let d = judge(s.clone(), &Observed::default());
    assert!(kinds(&d).is_empty(), "{d:#?}");
    let d = judge(s.clone(), &counted(vec![asks, works]));
    assert_eq!(kinds(&d), ["chatty_client"], "{d:#?}");
    let text = page(&d, Kind::ChattyClient);
    assert!(
        text.contains("100 % of the requests of 10.0.0.7 are"),
        "{text}"
    );
    // Half of each client's requests are WRITEs, so no client mostly asks for metadata.
    let both = |name| client(name, &[("getattr", 5000.0, 0.5), ("write", 5000.0, 0.5)]);
    let d = judge(s, &counted(vec![both("10.0.0.7"), both("10.0.0.8")]));
    assert!(kinds(&d).is_empty(), "{d:#?}");
}

/// WRITEs and COMMITs are a third of all requests, and all that one client sends.
#[test]
fn a_client_that_writes_synchronously_is_found_among_others_that_ask() {
    let mut s = Server {
        op: "write",
        count: 10_000,
        cpu: 400e-6,
        ..SERVER
    }
    .snapshot();
    s.counter(&f::WRITE, ["3", "file_sync"], 10_000.0);
    s.counter(&f::WRITE_BYTES, ["3", "file_sync"], 10_000.0 * 4096.0);
    s.histogram(
        &f::OP_DURATION,
        ["3", "read"],
        super::test_server::histogram(&[(100e-6, 20_000)]),
    );
    s.histogram(
        &f::RPC_DURATION,
        ["3"],
        super::test_server::histogram(&[(200e-6, 30_000)]),
    );
    let writes = client("10.0.0.7", &[("write", 10_000.0, 4.0)]);
    let d = judge(s.clone(), &Observed::default());
    assert!(!kinds(&d).contains(&"small_sync_writes"), "{d:#?}");
    let d = judge(s, &counted(vec![writes]));
    assert_eq!(kinds(&d), ["small_sync_writes"], "{d:#?}");
    let text = page(&d, Kind::SmallSyncWrites);
    assert!(text.contains("100 % of the requests of 10.0.0.7"), "{text}");
}

#[test]
fn a_client_that_only_makes_leases_is_found_among_others_that_work() {
    let s = Server {
        count: 10_000,
        ..SERVER
    }
    .snapshot();
    let loops = client(
        "10.0.0.7",
        &[
            ("exchange_id", 30.0, 0.01),
            ("create_session", 30.0, 0.01),
            ("getattr", 20.0, 0.01),
        ],
    );
    let works = client(
        "10.0.0.8",
        &[("write", 10_000.0, 1.0), ("exchange_id", 1.0, 0.0)],
    );
    let d = judge(s.clone(), &counted(vec![works.clone()]));
    assert!(kinds(&d).is_empty(), "{d:#?}");
    let d = judge(s, &counted(vec![loops, works]));
    assert_eq!(kinds(&d), ["state_recovery_storm"], "{d:#?}");
    let text = page(&d, Kind::StateRecoveryStorm);
    assert!(text.contains("10.0.0.7 makes or recovers"), "{text}");
}

/// Two clones end each other's leases, and the daemon that stores new ones is busy with that.
#[test]
fn one_identity_of_two_addresses_comes_before_the_daemon_that_stores_it() {
    let mut s = Server {
        count: 10_000,
        ..SERVER
    }
    .snapshot();
    let labels = ["4.2", "exchange_id", "upcall"];
    s.counter(&f::OP_PHASE, labels, 5.0);
    s.histogram(
        &f::OP_DURATION,
        ["4.2", "exchange_id"],
        super::test_server::histogram(&[(50e-3, 100)]),
    );
    s.counter(&f::RPC_PHASE, ["4.2", "execute"], 5.0);
    s.histogram(
        &f::UPCALL_WAIT,
        ["client_tracking"],
        super::test_server::histogram(&[(50e-3, 100)]),
    );
    let d = judge(s.clone(), &Observed::default());
    assert_eq!(kinds(&d), ["slow_upcall"], "{d:#?}");
    let observed = Observed {
        shared_owners: vec![SharedOwner {
            name: "Linux NFSv4.2 clone".into(),
            addresses: ["10.0.0.7", "10.0.0.8"].map(str::to_owned).into(),
        }],
        ..Observed::default()
    };
    let d = judge(s, &observed);
    assert_eq!(kinds(&d), ["state_recovery_storm", "slow_upcall"], "{d:#?}");
    let text = page(&d, Kind::StateRecoveryStorm);
    assert!(
        text.contains("10.0.0.7 and 10.0.0.8 come in turn under the name of one client"),
        "{text}"
    );
    assert!(text.contains("nfs4_unique_id"), "{text}");
    let text = page(&d, Kind::SlowUpcall);
    assert!(
        text.contains("a consequence of state_recovery_storm"),
        "{text}"
    );
}
