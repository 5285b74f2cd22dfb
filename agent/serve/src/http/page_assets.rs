//! Files of the page at `/`: vanilla modules, nothing from other servers. `page/main.js` says how they work together. `build.rs` removes
//! their comments and indentation.

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asset {
    path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: &'static str,
}

macro_rules! asset {
    ($name:literal, $type:expr) => {
        Asset {
            path: concat!("/page/", $name),
            content_type: $type,
            text: include_str!(concat!(env!("OUT_DIR"), "/page/", $name)),
        }
    };
}

const ALL: [Asset; 17] = [
    asset!("live.css", STYLE),
    asset!("address.js", SCRIPT),
    asset!("axis.js", SCRIPT),
    asset!("breakdown.js", SCRIPT),
    asset!("charts.js", SCRIPT),
    asset!("color.js", SCRIPT),
    asset!("dom.js", SCRIPT),
    asset!("format.js", SCRIPT),
    asset!("heatmap.js", SCRIPT),
    asset!("main.js", SCRIPT),
    asset!("model.js", SCRIPT),
    asset!("multiples.js", SCRIPT),
    asset!("pane.js", SCRIPT),
    asset!("panels.js", SCRIPT),
    asset!("recordings.js", SCRIPT),
    asset!("slow.js", SCRIPT),
    asset!("stream.js", SCRIPT),
];

/// All files of the page.
pub(super) fn all() -> &'static [Asset] {
    const { &ALL }
}

impl Asset {
    /// Name of the file.
    pub(super) fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

/// File at this path.
pub(super) fn find(path: &str) -> Option<Asset> {
    ALL.into_iter().find(|a| a.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::index;
    use crate::http::agent_link::gzip;
    use std::fs;
    use std::path::Path;

    /// The page loads exactly these files.
    #[test]
    fn the_page_is_small_and_complete() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/page");
        let files = fs::read_dir(&folder).unwrap().count();
        assert_eq!(files, ALL.len() + 1, "a file of the page is not served");
        let served = ALL.iter().map(|a| a.text).chain([index::PAGE]);
        let packed: usize = served.map(|t| gzip(t.as_bytes()).unwrap().len()).sum();
        // The limit of what authors write includes comments, so that none hide in them. It was 100,000 before the page had headline
        // figures, sorted tables and three scales of colours. A browser loads the packed files, whose limit has not changed.
        let written = fs::read_dir(&folder).unwrap();
        let written: u64 = written.map(|f| f.unwrap().metadata().unwrap().len()).sum();
        assert!(written <= 112_000, "{written} bytes are written");
        assert!(packed <= 35_000, "{packed} bytes packed");
    }

    /// Shares of findings are of different things: of request time, of requests, of calls. Only the sentence of each says of which.
    #[test]
    fn a_card_says_of_no_share_what_it_is_of() {
        let panels = find("/page/panels.js").unwrap().text;
        let card = panels.split("const card =").nth(1).unwrap();
        let card = card.split("const active =").next().unwrap();
        assert!(card.contains("${part}, ${when}") && card.contains("finding.summary"));
        assert!(!card.contains(" of the "), "{card}");
    }

    #[test]
    fn modules_import_what_is_served() {
        for asset in ALL.iter().filter(|a| a.content_type == SCRIPT) {
            for line in asset.text.lines().filter(|l| l.starts_with("import ")) {
                let name = line.split('"').nth(1).unwrap().trim_start_matches("./");
                assert!(
                    find(&format!("/page/{name}")).is_some(),
                    "{}: {line}",
                    asset.path
                );
            }
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
            ] {
                assert!(!asset.text.contains(word), "{}: {word}", asset.path);
            }
            assert!(
                !asset.text.contains("http://") && !asset.text.contains("https://"),
                "{}",
                asset.path
            );
        }
    }
}
