//! NFS versions beside each other on one client: blocks of a load, compared within rounds.
//!
//! Each round has a block of every version, in random order. A drift affects all versions of a round, so pairs within rounds are compared.
//! The quantities are those of T. Haynes and M. Suggs, A Taxonomy of NFS v4 Performance, Connectathon 2005; throughput against threads is
//! that of Kim and Lee, Experimental evaluation of pNFS with network direct attached disks.

mod analysis;
mod block;
mod distance;
mod html;
mod result;
mod scale;
mod text;

pub use analysis::{LoadBlocks, compare};
pub use block::{Block, Metric};
pub use distance::Distance;
pub use html::page;
pub use result::{LeftOut, LoadResult, Report, Row, Setting, Verdict};
pub use scale::{Point, Scale, ScaleBlock, Slope, scale};
pub use text::text;
pub(crate) use text::{factor, probability};
