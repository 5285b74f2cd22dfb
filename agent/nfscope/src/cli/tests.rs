//! Rules about the whole command line.

use super::*;

#[test]
fn clap_finds_no_fault_with_it() {
    Cli::command().debug_assert();
}

#[test]
fn the_agent_serves_on_addresses_or_on_sockets_of_systemd() {
    let parse = |args: &[&str]| Cli::try_parse_from([&["nfscope", "agent"], args].concat());
    assert!(parse(&["--web.systemd-socket"]).is_ok());
    let both = ["--web.systemd-socket", "--web.listen-address", ":9943"];
    let e = parse(&both).unwrap_err().to_string();
    assert!(e.contains("cannot be used with"), "{e}");
}

#[test]
fn old_flags_are_aliases_that_help_does_not_show() {
    let command = |args: &[&str]| {
        let args = ["nfscope"].iter().chain(args);
        format!("{:?}", Cli::try_parse_from(args).unwrap().command)
    };
    for (before, old, new, value) in [
        (&["slow"][..], "--over", "--min-latency", "5ms"),
        (&["diagnose"], "--for", "--duration", "2m"),
        (&["baseline", "record", "a"], "--for", "--duration", "2h"),
        (
            &["baseline", "record", "a", "--until-ci", "5%"],
            "--at-most",
            "--max-duration",
            "1d",
        ),
        (
            &["baseline", "compare", "a", "b"],
            "--least",
            "--min-change",
            "0",
        ),
        (&["baseline", "import", "f"], "--as", "--name", "b"),
        (
            &[
                "workload",
                "run",
                "mail",
                "--dir",
                "/mnt",
                "--until-ci",
                "5",
            ],
            "--at-most",
            "--max-duration",
            "90s",
        ),
    ] {
        let with = |flag| command(&[before, &[flag, value]].concat());
        assert_eq!(with(old), with(new));
        assert_ne!(with(new), command(before), "{new}");
    }
    let mut all = vec![Cli::command()];
    while let Some(mut command) = all.pop() {
        let help = command.render_long_help().to_string();
        for old in ["--over", "--for ", "--at-most", "--least", "--as "] {
            // `stuck --over` is an age and not a latency, so it is no old name there.
            if (command.get_name(), old) == ("stuck", "--over") {
                continue;
            }
            assert!(!help.contains(old), "{}: {old}", command.get_name());
        }
        all.extend(command.get_subcommands().cloned());
    }
}
