//! Tables and trees for people.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

/// Headings.
pub(crate) const BOLD: Style = Style::new().bold();
/// What is there for completeness.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What is well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What waits or changes.
pub(crate) const WAIT: Style = AnsiColor::Yellow.on_default();
/// What is wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();

/// A text in a style; the style is taken out again where nobody would see it.
pub(crate) fn paint(style: Style, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{style}{text}{style:#}") }
}

/// A verdict, a status or an outcome in the colour that it deserves.
pub(crate) fn painted_word(word: &str) -> String {
    let style = match word {
        "READY" | "SUCCESS" | "advanced" | "stored" => GOOD,
        "FAILED" | "FAILURE" | "STOPPED" | "UNKNOWN" | "refused" => BAD,
        word if word.starts_with("BLOCKED_BY_") => BAD,
        "maintenance" | "duplicate" | "superseded" | "SKIPPED" => DIM,
        _ => WAIT,
    };
    paint(style, word)
}

/// One cell: what it says, and how it is shown.
struct Cell {
    width: usize,
    shown: String,
}

/// A table with a heading and columns as wide as they must be.
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Self {
        let cells = heading.map(|text| Cell { width: text.width(), shown: paint(BOLD, text) });
        Self { rows: vec![cells.into()] }
    }

    /// Adds a row of plain texts.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into_iter().map(|text| Cell { width: text.width(), shown: text }).collect());
    }

    /// Shows a cell of the last row as what it says deserves.
    pub(crate) fn paint_last(&mut self, column: usize) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.get_mut(column)) {
            cell.shown = painted_word(&cell.shown);
        }
    }

    /// The table, or a sentence where it has no rows.
    pub(crate) fn or(&self, empty: &str) -> String {
        if self.rows.len() == 1 {
            return format!("{empty}\n");
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width).max();
        let widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            let mut pending = 0;
            for (cell, width) in row.iter().zip(&widths) {
                line.extend(std::iter::repeat_n(' ', pending));
                line.push_str(&cell.shown);
                pending = width - cell.width + 2;
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Names and values below one another, the values aligned.
pub(crate) fn fields(indent: &str, rows: &[(&str, String)]) -> String {
    let widest = rows.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let pad = " ".repeat(widest - name.width());
        let _ = writeln!(text, "{indent}{}{pad}  {value}", paint(DIM, name));
    }
    text
}

/// What a JSON document has at a pointer, as a person writes it; empty where it has nothing.
pub(crate) fn at(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The snapshot id of a version in an answer, and its history where there has been more than one.
pub(crate) fn snapshot(version: &Value) -> String {
    let id = at(version, "/snapshotId");
    match version.get("epoch").and_then(Value::as_u64) {
        None | Some(0) => id,
        Some(epoch) => format!("{id} of history {epoch}"),
    }
}

/// A window of event time with its business date.
pub(crate) fn window(window: &Value) -> String {
    let (start, end) = (moment(&at(window, "/start")), moment(&at(window, "/end")));
    format!("{}  ({start} up to {end})", at(window, "/businessDate"))
}

/// A time to the millisecond; another text as it is.
pub(crate) fn moment(text: &str) -> String {
    let time = text
        .parse()
        .ok()
        .and_then(|time: jiff::Timestamp| jiff::Timestamp::from_millisecond(time.as_millisecond()).ok());
    time.map_or_else(|| text.to_owned(), |time| time.to_string())
}

/// Milliseconds since 1970 as a time.
pub(crate) fn millis(millis: Option<i64>) -> String {
    millis.map_or_else(String::new, |millis| time_of(millis).unwrap_or_else(|| millis.to_string()))
}

fn time_of(millis: i64) -> Option<String> {
    jiff::Timestamp::from_millisecond(millis).ok().map(|time| format!("{time:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_to_the_millisecond() {
        assert_eq!(moment("2026-01-01T00:00:00.123999Z"), "2026-01-01T00:00:00.123Z");
        assert_eq!(moment("2026-01-01T00:00:00Z"), "2026-01-01T00:00:00Z");
        assert_eq!(moment("soon"), "soon");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["KEY", "N"]);
        table.row(["订单".to_owned(), "1".to_owned()]);
        table.row(["orders".to_owned(), "20".to_owned()]);
        let plain = anstream::adapter::strip_str(&table.or("none")).to_string();
        assert_eq!(plain, "KEY     N\n订单    1\norders  20\n");
        assert_eq!(Table::new(["KEY"]).or("nothing here"), "nothing here\n");
    }
}
