use super::*;
use crate::delta::{NUMBERED_PREFIX, classify};

/// Runs a search over a log that holds some versions, and counts the listings.
fn search(known: Option<u64>, log: std::ops::Range<u64>) -> (Option<u64>, u32) {
    let mut search = NewestSearch::new(known);
    let mut listings = 0;
    while let Some(key) = search.start_after() {
        listings += 1;
        let after = search.probed();
        assert_eq!(key, after.map_or_else(|| NUMBERED_PREFIX.to_owned(), commit_key));
        let next = after.map_or(log.start, |version| version.saturating_add(1).max(log.start));
        search.answer(Some(next).filter(|next| log.contains(next)));
        assert!(listings < 200, "the search does not end");
    }
    (search.newest(), listings)
}

#[test]
fn it_finds_the_newest_of_any_log_in_few_listings() {
    for (start, end) in [(0, 1), (0, 2), (0, 3), (0, 10), (0, 1_000_000), (999_990, 1_000_000), (7, 8), (0, 12_345_678)]
    {
        let (newest, listings) = search(None, start..end);
        assert_eq!(newest, Some(end - 1), "{start}..{end}");
        assert!(listings <= 50, "{listings} listings for {start}..{end}");
    }
    assert_eq!(search(None, 0..0), (None, 1));
    for size in 0..200 {
        assert_eq!(search(None, 0..size).0, size.checked_sub(1));
    }
}

#[test]
fn from_a_known_version_it_looks_near_it() {
    assert_eq!(search(Some(999_999), 0..1_000_000), (Some(999_999), 1));
    for newer in 1..10 {
        let (newest, listings) = search(Some(1_000_000), 0..1_000_001 + newer);
        assert_eq!(newest, Some(1_000_000 + newer));
        assert!(listings <= 8, "{listings} listings for {newer} newer ones");
    }
    assert_eq!(search(Some(3), 500..600).0, Some(599), "the known one was cleaned up");
}

#[test]
fn strange_answers_end_it_all_the_same() {
    let mut at_the_end = NewestSearch::new(Some(u64::MAX));
    assert!(at_the_end.start_after().is_some());
    at_the_end.answer(None);
    assert_eq!((at_the_end.start_after(), at_the_end.newest()), (None, Some(u64::MAX)));
    let mut told_wrong = NewestSearch::new(Some(10));
    told_wrong.answer(Some(3));
    assert_eq!((told_wrong.start_after(), told_wrong.newest()), (None, Some(10)));
    assert!(classify(&commit_key(1)).is_some());
}
