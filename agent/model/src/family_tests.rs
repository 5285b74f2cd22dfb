//! Tests of [`super`].

use super::*;

#[test]
fn renamed_families_are_known_by_their_old_names() {
    assert_eq!(current_name("nfscope_processors"), "nfscope_cpus");
    assert_eq!(current_name("nfscope_cpus"), "nfscope_cpus");
    assert_eq!(current_name("foreign"), "foreign");
    for (old, _) in RENAMED {
        assert!(ALL.iter().all(|f| f.name != old), "{old}");
    }
}

#[test]
fn names_follow_the_conventions() {
    for f in ALL {
        // Families of the agent's own process begin with `process_`, as in all exporters.
        let prefixes = ["nfscope_", "process_"];
        assert!(prefixes.iter().any(|p| f.name.starts_with(p)), "{}", f.name);
        assert_eq!(
            f.kind == Counter,
            f.name.ends_with("_total"),
            "{}: counters and only counters end in _total",
            f.name
        );
        assert!(
            !f.help.ends_with('.'),
            "{}: the encoder adds the full stop",
            f.name
        );
    }
    let mut names: Vec<_> = ALL.iter().map(|f| f.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
}

/// Base units of Prometheus. A name has a unit once, at its end; the foreign units are never in a name.
const UNITS: [&str; 3] = ["seconds", "bytes", "ratio"];
const FOREIGN_UNITS: [&str; 24] = [
    "ns",
    "us",
    "ms",
    "nanoseconds",
    "microseconds",
    "milliseconds",
    "usec",
    "msec",
    "sec",
    "secs",
    "minutes",
    "hours",
    "days",
    "percent",
    "percentage",
    "bits",
    "kb",
    "mb",
    "gb",
    "kilobytes",
    "megabytes",
    "pages",
    "sectors",
    "jiffies",
];
/// Words that no name has: the type says them already, text formats add them, or Prometheus sets them itself.
const TYPES: [&str; 5] = ["counter", "gauge", "histogram", "summary", "metric"];
const ADDED: [&str; 4] = ["count", "sum", "bucket", "created"];
const SET_BY_PROMETHEUS: [&str; 4] = ["le", "quantile", "job", "instance"];

fn is_snake_case(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .split('_')
            .all(|word| !word.is_empty() && word.chars().all(letters))
}

#[test]
fn names_follow_the_practices_of_prometheus() {
    for f in ALL {
        let name = f.name;
        assert!(is_snake_case(name), "{name}");
        let base = name.strip_suffix("_total").unwrap_or(name);
        let words: Vec<_> = base.split('_').collect();
        let (last, before) = words.split_last().unwrap();
        for unit in before {
            assert!(!UNITS.contains(unit), "{name}: the unit comes last");
        }
        for word in &words {
            assert!(
                !FOREIGN_UNITS.contains(word),
                "{name}: {word} is no base unit"
            );
            assert!(!TYPES.contains(word), "{name}: its type says {word}");
        }
        assert!(
            !ADDED.contains(last),
            "{name}: {last} is added to histograms"
        );
        assert!(!words.contains(&"total"), "{name}: total is for the end");
        assert!(*last != "info" || f.kind == Gauge, "{name}");
        assert!(
            *last != "ratio" || f.kind == Gauge,
            "{name}: ratios cannot be added"
        );
        match f.kind {
            Histogram(scheme) if scheme == Scheme::TIME => {
                assert_eq!(*last, "seconds", "{name}")
            }
            Histogram(scheme) if scheme == Scheme::SIZE => assert_eq!(*last, "bytes", "{name}"),
            _ => {}
        }
        let is_word = |other: &&&Info| {
            let rest = other.name.strip_prefix(name).unwrap_or_default();
            ADDED.iter().any(|added| rest == format!("_{added}"))
        };
        assert!(
            ALL.iter().find(is_word).is_none(),
            "{name}: a series of it has that name"
        );
        // OpenMetrics names a counter without its ending.
        assert!(
            f.kind != Counter || ALL.iter().all(|other| other.name != base),
            "{name}"
        );
    }
}

#[test]
fn labels_follow_the_practices_of_prometheus() {
    for f in ALL {
        let mut seen = Vec::new();
        for label in f.labels {
            let name = label.name;
            assert!(is_snake_case(name), "{}: {name}", f.name);
            assert!(!SET_BY_PROMETHEUS.contains(&name), "{}: {name}", f.name);
            assert!(!name.starts_with("exported_"), "{}: {name}", f.name);
            assert!(!seen.contains(&name), "{}: {name} twice", f.name);
            assert!(!label.values.is_empty(), "{}: {name} has no bound", f.name);
            // The name `nfscope_ops_by_client{client}` would repeat its label, and be wrong in every sum over that label.
            assert!(
                !f.name.contains(&format!("_by_{name}")),
                "{}: {name}",
                f.name
            );
            seen.push(name);
        }
        // A sum over one of these labels has a meaning of its own. Two of them in a family would make a series for each pair.
        let open = ["client", "export", "dataset", "inode"];
        let open = seen.iter().filter(|name| open.contains(name));
        assert!(open.count() <= 1, "{}: unbounded in two labels", f.name);
    }
}

/// Families of the agent's own process have the names that dashboards of others know (prometheus/client_golang, ProcessCollector).
#[test]
fn the_process_is_described_as_by_every_exporter() {
    let own = ALL.iter().filter(|f| f.name.starts_with("process_"));
    let own: Vec<_> = own.map(|f| (f.name, f.kind == Counter)).collect();
    assert_eq!(
        own,
        [
            ("process_cpu_seconds_total", true),
            ("process_resident_memory_bytes", false),
            ("process_virtual_memory_bytes", false),
            ("process_open_fds", false),
            ("process_max_fds", false),
            ("process_start_time_seconds", false),
        ]
    );
    assert!(
        ALL.iter()
            .filter(|f| f.name.starts_with("process_"))
            .all(|f| f.labels.is_empty())
    );
}
