//! The landing page: what this is, whether it measures, and where to go.

use crate::model::ProbeStatus;
use crate::reader::Status;
use crate::{REVISION, VERSION};

const STYLE: &str = include_str!("page.css");

/// One self-contained page: no script, no font, nothing from elsewhere.
pub(super) fn render(host: &str, status: &Status) -> String {
    let host = escape(host);
    let (edge, state) = match status.health() {
        Ok(()) => ("good", "NFS operations are being timed.".to_owned()),
        Err(why) => ("warn", escape(&why)),
    };
    let rows: String = status.probes().iter().map(row).collect();
    let probes = if rows.is_empty() {
        String::new()
    } else {
        format!(
            "<h2>Probes</h2>\n<div class=\"table\"><table>\n\
             <tr><th>Probe</th><th>State</th><th>Gives</th></tr>\n{rows}</table></div>\n"
        )
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>nfscope on {host}</title>\n<style>\n{STYLE}</style>\n</head>\n<body><main>\n\
         <h1>nfscope</h1>\n\
         <p class=\"soft\">Where every NFS operation's time goes, on <b>{host}</b> \u{b7} \
         version {VERSION} <span class=\"mono\">({REVISION})</span></p>\n\
         <p class=\"state\" style=\"--edge: var(--{edge})\">{state}</p>\n\
         <ul class=\"links\">\n\
         <li><a href=\"/metrics\">/metrics</a><p class=\"soft\">for Prometheus: text, OpenMetrics, native histograms</p></li>\n\
         <li><a href=\"/healthz\">/healthz</a><p class=\"soft\">200 while NFS operations are being timed</p></li>\n\
         <li><a href=\"/probes\">/probes</a><p class=\"soft\">JSON: every probe, its state and why</p></li>\n\
         <li><a href=\"/snapshot\">/snapshot</a><p class=\"soft\">JSON: every value, for <code>nfscope top</code></p></li>\n\
         </ul>\n{probes}</main></body>\n</html>\n"
    )
}

fn row(p: &ProbeStatus) -> String {
    let mut why = String::new();
    for text in [&p.reason, &p.fix] {
        if !text.is_empty() {
            why.push_str(&format!("<p class=\"soft\">{}</p>", escape(text)));
        }
    }
    format!(
        "<tr><td class=\"mono\">{}/{}<p class=\"soft\">{}</p></td><td class=\"{state}\">{state}</td><td>{}{why}</td></tr>\n",
        escape(&p.probe),
        escape(&p.program),
        escape(&p.hook),
        escape(&p.gives),
        state = p.state.as_str(),
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProbeState;

    #[test]
    fn a_reason_cannot_break_out_of_the_page() {
        let probes = [ProbeStatus {
            probe: "nfsd".into(),
            program: "p".into(),
            hook: "h".into(),
            gives: "g".into(),
            required: true,
            state: ProbeState::Waiting,
            reason: "<script>\"&".into(),
            fix: String::new(),
        }];
        let html = render("h<b>", &Status::Running(probes.as_slice().into()));
        assert!(!html.contains("<script>"));
        assert!(html.contains("&lt;script&gt;&quot;&amp;"));
        assert!(html.contains("nfscope on h&lt;b&gt;"));
        assert!(
            !html.contains("http://") && !html.contains("https://"),
            "an external asset"
        );
    }
}
