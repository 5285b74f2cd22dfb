//! `/about`: a page without scripts. It says whether the agent measures, and links to every other path.

use crate::service::endpoint::{Asked, Content, Declaration, Endpoint, Refusal, Reply, Served};
use nfscope_api::build_info::{REVISION, VERSION};
use nfscope_model::status::{Group, Status, group};
use nfscope_source::hostname::own_name;
use nfscope_text::html::escape;

const STYLE: &str = include_str!("about.css");

pub(super) struct About;

impl Endpoint for About {
    const PATH: &str = "/about";
    const ABOUT: &str = "this page";
    const HELP: &str = "a page without scripts that links all others";
    const CONTENT: Content = Content::Html("default-src 'none'; style-src 'unsafe-inline'");
    const SERVED: Served = Served::Each;
    type Query = ();

    async fn answer(asked: &Asked, (): ()) -> Result<Reply, Refusal> {
        let html = render(&own_name(), &asked.source.status(), asked.endpoints);
        Ok(Reply::Body(html.into()))
    }
}

/// Renders the page in one file: no script, no font, no request to other servers.
pub(super) fn render(host: &str, status: &Status, endpoints: &[Declaration]) -> String {
    let host = escape(host);
    let (edge, state) = match status.health() {
        Ok(()) => ("good", "NFS operations are being timed.".to_owned()),
        Err(why) => ("warn", escape(&why)),
    };
    let rows: String = group(status.probes().iter()).iter().map(rows).collect();
    let probes = if rows.is_empty() {
        String::new()
    } else {
        format!(
            "<h2>Probes</h2>\n<div class=\"table\"><table>\n\
             <tr><th>Probe</th><th>State</th><th>Measures</th><th>Hook</th></tr>\n{rows}</table></div>\n"
        )
    };
    let link = |e: &Declaration| {
        let (path, text) = (e.path, e.about);
        format!("<li><a href=\"{path}\">{path}</a><p class=\"soft\">{text}</p></li>\n")
    };
    let others = endpoints.iter().filter(|e| e.path != About::PATH);
    let links: String = others.map(link).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>nfscope on {host}</title>\n<style>\n{STYLE}</style>\n</head>\n<body><main>\n\
         <h1>nfscope</h1>\n\
         <p class=\"soft\">Where NFS operations spend their time on <b>{host}</b> \u{b7} \
         version {VERSION} <span class=\"mono\">({REVISION})</span></p>\n\
         <p class=\"state\" style=\"--edge: var(--{edge})\">{state}</p>\n\
         <ul class=\"links\">\n\
         {links}</ul>\n{probes}</main></body>\n</html>\n"
    )
}

/// Rows of a group's programs, and below them the reason that keeps all of them from running.
fn rows(group: &Group) -> String {
    let mut out = String::new();
    for p in group.programs() {
        out += &format!(
            "<tr><td class=\"mono\">{}/{}</td><td class=\"{state}\">{state}</td><td>{}</td>\
             <td class=\"mono soft\">{}</td></tr>\n",
            escape(&p.probe),
            escape(&p.program),
            escape(&p.gives),
            escape(&p.hook),
            state = p.state.as_str(),
        );
    }
    let p = group.first();
    let why: Vec<_> = [&p.reason, &p.fix]
        .into_iter()
        .filter(|text| !text.is_empty())
        .map(|text| escape(text))
        .collect();
    if !why.is_empty() {
        out += &format!(
            "<tr class=\"why\"><td colspan=\"4\">\u{2191} {}</td></tr>\n",
            why.join("<br>")
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::{ProbeState, ProbeStatus};

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
        let html = render("h<b>", &Status::Running(probes.as_slice().into()), &[]);
        assert!(!html.contains("<script>"));
        assert!(html.contains("&lt;script&gt;&quot;&amp;"));
        assert!(html.contains("nfscope on h&lt;b&gt;"));
        assert!(
            !html.contains("http://") && !html.contains("https://"),
            "an external asset"
        );
    }
}
