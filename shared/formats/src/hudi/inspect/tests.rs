use serde_json::json;

use super::*;

fn inspection(files: &[(&str, &str)]) -> Inspection {
    inspect(&files.iter().map(|(key, body)| ((*key).to_owned(), body.as_bytes().to_vec())).collect())
}

const PROPERTIES: &str =
    "hoodie.table.name=t\nhoodie.timeline.layout.version=2\nhoodie.table.version=8\nhoodie.table.timeline.timezone=UTC";

#[test]
fn an_empty_folder_is_no_table_and_properties_are_one() {
    assert!(inspection(&[]).is_empty());
    assert!(!inspection(&[(PROPERTIES_KEY, PROPERTIES)]).is_empty());
    let seen = inspection(&[(PROPERTIES_KEY, PROPERTIES)]);
    assert_eq!((seen.latest.position, seen.latest.table_id.as_deref()), (None, Some("t#")));
    assert_eq!((seen.warnings.len(), seen.pending), (0, Some(Vec::new())));
}

#[test]
fn positions_and_ids_are_texts() {
    let seen = inspection(&[(".hoodie/timeline/20260101000001000_20260101000002000.commit", "{}")]);
    let shown = serde_json::to_value(&seen).unwrap();
    assert_eq!(shown["commits"][0]["position"], json!("20260101000002000"));
    assert_eq!(shown["latest"]["snapshot_id"], json!("20260101000001000"));
    assert_eq!(serde_json::from_value::<Inspection>(shown).unwrap(), seen);
}

#[test]
fn the_latest_is_a_write_or_a_restore() {
    let write = (".hoodie/20260101000001000.commit", "{}");
    let seen = inspection(&[write, (".hoodie/20260101000002000.clean", "")]);
    assert_eq!(seen.latest.position, Some(Token::Text("20260101000001000".into())));
    assert_eq!(seen.commits.len(), 2);
    let seen = inspection(&[write, (".hoodie/20260101000002000.restore", "")]);
    assert_eq!(seen.latest.position, Some(Token::Text("20260101000002000".into())));
}

#[test]
fn a_person_is_told_what_is_unusual() {
    let seen = inspection(&[
        (
            PROPERTIES_KEY,
            "hoodie.table.name=t\nhoodie.timeline.layout.version=3\nhoodie.table.version=10\nhoodie.timeline.path=x",
        ),
        (".hoodie/20260101000001000.futureaction", ""),
    ]);
    assert_eq!(seen.warnings.len(), 5, "{:?}", seen.warnings);
    assert_eq!(seen.not_commits, [".hoodie/20260101000001000.futureaction"]);
    let seen = inspection(&[(PROPERTIES_KEY, ""), (".hoodie/20260101000001000.commit", "{")]);
    let files: Vec<_> = seen.damaged.iter().map(|damaged| damaged.file.as_str()).collect();
    assert_eq!(files, [".hoodie/20260101000001000.commit", PROPERTIES_KEY]);
}

#[test]
fn only_the_table_s_own_timeline_is_wanted() {
    let read = [
        ".hoodie/20260101000001000.clean",
        ".hoodie/timeline/20260101000001000_20260101000002000.commit",
        PROPERTIES_KEY,
    ];
    let named = [".hoodie/20260101000001000.inflight", ".hoodie/timeline/20260101000001000.x"];
    let others = [
        ".hoodie/metadata/.hoodie/20260101000001000.deltacommit",
        ".hoodie/archived/.commits_.archive.1_1-0-1",
        "t/.hoodie/20260101000001000.commit",
        "a=1/x.parquet",
    ];
    assert!(read.iter().all(|key| wants(key) && reads(key)));
    assert!(named.iter().all(|key| wants(key) && !reads(key)));
    assert!(others.iter().all(|key| !wants(key) && !reads(key)));
}
