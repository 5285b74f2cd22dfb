//! `/windows`: the windows that the page draws, from memory, from the history on a disk, or of a recording.

use super::recordings::{self, NO_RECORDINGS};
use crate::service::endpoint::{Asked, Endpoint, Refusal, Reply, Served};
use crate::service::source_thread::ATTACHING;
use nfscope_api::access::Access;
use nfscope_api::link::Why;
use nfscope_api::windows_query::Wanted;
use nfscope_model::status::Status;
use std::time::Instant;

/// Reason for an agent that only has the last quarter of an hour.
const NO_HISTORY: &str = "this agent keeps no history on a disk; --history-directory, or the unit of the package, gives it a place";

pub(super) struct Windows;

impl Endpoint for Windows {
    const PATH: &str = "/windows";
    const ABOUT: &str = "JSON: the last quarter of an hour, for the page";
    const HELP: &str = "\
data of the page: the last quarter of an hour, a range from the
disk (from, to: seconds since 1970; columns: 1 to 400), or a
baseline (recording=NAME), as JSON";
    const SERVED: Served = Served::Shared;
    const LARGE: bool = true;
    type Query = Wanted;

    fn access(wanted: &Wanted) -> Access {
        match wanted {
            Wanted::Latest(_) | Wanted::Past(_) => Access::Everybody,
            Wanted::Recorded(_) => Access::Details,
        }
    }

    fn served(wanted: &Wanted) -> Served {
        match wanted {
            Wanted::Latest(_) => Served::Shared,
            Wanted::Past(_) | Wanted::Recorded(_) => Served::Disk,
        }
    }

    async fn answer(asked: &Asked, wanted: Wanted) -> Result<Reply, Refusal> {
        let source = &asked.source;
        let windows = match wanted {
            Wanted::Latest(_) if source.status() == Status::Attaching => {
                return Err(Refusal::new(Why::Busy, ATTACHING));
            }
            Wanted::Latest(seen) => {
                let work =
                    source.on_thread(move |r| r.windows.history.answer(seen, Instant::now()));
                work.await.and_then(|windows| windows)
            }
            Wanted::Past(range) => match source.archive() {
                Some(archive) => archive.tell(range).await,
                None => return Err(Refusal::new(Why::Absent, NO_HISTORY)),
            },
            Wanted::Recorded(what) => match source.recordings() {
                Some(recordings) => Ok(recordings.tell(what).await.map_err(recordings::refusal)?),
                None => return Err(Refusal::new(Why::Absent, NO_RECORDINGS)),
            },
        };
        Ok(Reply::Body(
            windows.map_err(Refusal::with(Why::Busy))?.into(),
        ))
    }
}
