//! Ordinals: where a metadata file stands in its table's history.

use lakebell_domain::version::Ordinal;

use super::keys::{file_name, file_number};
use super::metadata::{LogEntry, Metadata};

/// The ordinal of a file whose chain has not been read before: the number in its name, where it
/// counts, else the length of the chain as far as the file knows it.
pub fn first_ordinal(file: &str, metadata: &Metadata) -> Ordinal {
    let length = metadata.log.len() as u64 + 1;
    Ordinal(file_number(file).unwrap_or(length))
}

/// The ordinal of a file that comes after a known one on the chain.
///
/// It is the number in the file's name as long as numbers go on counting. Where they restart (a
/// table that was registered or migrated), are times (`BigQuery`) or are missing, each file is one
/// more than the one before, along the log of earlier files; a file whose log does not reach back to
/// the known one is taken for the next.
///
/// `file` and `known_file` may be names, keys or URLs. The answer is always above `known`.
pub fn ordinal_after(known: Ordinal, known_file: &str, file: &str, log: &[LogEntry]) -> Ordinal {
    let known_name = file_name(known_file);
    let after = log.iter().rposition(|entry| file_name(&entry.file) == known_name).map_or(log.len(), |at| at + 1);
    let between = log[after..].iter().map(|entry| file_name(&entry.file));
    let (mut ordinal, mut number) = (known, file_number(known_name));
    for name in between.chain([file_name(file)]) {
        let next_number = file_number(name);
        let goes_on = number == Some(ordinal.0) && next_number > number;
        ordinal = match next_number {
            Some(next) if goes_on => Ordinal(next),
            _ => ordinal.next(),
        };
        number = next_number;
    }
    ordinal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(files: &[&str]) -> Vec<LogEntry> {
        files.iter().map(|file| LogEntry { file: format!("s3://b/t/metadata/{file}"), timestamp_ms: None }).collect()
    }

    const UUID: &str = "a6f4d23c-98ca-4dc3-aec5-bce8f4758f84";

    fn numbered(number: u64) -> String {
        format!("{number:05}-{UUID}.metadata.json")
    }

    #[test]
    fn numbers_are_taken_while_they_count() {
        let after =
            |known: u64, file: &str, log: &[LogEntry]| ordinal_after(Ordinal(known), &numbered(known), file, log).0;
        assert_eq!(after(3, &numbered(4), &log(&[&numbered(2), &numbered(3)])), 4);
        assert_eq!(after(3, &numbered(7), &log(&[&numbered(3), &numbered(5)])), 7, "files between are gone");
        assert_eq!(after(3, &numbered(250), &[]), 250, "the log was cut");
        assert_eq!(ordinal_after(Ordinal(1), "t/metadata/v1.metadata.json", "v2.gz.metadata.json", &[]).0, 2);
        assert_eq!(after(99_999, "100000-x.metadata.json", &[]), 100_000);
    }

    #[test]
    fn where_they_do_not_files_are_counted() {
        let known = numbered(7);
        let restart = log(&[&known, &numbered(0), &numbered(1)]);
        assert_eq!(ordinal_after(Ordinal(7), &known, &numbered(2), &restart).0, 10);
        assert_eq!(ordinal_after(Ordinal(7), &known, &numbered(0), &log(&[&known])).0, 8);
        // Read one at a time the answers are the same, also once the numbers pass the count.
        assert_eq!(ordinal_after(Ordinal(8), &numbered(0), &numbered(1), &log(&[&known, &numbered(0)])).0, 9);
        assert_eq!(ordinal_after(Ordinal(12), &numbered(9), &numbered(14), &log(&[&numbered(9)])).0, 13);
        let epochs = ["v1730000000.metadata.json", "v1730000600.metadata.json", "v1730001200.metadata.json"];
        assert_eq!(ordinal_after(Ordinal(1), epochs[0], epochs[2], &log(&epochs[..2])).0, 3);
        assert_eq!(ordinal_after(Ordinal(1), "mine.metadata.json", "other.metadata.json", &[]).0, 2);
        assert_eq!(ordinal_after(Ordinal(5), "mine.metadata.json", &numbered(3), &[]).0, 6, "from no name to a number");
        assert_eq!(ordinal_after(Ordinal(u64::MAX), "a", "b", &[]).0, u64::MAX);
    }
}
