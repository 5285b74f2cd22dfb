//! Constructs that the scripts must not have: those that one of the two systems refuses, and those that compile and count wrong.

use nfscope_source::script;

const NAMES: [&str; 6] = ["nfs", "rpc", "zil", "txg", "io", "slow"];

/// Script without its comments.
fn code(name: &str) -> String {
    let text = script(name).unwrap();
    let mut out = String::new();
    for (i, part) in text.split("/*").enumerate() {
        let part = match i {
            0 => part,
            _ => part.split_once("*/").unwrap().1,
        };
        out += part;
    }
    out
}

/// Text without its parts between quotes.
fn unquoted(text: &str) -> String {
    text.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

/// Clauses: probes, predicate and body.
fn clauses(text: &str) -> Vec<(String, String, String)> {
    let mut out = Vec::new();
    for clause in text.split('}') {
        let Some((head, body)) = clause.split_once('{') else {
            continue;
        };
        let head = head.trim();
        let (probes, predicate) = match head.find("\n/").or_else(|| head.find(" /")) {
            Some(at) => (&head[..at], &head[at..]),
            None => (head, ""),
        };
        out.push((
            probes.trim().to_owned(),
            predicate.trim().to_owned(),
            body.to_owned(),
        ));
    }
    out
}

#[test]
fn scripts_use_only_constructs_of_both_systems() {
    for name in NAMES {
        let text = unquoted(&code(name));
        for (word, why) in [
            ("//", "comments of one line are for Linux only"),
            ("if (", "Linux has no if; use a predicate"),
            ("else", "Linux has no else"),
            ("vtimestamp", "illumos only"),
            ("zonename", "illumos only"),
            ("walltimestamp", "jumps; frames carry timestamp"),
            ("quantize(this->d)", "its edges are not ours"),
            ("llquantize", "its table differs between the systems"),
            ("clear(", "loses events; counts are cumulative"),
            ("trunc(", "loses events; counts are cumulative"),
            ("print(", "differs between the systems"),
            ("copyin", "operations are the kernel's own"),
            ("#pragma", "options are arguments"),
            ("#include", "needs a C preprocessor"),
            ("system(", "destructive"),
            ("stop(", "destructive"),
            ("panic(", "destructive"),
            ("sched:::on-cpu", "on Linux it fires for new tasks only"),
            ("probemod", "differs under test"),
            ("probefunc", "differs under test"),
        ] {
            // Time of day: allowed in the line of a slow operation.
            let allowed = (name, word) == ("slow", "walltimestamp");
            assert!(allowed || !text.contains(word), "{name}: {word}: {why}");
        }
        for format in ["%lld", "%llu", "%ld", "%x"] {
            assert!(!code(name).contains(format), "{name}: {format}");
        }
    }
}

#[test]
fn providers_whose_name_ends_in_a_digit_have_a_star() {
    for name in NAMES {
        let text = code(name);
        for provider in ["nfsv3:", "nfsv4:"] {
            assert!(
                !text.contains(provider),
                "{name}: {provider} would be process 3 or 4 where the module is missing"
            );
        }
    }
}

#[test]
fn typed_arguments_are_read_in_clauses_of_one_probe() {
    for name in NAMES {
        for (probes, predicate, body) in clauses(&code(name)) {
            let asks = unquoted(&format!("{predicate}{body}")).contains("args[");
            let stable = ["io:::", "sched:::"].iter().any(|p| probes.starts_with(p));
            if !asks || stable {
                continue;
            }
            let last = probes.rsplit(':').next().unwrap();
            assert!(
                !last.contains('*') && !probes.contains(','),
                "{name}: args[] of {probes}"
            );
            assert!(
                !probes.contains("fbt:"),
                "{name}: types of functions differ between releases; use argN: {probes}"
            );
        }
    }
}

/// Types of variables: the first assignment makes them. A type of 32 bits truncates times.
#[test]
fn times_are_first_assigned_with_64_bits() {
    for name in NAMES {
        let text = unquoted(&code(name));
        let mut seen = Vec::<String>::new();
        let mut of_64_bits = Vec::<String>::new();
        for statement in text.split([';', '{', '}']) {
            let Some((left, right)) = statement.split_once(" = ") else {
                continue;
            };
            let left = left.trim().split('[').next().unwrap().to_owned();
            if left.starts_with('@')
                || left.starts_with("this->")
                || left.contains(['(', '/', ' '])
                || seen.contains(&left)
            {
                continue;
            }
            seen.push(left.clone());
            let wide = ["timestamp", "(uint64_t)", "arg0", "(uintptr_t)", "pr_addr"];
            let wide = wide.iter().any(|w| right.contains(w))
                || of_64_bits.iter().any(|w| right.contains(w.as_str()));
            if wide {
                of_64_bits.push(left.clone());
            }
            let small = [
                "self->kind",
                "self->in_log",
                "self->in_disk",
                "self->in_throttle",
                "self->in_upcall",
                "self->in_recall",
                "self->in_reclaim",
                "self->in_op",
                "self->op",
                "often",
                "self->version",
                "self->stable",
                "self->pool",
                "self->clock",
                "self->vers",
                "threads",
                "limit",
            ];
            assert!(wide || small.contains(&&*left), "{name}: {left} = {right}");
        }
    }
}

/// Variables of threads and elements of arrays are set to 0 again: the room for them is limited.
#[test]
fn variables_of_scripts_are_set_to_0_again() {
    for name in NAMES {
        let text = unquoted(&code(name));
        for statement in text.split([';', '{', '}']) {
            let Some((left, _)) = statement.split_once(" = ") else {
                continue;
            };
            let left = left.trim();
            let variable = left.split('[').next().unwrap();
            // Pool of a thread: it stays for as long as the thread.
            let kept =
                (variable.starts_with("self->") || left.contains('[')) && !left.starts_with('@');
            if !kept
                || ["self->pool", "self->pool_at"].contains(&variable)
                || left.contains(['(', '/'])
            {
                continue;
            }
            let given_back = |statement: &str| {
                let statement = statement.trim();
                statement.starts_with(variable) && (statement.ends_with(" = 0"))
            };
            let back = text.split([';', '{', '}']).any(given_back);
            assert!(back, "{name}: {left} is never 0 again");
        }
    }
}

/// Options that a running script may change on illumos.
#[test]
fn scripts_change_only_options_that_may_change_while_they_run() {
    for name in NAMES {
        for call in code(name).split("setopt(\"").skip(1) {
            let option = call.split('"').next().unwrap();
            assert!(
                ["switchrate", "aggrate"].contains(&option),
                "{name}: {option}"
            );
        }
    }
}

#[test]
fn every_frame_has_its_end_and_every_count_its_line() {
    for name in NAMES.into_iter().filter(|name| *name != "slow") {
        let text = code(name);
        assert_eq!(text.matches("@begin\\t").count(), 1, "{name}");
        assert_eq!(text.matches("printf(\"@end\\n\")").count(), 1, "{name}");
        let plain = unquoted(&text);
        for part in plain.split('@').skip(1) {
            let aggregation: String = part
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            if part[aggregation.len()..].starts_with([' ', '[']) {
                let printed = text.contains(&format!(", @{aggregation});"));
                assert!(printed, "{name}: @{aggregation} is never printed");
            }
        }
    }
}
