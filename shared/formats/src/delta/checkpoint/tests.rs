use super::*;

#[test]
fn the_hint_names_a_version() {
    assert_eq!(LastCheckpoint::parse(br#"{"version":9,"size":12,"parts":2}"#), Ok(LastCheckpoint { version: 9 }));
    for broken in [&b""[..], b"9", b"{}", br#"{"version":-1}"#, br#"{"version":"x"}"#, b"{\"version\":1"] {
        assert!(LastCheckpoint::parse(broken).is_err(), "{broken:?}");
    }
}

#[test]
fn a_checksum_names_the_table() {
    let text = r#"{"txnId":"t-7","numFiles":3,"metadata":{"id":"a","schemaString":"{}"},
        "protocol":{"minReaderVersion":1,"minWriterVersion":2},"histogramOpt":{"x":[1]}}"#;
    let read = Checksum::parse(text.as_bytes()).unwrap();
    assert_eq!((read.txn_id.as_deref(), read.metadata.unwrap().id.as_str()), (Some("t-7"), "a"));
    assert_eq!(read.protocol.unwrap().min_writer_version, 2);
    let old = Checksum::parse(br#"{"tableSizeBytes":1,"numFiles":1}"#).unwrap();
    assert_eq!(old, Checksum { metadata: None, protocol: None, txn_id: None });
}

#[test]
fn a_broken_checksum_is_refused() {
    let kind = |bytes: &[u8]| Checksum::parse(bytes).unwrap_err().kind;
    assert_eq!(kind(b""), FormatErrorKind::Truncated);
    assert_eq!(kind(br#"{"metadata":{"id":"a""#), FormatErrorKind::Truncated);
    assert_eq!(kind(b"<xml>"), FormatErrorKind::NotJson);
    assert_eq!(kind(br#"{"metadata":{}}"#), FormatErrorKind::MissingField);
    assert_eq!(kind(&vec![b' '; MAX_FILE_BYTES + 1]), FormatErrorKind::TooLarge);
}
