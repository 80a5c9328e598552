//! Going through the pages of a list.

use std::ops::ControlFlow;

use lakebell_engine::ports::scheduler::Refusal;
use serde_json::Value;

use crate::session::{Session, data_of};

/// Rows of a page. The scheduler enforces no bound; this keeps pages well below the body limit.
const PAGE_SIZE: u64 = 100;
/// Pages gone through before a list is called too long to decide anything by.
const MOST_PAGES: u64 = 100;

/// Whether a list was gone through to where the reader wanted to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To its end, or to where the reader stopped.
    Whole,
    /// It has more than 10,000 rows that matter.
    TooLong,
}

/// Shows every row to `each`, page by page, until that says stop or the list ends.
///
/// Rows may show up twice, when new ones push others to the next page meanwhile.
pub(crate) async fn each_row(
    session: &mut Session<'_>,
    path: &str,
    filters: &[(&str, String)],
    mut each: impl FnMut(&Value) -> ControlFlow<()>,
) -> Result<Reach, Refusal> {
    for page in 1..=MOST_PAGES {
        let mut query = filters.to_vec();
        query.push(("pageNo", page.to_string()));
        query.push(("pageSize", PAGE_SIZE.to_string()));
        let data = data_of(session.get(path, &query).await)?;
        // Null data is no empty list: nothing is known then.
        let Some(rows) = data.get("totalList").and_then(Value::as_array) else {
            return Err(unexpected("the list came without rows"));
        };
        for row in rows {
            if each(row).is_break() {
                return Ok(Reach::Whole);
            }
        }
        let pages = data.get("totalPage").and_then(Value::as_u64);
        let is_last = pages.map_or((rows.len() as u64) < PAGE_SIZE, |pages| page >= pages);
        if rows.is_empty() || is_last {
            return Ok(Reach::Whole);
        }
    }
    Ok(Reach::TooLong)
}

/// A refusal for an answer that says success and is not what the contract has.
pub(crate) fn unexpected(detail: &str) -> Refusal {
    Refusal { code: "UNEXPECTED_ANSWER".to_owned(), detail: detail.to_owned() }
}
