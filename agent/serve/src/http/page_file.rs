//! The page as one file: its modules, its style and its data are inside, so that it works from a disk without any request.

use crate::endpoints::index::PAGE;
use crate::http::page_assets;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nfscope_text::html::escape;
use serde_json::{Map, Value, json};

/// Content security policy of the file: nothing is loaded, and no server is asked.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// Script that answers in place of the agent. It must stand before the page's own script, which asks at once.
const ANSWERS: &str = include_str!("page_file.js");
const STYLE: &str = include_str!("page_file.css");

/// Contents of the file.
pub struct Contents<'a> {
    /// Title of the document.
    pub title: &'a str,
    /// Text of the report.
    pub text: &'a str,
    /// Answers of the agent: `windows`, `findings`, `probes`.
    pub data: &'a Value,
    /// End of the last window, in seconds since 1970.
    pub at: f64,
    /// Seconds that the page shows.
    pub range: u32,
}

/// Writes the file.
pub fn write(contents: &Contents) -> String {
    let mut modules = Map::new();
    let (mut style, mut main) = (String::new(), String::new());
    for asset in page_assets::all() {
        let name = asset.name();
        match name.strip_suffix(".js") {
            Some("main") => main = bare(asset.text),
            Some(_) => {
                let url = format!(
                    "data:text/javascript;base64,{}",
                    STANDARD.encode(bare(asset.text))
                );
                modules.insert(format!("nfscope/{name}"), url.into());
            }
            None => style += asset.text,
        }
    }
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<style>{style}{STYLE}</style>\n\
         <script type=\"importmap\">{}</script>\n",
        script(&json!({"imports": modules}))
    );
    let mut data = contents.data.clone();
    data["hash"] = format!("#range={}&at={:.2}", contents.range, contents.at).into();
    let tail = format!(
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script>{ANSWERS}</script>\n<script type=\"module\">{main}</script>\n",
        script(&data)
    );
    let words = format!(
        "<section class=\"report\" aria-labelledby=\"report-title\">\n<h2 id=\"report-title\">Report</h2>\n<pre>{}</pre>\n</section>",
        escape(contents.text)
    );
    let mut page = String::new();
    for line in PAGE.lines() {
        let line = line.trim();
        if line.contains("/page/live.css") {
            page += &head;
        } else if line.starts_with("<title>") {
            page += &format!("<title>{}</title>\n", escape(contents.title));
        } else if line == "<main>" {
            page += "<main>\n";
            page += &words;
            page += "\n";
        } else if line == "</body>" {
            page += &tail;
            page += "</body>\n";
        } else if !line.contains("/page/main.js") && !line.contains("href=\"/") {
            page += line;
            page += "\n";
        }
    }
    page
}

/// Module that imports others by names that the document maps: a module of a data URL has no location that relative imports could use.
fn bare(text: &str) -> String {
    text.replace("from \"./", "from \"nfscope/")
}

/// JSON inside a script; no text in it can end the script.
fn script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> String {
        write(&Contents {
            title: "nfs1 & others",
            text,
            data: &json!({"windows": {"windows": [], "host": "</script><b>"}}),
            at: 1_800_000_000.0,
            range: 3600,
        })
    }

    #[test]
    fn the_file_asks_nobody_and_has_all_modules() {
        let page = file("1 < 2");
        for part in [
            "src=\"/",
            "href=\"/",
            "from \"./",
            "</script><b>",
            "http://",
            "https://",
        ] {
            assert!(!page.contains(part), "{part}");
        }
        assert!(
            page.contains("<title>nfs1 &amp; others</title>")
                && page.contains("<pre>1 &lt; 2</pre>")
        );
        assert!(
            page.contains("default-src 'none'") && page.contains("#range=3600&at=1800000000.00")
        );
        let modules = page.matches("data:text/javascript;base64,").count();
        assert_eq!(
            modules,
            page_assets::all().len() - 2,
            "all but the style and main.js"
        );
        assert_eq!(page.matches("<main>").count(), 1);
        // Names that a module imports are in the map.
        for asset in page_assets::all() {
            for line in bare(asset.text)
                .lines()
                .filter(|l| l.starts_with("import "))
            {
                let name = line.split('"').nth(1).unwrap();
                assert!(page.contains(&format!("\"{name}\":\"data:")), "{line}");
            }
        }
    }
}
