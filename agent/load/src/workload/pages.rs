//! Times of pages: many files, read by one process one after the other. fio measures files; its log has the moment of each read.

use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

/// A directory of this host, not of the server, for fio's logs; removed at the end.
#[derive(Debug)]
pub struct PageLogs(tempfile::TempDir);

impl PageLogs {
    /// Makes the directory.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn make() -> anyhow::Result<PageLogs> {
        let dir = tempfile::Builder::new().prefix("nfscope-pages").tempdir();
        dir.map(PageLogs)
            .context("cannot make a directory for fio's logs; fix: set TMPDIR to one on this host")
    }

    /// Prefix of the paths of all logs.
    pub fn prefix(&self) -> PathBuf {
        self.0.path().join("page")
    }

    /// Seconds of each page of `files` files in the run that has ended; removes the logs.
    ///
    /// # Errors
    /// When a log cannot be read.
    pub fn take(&self, files: usize) -> anyhow::Result<Vec<f64>> {
        let mut all = Vec::new();
        let at = self.0.path();
        let failed = |path: &Path| format!("cannot read fio's log {}", path.display());
        for entry in fs::read_dir(at).with_context(|| failed(at))? {
            let path = entry.with_context(|| failed(at))?.path();
            let text = fs::read_to_string(&path).with_context(|| failed(&path))?;
            all.extend(of_process(&text, files));
            let _ = fs::remove_file(&path);
        }
        Ok(all)
    }
}

/// Pages of one process: from the end of the last file of a page to the end of the last file of the next.
fn of_process(log: &str, files: usize) -> Vec<f64> {
    // Format of a line: 1234, 1, 0, 16384, 0, 0 has milliseconds, one I/O, and so on.
    let ends = log
        .lines()
        .filter_map(|l| l.split(',').next()?.trim().parse::<f64>().ok());
    let ends: Vec<f64> = ends.skip(files - 1).step_by(files).collect();
    ends.windows(2).map(|w| (w[1] - w[0]) / 1e3).collect()
}

/// Seconds that this part of the pages did not exceed; `None` where fewer than ten pages are beyond it.
pub fn quantile(pages: &mut [f64], q: f64) -> Option<f64> {
    pages.sort_by(f64::total_cmp);
    let beyond = pages.len() as f64 * (1.0 - q);
    if beyond < 10.0 {
        return None;
    }
    let at = (pages.len() as f64 * q).ceil() as usize;
    pages.get(at.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_from_one_end_to_the_next() {
        let ms = [1, 2, 4, 7, 11, 16, 22];
        let log: String = ms
            .iter()
            .map(|t| format!("{t}, 1, 0, 16384, 0, 0\n"))
            .collect();
        assert_eq!(of_process(&log, 2), [0.005, 0.009]);
        assert_eq!(of_process(&log, 100), [0.0; 0]);
        let mut pages: Vec<f64> = (1..=1000).map(f64::from).rev().collect();
        assert_eq!(quantile(&mut pages, 0.99), Some(990.0));
        assert_eq!(quantile(&mut pages[..999], 0.99), None);
        assert_eq!(quantile(&mut pages[..20], 0.5), Some(10.0));
    }
}
