//! An inspection for people.

use std::fmt::Write as _;

use lakebell_formats::inspect::{CommitRow, Inspection, Token};

use crate::text::{BAD, BOLD, Table, fields, millis, paint};

/// The whole inspection.
pub(super) fn text(path: &str, inspection: &Inspection) -> String {
    let mut text = format!("{}\n", paint(BOLD, path));
    text.push_str(&fields("  ", &summary(inspection)));
    text.push('\n');
    text.push_str(&commits(&inspection.commits).or("No commit yet."));
    if !inspection.tags_without_snapshot.is_empty() {
        text.push_str("\nTags whose snapshot is gone:\n");
        for tag in &inspection.tags_without_snapshot {
            let _ = writeln!(text, "  {}  snapshot {}  {}", tag.tag, token(&tag.snapshot_id), tag.file);
        }
    }
    if !inspection.consumers.is_empty() {
        text.push_str("\nConsumers and the next snapshot that they read:\n");
        for (consumer, next) in &inspection.consumers {
            let _ = writeln!(text, "  {consumer}  {next}");
        }
    }
    if !inspection.damaged.is_empty() {
        let _ = writeln!(text, "\n{}", paint(BAD, "Damaged:"));
        for damaged in &inspection.damaged {
            let _ = writeln!(text, "  {}: {}", damaged.file, damaged.problem);
        }
    }
    text
}

fn summary(inspection: &Inspection) -> Vec<(&'static str, String)> {
    let latest = &inspection.latest;
    let counting = inspection.commits.iter().filter(|commit| commit.changes_data != Some(false)).count();
    let mut rows = vec![
        ("format", inspection.format.to_string()),
        (
            "latest",
            latest.snapshot_id.as_ref().map_or_else(|| "none".to_owned(), |id| format!("snapshot {}", token(id))),
        ),
        ("schema", latest.schema_id_of_table.map_or_else(String::new, |id| id.to_string())),
        ("commits", format!("{} readable, of which {counting} count as new data", inspection.commits.len())),
    ];
    let branches: Vec<String> = inspection
        .latest_by_branch
        .iter()
        .filter(|(name, _)| **name != latest.branch)
        .map(|(name, newest)| format!("{name} (snapshot {})", newest.as_ref().map_or_else(|| "none".to_owned(), token)))
        .collect();
    rows.push(("branches", branches.join(", ")));
    rows
}

fn commits(rows: &[CommitRow]) -> Table {
    let mut table = Table::new([
        "BRANCH",
        "SNAPSHOT",
        "KIND",
        "NEW DATA",
        "COMMITTED",
        "WATERMARK",
        "SCHEMA",
        "ROWS",
        "DELTA",
        "TAGS",
    ]);
    for row in rows {
        let number = |number: Option<i64>| number.map_or_else(String::new, |number| number.to_string());
        table.row([
            row.branch.clone(),
            row.snapshot_id.as_ref().map(token).unwrap_or_default(),
            row.commit_kind.clone().unwrap_or_default(),
            match row.changes_data {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => "unknown kind, counts".to_owned(),
            },
            millis(row.commit_time_ms),
            millis(row.watermark),
            number(row.schema_id),
            number(row.total_records),
            number(row.delta_records),
            row.tags.join(", "),
        ]);
    }
    table
}

fn token(token: &Token) -> String {
    match token {
        Token::Number(number) => number.to_string(),
        Token::Text(text) => text.clone(),
    }
}
