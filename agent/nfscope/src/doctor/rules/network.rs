//! TCP buffers against the bandwidth-delay product, and TCP features that are switched off.

use crate::doctor::answer::Answer;
use crate::doctor::host::Host;
use crate::doctor::rule::Rule;
use nfscope_text::units;

/// Buffers that are too small for a connection to fill its link.
pub const BUFFERS: Rule = Rule {
    name: "tcp buffers",
    why: "A connection has at most one buffer under way in a round trip. Where bandwidth times delay is more, it never fills the link, \
          whatever disks and threads do.",
    source: "Documentation/networking/ip-sysctl.rst, tcp_rmem and tcp_wmem; RFC 7323, section 1.1",
    look: buffers,
};

/// Third value of a sysctl with minimum, default and maximum, in bytes.
fn largest(host: &Host, name: &str) -> Option<f64> {
    let text = host.text(&format!("/proc/sys/net/ipv4/{name}")).ok()?;
    text.split_ascii_whitespace().nth(2)?.parse().ok()
}

fn buffers(host: &Host) -> Vec<Answer> {
    let (Some(receive), Some(send)) = (largest(host, "tcp_rmem"), largest(host, "tcp_wmem")) else {
        return vec![Answer::unknown(
            "sizes of TCP buffers cannot be read",
            "see `sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem`",
        )];
    };
    let sizes = format!(
        "writes {:.1} MiB, reads {:.1} MiB at most",
        receive / MIB,
        send / MIB
    );
    let said = match &host.sockets {
        Ok(said) => said,
        Err(none) => {
            return vec![Answer::unknown(
                format!("{sizes}; round trips are not known: {}", none.why),
                none.how,
            )];
        }
    };
    let Some((client, delay)) = longest_trip(said) else {
        return vec![Answer::unknown(
            format!("{sizes}; round trips are not known: no client is connected"),
            "run it again while clients are connected",
        )];
    };
    let trip = units::seconds(delay);
    let Some((link, speed)) = fastest_link(host) else {
        return vec![Answer::unknown(
            format!("{sizes}, {trip} to {client}; the speed of the link is not known"),
            format!(
                "compare with the link: one connection carries at most {} there",
                units::bytes(receive.min(send) / delay)
            ),
        )];
    };
    let most = receive.min(send) / delay;
    let says = format!(
        "{sizes}: with {trip} to {client} one connection carries at most {}; {link} has {}",
        units::bytes(most),
        units::bytes(speed)
    );
    match most < speed {
        true => {
            // The buffer size includes the kernel's overhead per packet. Twice the payload is enough.
            let enough = (2.0 * speed * delay / MIB).ceil();
            vec![Answer::consider(
                says,
                format!(
                    "raise the third number of net.ipv4.tcp_rmem and net.ipv4.tcp_wmem to {enough:.0} MiB, or mount with nconnect there"
                ),
            )]
        }
        false => vec![Answer::good(says)],
    }
}

const MIB: f64 = 1_048_576.0;

/// Client with the largest minimum round-trip time, in seconds, by the output of `ss -Htni`: a line with addresses, and a line with words
/// such as `minrtt:0.35`, in milliseconds.
fn longest_trip(said: &str) -> Option<(String, f64)> {
    let mut client = None;
    let mut longest: Option<(String, f64)> = None;
    for line in said.lines() {
        if !line.starts_with([' ', '\t']) {
            let peer = line.split_ascii_whitespace().next_back();
            client = peer
                .and_then(|p| p.rsplit_once(':'))
                .map(|(a, _)| a.to_owned());
            continue;
        }
        let shortest = line
            .split_ascii_whitespace()
            .find_map(|w| w.strip_prefix("minrtt:"));
        let seconds = shortest
            .and_then(|ms| ms.parse::<f64>().ok())
            .map(|ms| ms / 1e3);
        if let (Some(client), Some(s)) = (&client, seconds.filter(|s| s.is_finite() && *s > 0.0))
            && longest.as_ref().is_none_or(|(_, l)| s > *l)
        {
            longest = Some((client.clone(), s));
        }
    }
    longest
}

/// Name and speed of the fastest network card that is up, in bytes per second. Virtual interfaces have no speed, or an invented one.
fn fastest_link(host: &Host) -> Option<(String, f64)> {
    const NET: &str = "/sys/class/net";
    let mut fastest: Option<(String, f64)> = None;
    for name in host.names(NET).ok()? {
        let of = |file: &str| host.text(&format!("{NET}/{name}/{file}")).ok();
        let hardware = host.names(&format!("{NET}/{name}/device")).is_ok();
        let up = of("operstate").is_some_and(|s| s.trim() == "up");
        let megabits: Option<f64> = of("speed").and_then(|s| s.trim().parse().ok());
        let Some(speed) = megabits.filter(|m| hardware && up && *m > 0.0) else {
            continue;
        };
        let speed = speed * 1e6 / 8.0;
        if fastest.as_ref().is_none_or(|(_, f)| speed > *f) {
            fastest = Some((name, speed));
        }
    }
    fastest
}

/// TCP features that should be on.
pub const TCP: Rule = Rule {
    name: "tcp",
    why: "Without window scaling a connection has at most 64 KiB under way, without selective acknowledgements a loss is repaired slowly, \
          and without moderation the receive buffer stays at its default size.",
    source: "Documentation/networking/ip-sysctl.rst; RFC 7323; RFC 2018",
    look: |host| {
        let off: Vec<_> = ["tcp_window_scaling", "tcp_sack", "tcp_moderate_rcvbuf"]
            .into_iter()
            .map(|name| (name, host.number(&format!("/proc/sys/net/ipv4/{name}"))))
            .collect();
        let zero = off.iter().filter(|(_, n)| *n == Ok(0));
        let zero: Vec<_> = zero.map(|(name, _)| format!("net.ipv4.{name}=1")).collect();
        if !zero.is_empty() {
            let says = zero.iter().map(|z| z.replace("=1", "=0"));
            return vec![Answer::change(
                says.collect::<Vec<_>>().join(", "),
                format!("set {} in /etc/sysctl.d", zero.join(", ")),
            )];
        }
        match off.into_iter().find_map(|(_, n)| n.err()) {
            Some(e) => vec![e.answer()],
            None => vec![Answer::good(
                "window scaling, selective acknowledgements and moderation of the receive buffer are on",
            )],
        }
    },
};
