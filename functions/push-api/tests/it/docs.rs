//! Every code has its page, every page its code, every route its row.

use std::collections::BTreeSet;

use lakebell_engine::ErrorKind;
use lakebell_push_api::Code;
use lakebell_push_api::routes::ROUTES;

use crate::support::workspace;

#[test]
fn every_code_has_a_page() {
    let codes: BTreeSet<String> = ErrorKind::ALL
        .into_iter()
        .map(Code::Engine)
        .chain(Code::OWN)
        .map(|code| format!("{}.md", code.as_str()))
        .collect();
    let pages: BTreeSet<String> = std::fs::read_dir(workspace().join("docs/errors"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(pages, codes);
    for page in pages {
        let text = std::fs::read_to_string(workspace().join("docs/errors").join(&page)).unwrap();
        let code = page.trim_end_matches(".md");
        assert!(text.starts_with(&format!("# {code}\n")), "{page} begins with its code");
        assert!(text.contains("## What to do"), "{page} says what to do");
    }
}

#[test]
fn every_route_is_in_the_reference() {
    let text = std::fs::read_to_string(workspace().join("docs/api.md")).unwrap();
    for route in ROUTES {
        let row = format!("| `{} {}` |", route.method, route.template);
        assert!(text.contains(&row), "docs/api.md has no row {row}");
    }
    for code in ErrorKind::ALL.into_iter().map(Code::Engine).chain(Code::OWN) {
        let row = format!("| [`{}`](errors/{}.md) | {} |", code.as_str(), code.as_str(), code.status());
        assert!(text.contains(&row), "docs/api.md has no row {row}");
    }
}
