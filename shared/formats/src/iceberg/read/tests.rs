use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::iceberg::{MAX_LOG_ENTRIES, MAX_REFS, RefKind};
use FormatErrorKind::{MissingField, NotJson, TooLarge, Truncated, Unsupported, WrongValue};

const SMALL: &str = r#"{"format-version":2,"location":"s3://b/t","current-snapshot-id":7,
    "snapshots":[{"snapshot-id":7,"sequence-number":1,"timestamp-ms":5,"schema-id":3,"summary":{"operation":"append"}}]}"#;

fn parse(json: &str) -> Result<Metadata, FormatError> {
    Metadata::parse(json.as_bytes(), ReadOptions::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn what_is_wrong_is_said() {
    let cases = [
        ("", Truncated, "the file is empty"),
        (" \n", Truncated, "truncated"),
        ("{\"format-version\":2,\"loc", Truncated, "truncated"),
        ("[]", WrongValue, "expected table metadata: a JSON object"),
        ("null", WrongValue, "expected table metadata: a JSON object"),
        ("<Error/>", NotJson, "not JSON"),
        ("{\"format-version\":2,\"location\":\"t\"}{}", NotJson, "trailing"),
        (r#"{"location":"t"}"#, MissingField, "`format-version` is missing"),
        (r#"{"format-version":2}"#, MissingField, "`location` is missing"),
        (r#"{"format-version":4}"#, Unsupported, "`format-version` is 4; versions 1 to 3 are read"),
        (r#"{"format-version":0}"#, Unsupported, "`format-version` is 0"),
        (r#"{"format-version":-1}"#, Unsupported, "`format-version` is -1"),
        (r#"{"format-version":"2"}"#, WrongValue, "a 64-bit integer in `format-version`"),
        (r#"{"current-snapshot-id":1.5}"#, WrongValue, "`current-snapshot-id`"),
        (r#"{"current-snapshot-id":9223372036854775808}"#, WrongValue, "`current-snapshot-id`"),
        (r#"{"table-uuid":5}"#, WrongValue, "`table-uuid`"),
        (r#"{"snapshots":{}}"#, WrongValue, "an array in `snapshots`"),
        (r#"{"snapshots":[5]}"#, WrongValue, "an object for each snapshot"),
        (r#"{"snapshots":[{}]}"#, MissingField, "`snapshot-id` is missing"),
        (r#"{"snapshots":[{"snapshot-id":1,"summary":[]}]}"#, WrongValue, "an object in `summary`"),
        (r#"{"refs":{"a":{"type":"branch"}}}"#, MissingField, "`snapshot-id` is missing"),
        (r#"{"refs":{"a":{"snapshot-id":1}}}"#, MissingField, "`type` is missing"),
        (r#"{"refs":{"a":{"snapshot-id":1,"type":"twig"}}}"#, WrongValue, "neither `branch` nor `tag`"),
    ];
    for (json, kind, words) in cases {
        let error = parse(json).unwrap_err();
        assert_eq!(error.kind, kind, "{json}: {error}");
        assert!(error.problem.contains(words), "{json}: {error}");
    }
    let long = parse(&format!(r#"{{"format-version":"{}"}}"#, "x".repeat(100_000))).unwrap_err();
    assert!(long.problem.chars().count() <= MAX_PROBLEM_CHARS + 1, "errors stay short");
}

#[test]
fn nothing_is_current_in_three_spellings() {
    for current in ["", r#","current-snapshot-id":null"#, r#","current-snapshot-id":-1"#] {
        let metadata = parse(&format!(r#"{{"format-version":3,"location":"t"{current}}}"#)).unwrap();
        assert_eq!((metadata.current_snapshot_id(), metadata.refs.len()), (None, 0));
    }
}

#[test]
fn main_comes_from_either_field_and_they_must_agree() {
    let with = |more: &str| parse(&format!(r#"{{"format-version":2,"location":"t",{more}}}"#));
    let main = r#""refs":{"main":{"snapshot-id":5,"type":"branch"},"x":{"snapshot-id":4,"type":"TAG"}}"#;
    assert_eq!(with(r#""current-snapshot-id":5"#).unwrap().current_snapshot_id(), Some(5));
    assert_eq!(with(main).unwrap().current_snapshot_id(), Some(5));
    let both = with(&format!(r#"{main},"current-snapshot-id":5"#)).unwrap();
    assert_eq!(both.current_snapshot_id(), Some(5));
    assert_eq!(both.refs["x"].kind, RefKind::Tag);
    assert_eq!(both.tags().collect::<Vec<_>>(), [("x", 4)]);
    assert_eq!(both.head("x"), None, "a tag is no branch");
    assert_eq!(with(&format!(r#"{main},"current-snapshot-id":6"#)).unwrap_err().kind, WrongValue);
    let tag = r#""refs":{"main":{"snapshot-id":5,"type":"tag"}},"current-snapshot-id":5"#;
    assert_eq!(with(tag).unwrap_err().kind, WrongValue);
}

#[test]
fn fields_come_in_any_order_and_the_last_of_two_counts() {
    let metadata = parse(
        r#"{"snapshots":[{"summary":{"operation":"replace"},"snapshot-id":1}],"x":{"snapshots":[]},"location":"a",
            "refs":{"old":{"snapshot-id":1,"type":"branch"}},"snapshots":[{"snapshot-id":2}],"format-version":1,
            "location":"b","refs":{"new":{"type":"branch","snapshot-id":2}}}"#,
    )
    .unwrap();
    assert_eq!(metadata.location, "b");
    assert_eq!(metadata.branches().collect::<Vec<_>>(), [("new", 2)]);
    assert_eq!(metadata.snapshots().iter().map(|snapshot| snapshot.id).collect::<Vec<_>>(), [2]);
    assert_eq!(
        (metadata.snapshot(2).unwrap().kind(), metadata.snapshot(2).unwrap().operation.clone()),
        ("overwrite", None)
    );
    assert!(metadata.snapshot(1).is_none());
}

#[test]
fn summaries_are_read_whatever_writers_put_there() {
    let summary = |json: &str| {
        let text =
            format!(r#"{{"format-version":2,"location":"t","snapshots":[{{"snapshot-id":1,"summary":{json}}}]}}"#);
        parse(&text).unwrap().snapshots()[0].clone()
    };
    let counted =
        summary(r#"{"operation":"delete","added-records":"5","deleted-records":7,"total-records":"12","x":[{}]}"#);
    assert_eq!((counted.added_records, counted.deleted_records, counted.total_records), (Some(5), Some(7), Some(12)));
    assert_eq!((counted.kind(), counted.counts_a_change), ("delete", true));
    for (json, changes) in [
        ("{}", false),
        (r#"{"added-records":"0","removed-x":0,"deleted-y":null,"total-records":"9"}"#, false),
        (r#"{"added-dvs":"1"}"#, true),
        (r#"{"removed-files-size":"12"}"#, true),
        (r#"{"deleted-records":"many"}"#, true),
        (r#"{"added-records":{"a":[1]}}"#, true),
        (r#"{"added-records":-3}"#, false),
    ] {
        assert_eq!(summary(json).counts_a_change, changes, "{json}");
    }
    assert_eq!(summary("{}").kind(), "overwrite");
    assert_eq!(summary(r#"{"operation":null}"#).kind(), "overwrite");
    assert_eq!(summary(r#"{"operation":"frobnicate"}"#).kind(), "frobnicate");
    assert_eq!(summary(r#"{"operation":[1]}"#).kind(), "(not a text)");
}

#[test]
fn the_watermark_comes_from_the_property_that_is_asked_for() {
    let json = br#"{"format-version":2,"location":"t","snapshots":[{"snapshot-id":1,"summary":{
        "kafka.connect.valid-through-ts":"2026-01-01T10:00Z","mine":1767261600001,"total-records":"3"}}]}"#;
    let of = |property: &str| {
        let metadata = Metadata::parse(json, ReadOptions { watermark_property: property }).unwrap();
        metadata.snapshots()[0].watermark.map(|watermark| watermark.0)
    };
    assert_eq!(of(ReadOptions::WATERMARK_PROPERTY), Some(1_767_261_600_000));
    assert_eq!(of("mine"), Some(1_767_261_600_001));
    assert_eq!(of("absent"), None);
}

#[test]
fn lists_are_bounded() {
    let entry = |n: usize| format!(r#"{{"metadata-file":"f{n}","timestamp-ms":{n}}}"#);
    let log: Vec<_> = (0..MAX_LOG_ENTRIES + 3).map(entry).collect();
    let metadata =
        parse(&format!(r#"{{"format-version":1,"location":"t","metadata-log":[{}]}}"#, log.join(","))).unwrap();
    assert_eq!((metadata.log.len(), metadata.log[0].file.as_str()), (MAX_LOG_ENTRIES, "f3"), "the newest are kept");

    let refs: Vec<_> = (0..=MAX_REFS).map(|n| format!(r#""r{n}":{{"snapshot-id":1,"type":"tag"}}"#)).collect();
    assert_eq!(parse(&format!(r#"{{"refs":{{{}}}}}"#, refs.join(","))).unwrap_err().kind, TooLarge);
    let name = "n".repeat(2_000);
    assert_eq!(parse(&format!(r#"{{"refs":{{"{name}":{{}}}}}}"#)).unwrap_err().kind, TooLarge);
    assert_eq!(parse(&format!(r#"{{"location":"{}"}}"#, "l".repeat(5_000))).unwrap_err().kind, WrongValue);
}

#[test]
fn gzip_is_told_by_content() {
    let whole = parse(SMALL).unwrap();
    let packed = gzip(SMALL.as_bytes());
    assert_eq!(Metadata::parse(&packed, ReadOptions::default()).unwrap(), whole);
    assert_eq!(Metadata::read(packed.as_slice(), ReadOptions::default()).unwrap(), whole);
    let (first, second) = SMALL.as_bytes().split_at(100);
    let members = [gzip(first), gzip(second)].concat();
    assert_eq!(Metadata::parse(&members, ReadOptions::default()).unwrap(), whole, "a stream of two members");

    let cut = Metadata::parse(&packed[..packed.len() / 2], ReadOptions::default()).unwrap_err();
    assert_eq!(cut.kind, Truncated, "{cut}");
    let mut flipped = packed;
    let place = flipped.len() - 6;
    flipped[place] ^= 0xff;
    let flipped = Metadata::parse(&flipped, ReadOptions::default()).unwrap_err();
    assert_eq!(flipped.kind, NotJson, "{flipped}");
}

/// Gives some bytes and then fails, as a connection that breaks does.
struct Breaks<'a>(&'a [u8], io::ErrorKind);

impl Read for Breaks<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(self.1.into()),
            taken => Ok(taken),
        }
    }
}

#[test]
fn a_broken_connection_is_no_damaged_file() {
    let packed = gzip(SMALL.as_bytes());
    for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::UnexpectedEof, io::ErrorKind::InvalidData] {
        for bytes in [&SMALL.as_bytes()[..90], &packed[..60], &packed[..1]] {
            let error = Metadata::read(Breaks(bytes, kind), ReadOptions::default()).unwrap_err();
            assert!(matches!(&error, ReadError::Io(error) if error.kind() == kind), "{error}");
        }
    }
    let short = Metadata::read(&SMALL.as_bytes()[..90], ReadOptions::default()).unwrap_err();
    assert!(matches!(short, ReadError::Format(FormatError { kind: Truncated, .. })));
    let empty = Metadata::read(&b""[..], ReadOptions::default()).unwrap_err();
    assert!(matches!(empty, ReadError::Format(FormatError { kind: Truncated, .. })));
}

#[test]
fn a_stream_that_would_fill_memory_is_refused() {
    let deep = format!(r#"{{"properties":{}"#, "[".repeat(100_000));
    let long = format!(r#"{{"properties":{{"a":"{}"}}}}"#, "x".repeat(5 << 20));
    for json in [deep, long] {
        let error = Metadata::read(json.as_bytes(), ReadOptions::default()).unwrap_err();
        assert!(matches!(error, ReadError::Format(FormatError { kind: TooLarge, .. })), "{error}");
    }
}
