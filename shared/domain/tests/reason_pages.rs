//! Every reason has a page that says what to do, and every page is about a reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lakebell_domain::reason::ReasonCode;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reasons")
}

fn codes() -> BTreeSet<&'static str> {
    ReasonCode::ALL.iter().map(|code| code.as_str()).collect()
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages: BTreeSet<String> =
        names.filter_map(|name| name.strip_suffix(".md").map(str::to_owned)).filter(|name| name != "README").collect();
    let pages: BTreeSet<&str> = pages.iter().map(String::as_str).collect();
    let codes = codes();
    let without_page: Vec<_> = codes.difference(&pages).collect();
    let without_code: Vec<_> = pages.difference(&codes).collect();
    assert!(without_page.is_empty(), "write docs/reasons/<code>.md for {without_page:?}");
    assert!(without_code.is_empty(), "no reason has these codes, remove their pages: {without_code:?}");
}

#[test]
fn a_page_says_what_it_means_how_it_looks_and_what_to_do() {
    for code in codes() {
        let page = fs::read_to_string(folder().join(format!("{code}.md"))).unwrap();
        assert!(page.starts_with(&format!("# {code}\n")), "{code}: the title is the code");
        assert!(page.contains("Verdict:"), "{code}: the page names the verdict");
        for section in ["## In `lakebell why`", "## What to do"] {
            assert!(page.contains(section), "{code}: the section `{section}` is missing");
        }
    }
}

#[test]
fn the_index_lists_every_page() {
    let index = fs::read_to_string(folder().join("README.md")).unwrap();
    for code in codes() {
        assert!(index.contains(&format!("[{code}]({code}.md)")), "{code} is not in docs/reasons/README.md");
    }
}
