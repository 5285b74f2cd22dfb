//! Tools that an assistant may call, each with the command that answers it.

use rmcp::model::ToolAnnotations;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Type of a parameter.
#[derive(Debug)]
enum Kind {
    /// String.
    Text,
    /// Integer of at least 1.
    Count,
    /// Seconds to watch: the default, and the maximum.
    Seconds(u64, u64),
}

/// Position of a parameter in the command line.
#[derive(Debug)]
enum Place {
    /// After a flag.
    Flag(&'static str),
    /// Positional, in the order of the table.
    Itself,
}

/// Parameter of a tool.
#[derive(Debug)]
struct Parameter {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    place: Place,
    required: bool,
    /// True if the command needs no agent with it, and watches nothing.
    instead_of_agent: bool,
}

/// Source of a tool's answer.
#[derive(Debug)]
enum Source {
    /// Page of the agent.
    Page(&'static str),
    /// Command of this program.
    Command {
        words: &'static [&'static str],
        from: From,
    },
}

/// Data source that a command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// Agent.
    Agent,
    /// Store of recordings.
    Store,
    /// Agent, store, or both.
    Either,
    /// This host only.
    Host,
}

/// Tool of the protocol.
#[derive(Debug)]
pub struct Tool {
    /// Name of the tool.
    pub name: &'static str,
    about: &'static str,
    parameters: &'static [Parameter],
    source: Source,
}

