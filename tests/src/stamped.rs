//! Files of measurements that were made in a machine: gzip, with a digest of everything that the measurement depends on as the comment of
//! the header.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

/// Creates a file with this digest, and its folder. The header has no time and no file name: equal contents give equal bytes.
///
/// # Errors
/// When the file cannot be created.
pub(crate) fn create(path: &Path, digest: String) -> Result<GzEncoder<File>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let out = File::create(path).with_context(|| format!("writing {}", path.display()))?;
    let gzip = GzBuilder::new().comment(digest);
    Ok(gzip.write(out, Compression::best()))
}

/// Opens a file. `made_by` is the command that makes a missing one.
///
/// # Errors
/// When there is no file.
pub(crate) fn open(path: &Path, made_by: &str) -> Result<GzDecoder<BufReader<File>>> {
    let missing = || format!("{} is missing: {made_by} makes it", path.display());
    let file = File::open(path).with_context(missing)?;
    Ok(GzDecoder::new(BufReader::new(file)))
}

/// True if the file exists and has this digest.
///
/// # Errors
/// When the file cannot be read, or is no gzip file.
pub(crate) fn has(path: &Path, digest: &str, made_by: &str) -> Result<bool> {
    if !path.exists() {
        return Ok(false);
    }
    let gzip = open(path, made_by)?;
    let header = gzip
        .header()
        .with_context(|| format!("{} is no gzip file", path.display()))?;
    Ok(header.comment() == Some(digest.as_bytes()))
}
