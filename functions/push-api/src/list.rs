//! Lists, page by page.

use std::collections::HashMap;
use std::pin::Pin;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lakebell_engine::ports::items;
use lakebell_engine::{EngineError, ErrorKind};
use serde::Serialize;

use crate::problem::ApiError;

/// Items of a page where nothing else is asked for.
pub(crate) const DEFAULT_LIMIT: usize = 50;
/// Most items of a page.
pub(crate) const MAX_LIMIT: usize = 200;
/// Longest page mark.
const MAX_MARK_BYTES: usize = 4096;

/// What a caller asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// Most items.
    pub(crate) limit: usize,
    /// The mark that an earlier answer gave.
    pub(crate) after: Option<String>,
}

/// The answer's mark for where a history goes on.
pub(crate) fn history_next(next: Option<&str>) -> Option<String> {
    next.map(mark)
}

/// A mark that the store does not know is the caller's, whatever the store calls it.
pub(crate) fn about_mark(error: EngineError) -> ApiError {
    if error.kind() == ErrorKind::Invalid { wrong_mark() } else { error.into() }
}

/// Most items that one request with filters looks at; the mark in its answer leads on.
const MAX_SCANNED: usize = 1_000;
/// Most reads of one request.
const MAX_READS: usize = 20;

/// One read of a history: so many, after this mark.
pub(crate) type Reading<'a, T> = Pin<Box<dyn Future<Output = Result<items::Page<T>, EngineError>> + Send + 'a>>;

/// Reads a history on until the page is full, it ends, or enough was looked at. A page with filters may have
/// fewer items than asked for and still a mark.
pub(crate) async fn filtered<'a, T>(
    page: &Page,
    read: impl Fn(usize, Option<String>) -> Reading<'a, T>,
    admits: impl Fn(&T) -> bool,
) -> Result<Listed<T>, ApiError> {
    let mut items = Vec::new();
    let mut next = page.history_after()?;
    let mut scanned = 0;
    for _ in 0..MAX_READS {
        let read = read(page.limit - items.len(), next.clone()).await.map_err(about_mark)?;
        scanned += read.found.len();
        items.extend(read.found.into_iter().filter(&admits));
        next = read.next;
        if next.is_none() || items.len() >= page.limit || scanned >= MAX_SCANNED {
            break;
        }
    }
    Ok(Listed { items, next: history_next(next.as_deref()) })
}

/// One of several words, in capitals or not, that a filter may be.
pub(crate) fn word<T: Copy>(
    query: &HashMap<String, String>,
    name: &str,
    words: &[T],
    text: impl Fn(T) -> &'static str,
) -> Result<Option<T>, ApiError> {
    let Some(given) = query.get(name).filter(|given| !given.is_empty()) else { return Ok(None) };
    words.iter().copied().find(|word| text(*word).eq_ignore_ascii_case(given)).map(Some).ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|word| text(*word)).collect();
        ApiError::invalid(name, format!("`{given}` is no {name}"), format!("use one of {}", names.join(", ")))
    })
}

/// One page of a list.
#[derive(Debug, Serialize)]
pub(crate) struct Listed<T> {
    /// The items, in a stable order.
    pub(crate) items: Vec<T>,
    /// The mark to go on from; null at the end.
    pub(crate) next: Option<String>,
}

impl Page {
    /// The page that a query asks for.
    pub(crate) fn of(query: &HashMap<String, String>) -> Result<Self, ApiError> {
        let limit = match query.get("limit") {
            None => DEFAULT_LIMIT,
            Some(text) => text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit)).ok_or_else(|| {
                ApiError::invalid(
                    "limit",
                    format!("`{text}` is no limit"),
                    format!("use a number from 1 to {MAX_LIMIT}"),
                )
            })?,
        };
        let after = query.get("after").filter(|mark| !mark.is_empty()).cloned();
        if after.as_ref().is_some_and(|mark| mark.len() > MAX_MARK_BYTES) {
            return Err(wrong_mark());
        }
        Ok(Self { limit, after })
    }

    /// Where a history goes on.
    pub(crate) fn history_after(&self) -> Result<Option<String>, ApiError> {
        self.after.as_deref().map(unmark).transpose()
    }

    /// The page out of a whole list, sorted by `name`.
    pub(crate) fn cut<T>(&self, mut all: Vec<T>, name: impl Fn(&T) -> String) -> Result<Listed<T>, ApiError> {
        all.sort_by_cached_key(&name);
        let last = self.after.as_deref().map(unmark).transpose()?;
        let mut rest = all.into_iter().skip_while(|item| last.as_ref().is_some_and(|last| name(item) <= *last));
        let items: Vec<T> = rest.by_ref().take(self.limit).collect();
        let next = rest.next().and(items.last()).map(|item| mark(&name(item)));
        Ok(Listed { items, next })
    }
}

fn mark(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(name)
}

fn unmark(mark: &str) -> Result<String, ApiError> {
    URL_SAFE_NO_PAD.decode(mark).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(wrong_mark)
}

/// A mark that no answer gave.
fn wrong_mark() -> ApiError {
    ApiError::invalid("after", "it is no mark of this list", "use `next` of an earlier answer, or leave it out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_tile_a_list() {
        let names: Vec<String> = (0..7).map(|n| format!("paimon://db/t{n}")).collect();
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let listed = Page { limit: 3, after }.cut(names.clone(), String::clone).unwrap();
            assert!(listed.items.len() <= 3);
            seen.extend(listed.items);
            after = listed.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, names);
        let exact = Page { limit: 7, after: None }.cut(names, String::clone).unwrap();
        assert_eq!(exact.next, None);
    }

    #[test]
    fn wrong_pages_are_refused() {
        let query = |name: &str, value: &str| HashMap::from([(name.to_owned(), value.to_owned())]);
        for limit in ["0", "201", "-1", "x", ""] {
            assert_eq!(Page::of(&query("limit", limit)).unwrap_err().field(), Some("limit"), "{limit}");
        }
        assert_eq!(Page::of(&query("limit", "200")).unwrap().limit, 200);
        assert_eq!(Page::of(&HashMap::new()).unwrap(), Page { limit: 50, after: None });
        assert!(Page::of(&query("after", &"a".repeat(5000))).is_err());
        assert!(Page { limit: 1, after: Some("!".into()) }.cut(vec![1], ToString::to_string).is_err());
    }
}