/// Work that a call needs.
#[derive(Debug, PartialEq)]
pub enum Call {
    /// Request a page from the agent.
    Page(&'static str),
    /// Run a command of this program.
    Run {
        /// Command and its flags.
        words: Vec<String>,
        /// Positional arguments, after all flags.
        values: Vec<String>,
        /// Data source that the command reads.
        from: From,
        /// Time that the command watches.
        watches: Duration,
    },
}

const fn text(name: &'static str, flag: &'static str, about: &'static str) -> Parameter {
    Parameter {
        name,
        about,
        kind: Kind::Text,
        place: Place::Flag(flag),
        required: false,
        instead_of_agent: false,
    }
}

const fn count(name: &'static str, flag: &'static str, about: &'static str) -> Parameter {
    Parameter {
        kind: Kind::Count,
        ..text(name, flag, about)
    }
}

const fn watch(flag: &'static str, usual: u64) -> Parameter {
    Parameter {
        kind: Kind::Seconds(usual, 300),
        ..text("seconds", flag, "how long to watch")
    }
}

const AT: Parameter = Parameter {
    instead_of_agent: true,
    ..text(
        "at",
        "--at",
        "a time of the history on this host's disk: 03:10, \"2026-11-27 03:10\"",
    )
};

const fn recording(name: &'static str, about: &'static str, required: bool) -> Parameter {
    Parameter {
        place: Place::Itself,
        required,
        instead_of_agent: true,
        ..text(name, "", about)
    }
}

/// Tools in the order of their list.
pub const ALL: [Tool; 10] = [
    Tool {
        name: "findings",
        about: "What makes requests slow now, and did before: each cause with its evidence, advice, and what a change would be worth. \
                The agent evaluates ten seconds at a time.",
        parameters: &[],
        source: Source::Page("/findings"),
    },
    Tool {
        name: "diagnose",
        about: "Watch the server and name the causes of latency with evidence: the volume, the log, threads, CPUs, the network or a \
                client; who is behind them. With `at` it looks at the past instead.",
        parameters: &[watch("--duration", 10), AT],
        source: Source::Command {
            words: &["diagnose", "--json"],
            from: From::Agent,
        },
    },
    Tool {
        name: "operations",
        about: "Operations of a window with rate, latency and phases, and clients, exports, threads, logs and disks.",
        parameters: &[watch("--interval", 5), AT],
        source: Source::Command {
            words: &["top", "--once", "--json"],
            from: From::Agent,
        },
    },
    Tool {
        name: "who",
        about: "Who and what: operations told apart by client, export, op, version, user, file, each with count, time and bytes. The \
                agent's kernel counts them meanwhile.",
        parameters: &[
            Parameter {
                required: true,
                ..text(
                    "by",
                    "--by",
                    "dimensions with commas: client,export,op,version,user,file",
                )
            },
            text(
                "where",
                "--where",
                "only operations with this value: export=/srv/a",
            ),
            watch("--interval", 5),
        ],
        source: Source::Command {
            words: &["top", "--once", "--json"],
            from: From::Agent,
        },
    },
    Tool {
        name: "stuck",
        about: "Requests that nfsd threads have in hand and do not finish, with operation, client, file and wait.",
        parameters: &[text(
            "over",
            "--over",
            "only those that take longer than this: 1s, 500ms",
        )],
        source: Source::Command {
            words: &["stuck", "--json"],
            from: From::Agent,
        },
    },
    Tool {
        name: "what_if",
        about: "Predict by a calibrated simulation what a change would do. Without a change: the changes that would be worth most. It \
                refuses where it cannot reproduce what was measured.",
        parameters: &[
            recording(
                "recording",
                "name of a recording, in place of watching the agent",
                false,
            ),
            count("threads", "--threads", "nfsd threads of all pools together"),
            text(
                "log",
                "--log",
                "time of one request to the device of the log: 0.1ms",
            ),
            text("disk", "--disk", "time of one request to the disks: 0.1ms"),
            count("cpus", "--cpus", "CPUs"),
            text("clients", "--clients", "times as many clients: x2"),
            text("write_size", "--write-size", "bytes of each WRITE: 64k"),
            watch("--duration", 30),
        ],
        source: Source::Command {
            words: &["what-if", "--json"],
            from: From::Either,
        },
    },
    Tool {
        name: "recordings",
        about: "Recorded baselines with name, time, host and length.",
        parameters: &[],
        source: Source::Command {
            words: &["baseline", "list", "--json"],
            from: From::Store,
        },
    },
    Tool {
        name: "compare",
        about: "Compare recordings before and after a change: each quantity with interval, p value and verdict. One recording on a side \
                has no verdict.",
        parameters: &[
            recording(
                "before",
                "names of recordings before the change, with commas",
                true,
            ),
            recording("after", "names of recordings after it, with commas", true),
            text(
                "min_change",
                "--min-change",
                "smallest change that matters: 2%",
            ),
        ],
        source: Source::Command {
            words: &["baseline", "compare", "--json"],
            from: From::Store,
        },
    },
    Tool {
        name: "measured",
        about: "What the agent's probes measure, and what is missing and why.",
        parameters: &[],
        source: Source::Page("/probes"),
    },
    Tool {
        name: "doctor",
        about: "How the NFS server on this host is configured, without a load: each rule with reason, advice and source.",
        parameters: &[],
        source: Source::Command {
            words: &["doctor", "--json"],
            from: From::Host,
        },
    },
];

impl Tool {
    /// Description of the tool for the protocol, with the JSON schema of its parameters.
    pub fn described(&self) -> rmcp::model::Tool {
        let properties: Map<String, Value> = (self.parameters.iter())
            .map(|p| {
                let schema = match p.kind {
                    Kind::Text => json!({"type": "string", "description": p.about}),
                    Kind::Count => json!({"type": "integer", "minimum": 1, "description": p.about}),
                    Kind::Seconds(usual, most) => json!({
                        "type": "integer", "minimum": 1, "maximum": most, "default": usual, "description": p.about
                    }),
                };
                (p.name.to_owned(), schema)
            })
            .collect();
        let required = self.parameters.iter().filter(|p| p.required);
        let required: Vec<_> = required.map(|p| p.name).collect();
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), properties.into());
        schema.insert("required".into(), required.into());
        schema.insert("additionalProperties".into(), false.into());
        let hints = ToolAnnotations::new().read_only(true).open_world(false);
        rmcp::model::Tool::new(self.name, self.about, schema).with_annotations(hints)
    }

    /// Work for a call with these arguments.
    ///
    /// # Errors
    /// When an argument is unknown, missing, or of the wrong type.
    pub fn call(&self, arguments: &Map<String, Value>) -> Result<Call, String> {
        let names = || {
            self.parameters
                .iter()
                .map(|p| p.name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        if let Some(unknown) = arguments
            .keys()
            .find(|k| self.parameters.iter().all(|p| p.name != **k))
        {
            return Err(match self.parameters.is_empty() {
                true => format!("{} takes no arguments", self.name),
                false => format!(
                    "{} has no argument {unknown:?}; it has {}",
                    self.name,
                    names()
                ),
            });
        }
        let (words, mut from) = match &self.source {
            Source::Page(page) => return Ok(Call::Page(page)),
            Source::Command { words, from } => (words, *from),
        };
        let given = |p: &&Parameter| arguments.get(p.name).is_some_and(|v| !v.is_null());
        let past = self
            .parameters
            .iter()
            .filter(given)
            .any(|p| p.instead_of_agent);
        if past {
            from = From::Store;
        } else if from == From::Either {
            from = From::Agent;
        }
        let mut words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let (mut values, mut watches) = (Vec::new(), Duration::ZERO);
        for p in self.parameters {
            let argument = arguments.get(p.name).filter(|v| !v.is_null());
            let value = match (&p.kind, argument) {
                (Kind::Seconds(usual, _), None) if !past => format!("{usual}s"),
                (_, None) if p.required => {
                    return Err(format!("{} needs {}", self.name, p.name));
                }
                (_, None) => continue,
                (kind, Some(value)) => p.written(kind, value)?,
            };
            if let Kind::Seconds(..) = p.kind {
                let seconds = value.trim_end_matches('s').parse().unwrap_or(0);
                watches = Duration::from_secs(seconds);
            }
            match p.place {
                Place::Flag(flag) => words.push(format!("{flag}={value}")),
                Place::Itself => values.push(value),
            }
        }
        Ok(Call::Run {
            words,
            values,
            from,
            watches,
        })
    }
}

impl Parameter {
    fn written(&self, kind: &Kind, value: &Value) -> Result<String, String> {
        let wrong = |what: String| Err(format!("{} is not {what}", self.name));
        match (kind, value) {
            (Kind::Text, Value::String(text)) if !text.contains('\0') => Ok(text.clone()),
            (Kind::Text, _) => wrong("a text".into()),
            (Kind::Count, value) => match value.as_u64().filter(|n| *n > 0) {
                Some(n) => Ok(n.to_string()),
                None => wrong("a whole number above 0".into()),
            },
            (Kind::Seconds(_, most), value) => {
                match value.as_u64().filter(|n| (1..=*most).contains(n)) {
                    Some(n) => Ok(format!("{n}s")),
                    None => wrong(format!("a whole number of seconds, 1 to {most}")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn call(tool: &str, arguments: Value) -> Result<Call, String> {
        let tool = ALL.iter().find(|t| t.name == tool).unwrap();
        let Value::Object(arguments) = arguments else {
            panic!("no object")
        };
        tool.call(&arguments)
    }

    /// Every tool with every parameter is a valid command line.
    #[test]
    fn every_tool_is_a_command_of_this_program() {
        let value = |p: &Parameter| match p.name {
            "at" => json!("03:10"),
            "by" => json!("client,op"),
            "where" => json!("op=write"),
            "over" | "log" | "disk" => json!("1ms"),
            "clients" => json!("x2"),
            "write_size" => json!("64k"),
            "min_change" => json!("2%"),
            "recording" | "before" | "after" => json!("friday"),
            _ => json!(8),
        };
        for tool in &ALL {
            // `at` excludes `seconds`, and so does a recording.
            for past in [true, false] {
                let take = |p: &&Parameter| match past {
                    true => p.name != "seconds",
                    false => p.required || !p.instead_of_agent,
                };
                let arguments = tool.parameters.iter().filter(take);
                let arguments = arguments.map(|p| (p.name.to_owned(), value(p))).collect();
                let Call::Run { words, values, .. } = tool.call(&arguments).unwrap() else {
                    continue;
                };
                let line = ["nfscope".to_owned()]
                    .into_iter()
                    .chain(words)
                    .chain(["--".into()])
                    .chain(values);
                let line: Vec<_> = line.collect();
                Cli::try_parse_from(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
            }
        }
    }

    #[test]
    fn arguments_are_checked_and_never_become_flags() {
        let usual = call("diagnose", json!({})).unwrap();
        let run = |words: &[&str], values: &[&str], from, seconds| Call::Run {
            words: words.iter().map(|w| (*w).to_owned()).collect(),
            values: values.iter().map(|w| (*w).to_owned()).collect(),
            from,
            watches: Duration::from_secs(seconds),
        };
        assert_eq!(
            usual,
            run(
                &["diagnose", "--json", "--duration=10s"],
                &[],
                From::Agent,
                10
            )
        );
        let past = call("diagnose", json!({"at": "03:10"})).unwrap();
        assert_eq!(
            past,
            run(&["diagnose", "--json", "--at=03:10"], &[], From::Store, 0)
        );
        let odd = call("compare", json!({"before": "--html=/etc/x", "after": "b"})).unwrap();
        assert_eq!(
            odd,
            run(
                &["baseline", "compare", "--json"],
                &["--html=/etc/x", "b"],
                From::Store,
                0
            )
        );
        assert_eq!(
            call("findings", json!({})).unwrap(),
            Call::Page("/findings")
        );
        for (tool, arguments, why) in [
            ("findings", json!({"x": 1}), "findings takes no arguments"),
            (
                "diagnose",
                json!({"x": 1}),
                "diagnose has no argument \"x\"; it has seconds, at",
            ),
            (
                "diagnose",
                json!({"seconds": 1e9}),
                "seconds is not a whole number of seconds, 1 to 300",
            ),
            (
                "diagnose",
                json!({"seconds": "1"}),
                "seconds is not a whole number of seconds, 1 to 300",
            ),
            (
                "what_if",
                json!({"threads": -1}),
                "threads is not a whole number above 0",
            ),
            ("who", json!({}), "who needs by"),
            ("who", json!({"by": ["client"]}), "by is not a text"),
            ("stuck", json!({"over": "\0"}), "over is not a text"),
        ] {
            assert_eq!(call(tool, arguments), Err(why.to_owned()));
        }
    }
}
