use super::*;

fn parse(text: &str) -> TableProperties {
    TableProperties::parse(text.as_bytes()).unwrap()
}

#[test]
fn a_file_of_java_s_is_read() {
    let properties = parse(concat!(
        "#Updated at 2025-12-20T21:01:18.422371Z\r\n! note\n\n",
        "hoodie.table.name=orders \\u00e4\nhoodie.table.type : MERGE_ON_READ\n  hoodie.table.version\t8\n",
        "hoodie.timeline.layout.version=2\nhoodie.table.timeline.timezone=UTC\n",
        "hoodie.table.create.schema={\"type\"\\:\"record\",\\\n    \"name\"\\:\"a\\=b\"}\n",
        "hoodie.timeline.path=elsewhere\nhoodie.archivelog.folder=archived\nhoodie.timeline.history.path=\nodd"
    ));
    assert_eq!(properties.name, "orders ä");
    assert_eq!(properties.table_type.as_deref(), Some("MERGE_ON_READ"));
    assert_eq!(properties.table_version.as_deref(), Some("8"));
    assert_eq!((properties.layout(), properties.timezone.as_deref()), (Some(Layout::Two), Some("UTC")));
    assert_eq!(properties.create_schema_digest, Some(digest(r#"{"type":"record","name":"a=b"}"#)));
    assert_eq!(properties.moved, ["hoodie.timeline.path"]);
}

#[test]
fn folders_of_a_partition_get_the_names_of_its_columns() {
    let fields = |text: &str| parse(&format!("hoodie.table.name=t\n{text}\n")).partition_fields;
    assert_eq!(fields("hoodie.table.partition.fields=dt,hour"), ["dt", "hour"]);
    assert_eq!(fields("hoodie.table.partition.fields=dt:simple, hour:SIMPLE"), ["dt", "hour"]);
    assert_eq!(fields("hoodie.table.partition.fields="), Vec::<String>::new());
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    for (path, fields, expected) in [
        ("20240910/05", &["dt", "hour"][..], "dt=20240910/hour=05"),
        ("sf", &["city"], "city=sf"),
        ("dt=20240910/hour=05", &["dt", "hour"], "dt=20240910/hour=05"),
        ("2024/09/10", &["dt"], "2024/09/10"),
        ("sf", &[], "sf"),
        ("", &["city"], ""),
        ("20240910/", &["dt", "hour"], "20240910/"),
    ] {
        assert_eq!(named_partition(path, &of(fields)), expected);
    }
}

#[test]
fn escapes_are_taken_back() {
    let entries = entries("a\\ b\\:c = \\tx\\n\\\\y\\q\nlast=one\nlast=two\ncut=\\u12\nend\\");
    let expected = [("a b:c", "\tx\n\\yq"), ("last", "two"), ("cut", "\u{12}"), ("end", "")];
    let expected: BTreeMap<_, _> =
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    assert_eq!(entries, expected);
}

#[test]
fn only_the_name_is_required() {
    let refusal = |bytes: &[u8]| TableProperties::parse(bytes).unwrap_err();
    assert_eq!(refusal(b"").kind, FormatErrorKind::Truncated);
    assert_eq!(refusal(b"hoodie.table.name=\n").to_string(), "`hoodie.table.name` is missing");
    assert_eq!(refusal(b"\xff\xfe\x00").kind, FormatErrorKind::MissingField);
    assert_eq!(refusal(&vec![b'x'; MAX_BYTES + 1]).kind, FormatErrorKind::TooLarge);
    let bare = parse("hoodie.table.name=t");
    assert_eq!((bare.layout(), bare.table_id().as_str()), (None, "t#"));
}

#[test]
fn tables_are_told_apart_by_name_and_first_schema() {
    let table =
        |name: &str, schema: &str| parse(&format!("hoodie.table.name={name}\nhoodie.table.create.schema={schema}"));
    let id = table("a#b", "s1").table_id();
    assert!(table("a#b", "s1").may_be(&id));
    assert!(!table("a#b", "s2").may_be(&id) && !table("other", "s1").may_be(&id) && !table("a", "s1").may_be(&id));
    assert!(parse("hoodie.table.name=a#b").may_be(&id) && table("a#b", "s3").may_be("a#b#"), "no schema, no proof");
    assert!(!table("a", "s").may_be("a"), "no id of ours");
}
