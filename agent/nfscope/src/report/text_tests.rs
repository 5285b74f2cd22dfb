use super::*;
use serde_json::json;

/// Healthy server: two windows of ten seconds with 100 WRITEs each, and no findings.
fn healthy() -> Value {
    let window = |at: f64| {
        json!({
            "at": at, "seconds": 10.0, "lost": 0.0, "coverage": {"3": 1.0}, "findings": {},
            "ops": [{"version": "3", "op": "write", "times": {"count": 100, "sum": 1.0, "buckets": [[0, 100]]}}],
            "pools": [{"pool": "0", "threads": 8.0, "busy": 40.0}],
            "clients": [{"name": "192.0.2.7", "ops": 100, "seconds": 1.0, "moved": {"read": 0.0, "written": 10_000.0}}],
            "exports": [{"name": "/a", "ops": 90, "seconds": 0.9}, {"name": "none", "ops": 10, "seconds": 0.1}],
        })
    };
    json!({
        "windows": {"host": "nfs1", "kernel": "6.12", "version": "1", "edges": [0.01], "windows": [window(10.0), window(20.0)]},
        "findings": {"active": [], "history": [], "last_window": {"verdict": "healthy", "reason": ""}},
        "probes": {"times_operations": true, "reason": "", "probes": []},
        "note": null,
    })
}

fn says(data: &Value, parts: &[&str]) {
    let text = write(data, false);
    for part in parts {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn no_finding_is_told_from_no_diagnosis() {
    says(&healthy(), &["Findings: none in this time."]);
    let mut data = healthy();
    data["findings"]["last_window"] = Value::Null;
    says(
        &data,
        &["Findings: unknown: no ten seconds have been evaluated yet."],
    );
    let mut data = healthy();
    data["findings"]["last_window"] =
        json!({"verdict": "unknown", "reason": "clients wait outside"});
    says(
        &data,
        &["Findings: unknown: not every cause can be seen: clients wait outside."],
    );
    data["findings"]["last_window"]["reason"] = LEFT_OUT.into();
    says(
        &data,
        &["Findings: unknown: not every cause can be seen.\n"],
    );
    let mut data = healthy();
    data["probes"] =
        json!({"times_operations": false, "reason": "nfsd is not loaded.", "probes": []});
    says(
        &data,
        &["Findings: unknown: operations are not timed: nfsd is not loaded."],
    );
}

#[test]
fn a_share_is_one_of_request_time_where_it_is() {
    let mut data = healthy();
    data["windows"]["windows"][1]["findings"] = json!({"slow_disk": 0.4, "slow_mount": 0.9});
    says(
        &data,
        &[
            "Finding slow_disk: in windows that cover at most 50.0 % of the time, up to 40.0 % of request time.\n",
            "Finding slow_mount: in windows that cover at most 50.0 % of the time.\n",
        ],
    );
}

#[test]
fn what_is_known_of_a_part_is_said_of_that_part() {
    says(
        &healthy(),
        &[
            "Load: 10.0 operations a second, 1.00 kB/s read and written",
            "50.0 % of the time of 8 threads was in use.",
            "/a 90.0 % of the time",
            "no export 10.0 % of the time",
            "Operations measured since the agent began: NFSv3 100.0 %; now no probe is missing.",
        ],
    );
    let mut data = healthy();
    // The second window has neither timed operations nor busy times, and a pool without data.
    let second = &mut data["windows"]["windows"][1];
    for member in ["ops", "clients", "exports"] {
        second[member] = json!([]);
    }
    second["coverage"] = json!({});
    second["pools"] = json!([{"pool": "0", "threads": 8.0, "busy": null}]);
    let first = &mut data["windows"]["windows"][0];
    first["pools"]
        .as_array_mut()
        .unwrap()
        .push(json!({"pool": "1", "threads": 8.0, "busy": null}));
    first["clients"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "other", "ops": 3, "seconds": 0.1, "moved": null}));
    says(
        &data,
        &[
            "Operations were not timed for 10 s of it; rates are those of the rest.",
            "Load: 10.0 operations a second, at least 1.00 kB/s read and written",
            "50.0 % of the time of 8 threads was in use.",
            "192.0.2.7 90.9 % of the time and 1.00 kB/s; other 9.1 % of the time and bytes unknown",
        ],
    );
    for window in data["windows"]["windows"].as_array_mut().unwrap() {
        *window = json!({"at": 10.0, "seconds": 10.0});
    }
    says(
        &data,
        &[
            "Load: operations unknown, bytes unknown",
            "Findings: unknown: operations were not timed.",
        ],
    );
}

#[test]
fn an_unknown_host_or_kernel_is_a_question_mark() {
    let mut data = healthy();
    data["windows"]["host"] = "".into();
    data["windows"]["kernel"] = Value::Null;
    says(&data, &["nfscope report of ?, Linux ?: "]);
}
