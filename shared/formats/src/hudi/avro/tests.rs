use super::*;

/// Bytes of a container, put together by hand.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn long(mut self, number: i64) -> Self {
        let mut rest = ((number << 1) ^ (number >> 63)).cast_unsigned();
        while rest >= 0x80 {
            self.0.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
            rest >>= 7;
        }
        self.0.push(u8::try_from(rest).unwrap());
        self
    }

    fn text(self, text: &[u8]) -> Self {
        let mut with_length = self.long(i64::try_from(text.len()).unwrap());
        with_length.0.extend(text);
        with_length
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
}

const SYNC: &[u8; 16] = b"sixteen bytes ok";

fn container(schema: &str, codec: &str, records: i64, block: &[u8]) -> Vec<u8> {
    let header = Bytes::default().raw(MAGIC).long(2).text(b"avro.schema").text(schema.as_bytes());
    let header = header.text(b"avro.codec").text(codec.as_bytes()).long(0).raw(SYNC);
    header.long(records).text(block).raw(SYNC).0
}

const BUDGET: Budget = Budget { max_bytes: 1 << 20 };

/// Passes over the one record of a file.
fn skip(file: &[u8]) -> Result<(), FormatError> {
    read_record(file, &BUDGET, |input, schema| input.skip(schema, schema.root()))
}

fn refusal(file: &[u8]) -> String {
    skip(file).unwrap_err().to_string()
}

#[test]
fn numbers_are_zigzag_in_base_128() {
    for number in [0, -1, 1, 63, 64, -64, -65, 1 << 40, i64::MAX, i64::MIN] {
        let bytes = Bytes::default().long(number).0;
        assert_eq!(Input::plain(&bytes, &BUDGET).long(), Ok(number));
    }
    let read = |bytes: &[u8]| Input::plain(bytes, &BUDGET).long().map_err(|error| error.to_string());
    assert_eq!(read(&[0x80]).unwrap_err(), "the Avro file is truncated");
    assert_eq!(read(&[0xff; 10]).unwrap_err(), "an Avro number has more than 64 bits");
    assert_eq!(
        read(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2]).unwrap_err(),
        "an Avro number has more than 64 bits"
    );
}

#[test]
fn every_kind_of_value_is_passed_over() {
    let schema = r#"{"type": "record", "name": "a.b.All", "fields": [
        {"name": "n", "type": "null"}, {"name": "b", "type": "boolean"}, {"name": "i", "type": {"type": "int"}},
        {"name": "f", "type": "float"}, {"name": "d", "type": "double"}, {"name": "s", "type": {"type": "string", "avro.java.string": "String"}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["x", "y"]}},
        {"name": "x", "type": {"type": "fixed", "name": "F", "namespace": "other", "size": 3}},
        {"name": "again", "type": ["null", "E", "other.F"]},
        {"name": "list", "type": {"type": "array", "items": ["null", "All"]}},
        {"name": "map", "type": {"type": "map", "values": "long"}}]}"#;
    let block = Bytes::default().raw(&[1]).long(7).raw(&[0; 4]).raw(&[0; 8]).text(b"text").long(1).raw(b"abc");
    let block = block.long(2).raw(b"def").long(-2).long(2).long(0).long(0).long(0);
    let block = block.long(1).text(b"key").long(5).long(0).0;
    assert_eq!(skip(&container(schema, "null", 1, &block)), Ok(()));
    assert_eq!(refusal(&container(schema, "null", 1, &block[..block.len() - 1])), "the Avro file is truncated");
    let longer = Bytes(block).long(0).0;
    assert_eq!(refusal(&container(schema, "null", 1, &longer)), "an Avro block goes on after its last record");
    assert_eq!(skip(&container(schema, "null", 2, &longer)), Ok(()), "further records are not looked at");
}

#[test]
fn huge_lengths_allocate_nothing_and_end_as_truncated() {
    for length in [i64::MAX, 1 << 40, 100] {
        let block = Bytes::default().long(length).0;
        let error = skip(&container(r#""string""#, "null", 1, &block)).unwrap_err();
        assert!(matches!(error.kind, FormatErrorKind::Truncated | FormatErrorKind::TooLarge), "{error}");
        let listed = Bytes::default().long(length).long(1).0;
        assert!(skip(&container(r#"{"type": "array", "items": "long"}"#, "null", 1, &listed)).is_err());
    }
    assert_eq!(refusal(&container(r#""bytes""#, "null", 1, &Bytes::default().long(-5).0)), "an Avro text has -5 bytes");
    let header = Bytes::default().raw(MAGIC).long(i64::MAX).long(i64::MAX).0;
    assert!(skip(&header).is_err());
    let block = Bytes::default()
        .raw(MAGIC)
        .long(1)
        .text(b"avro.schema")
        .text(br#""null""#)
        .long(0)
        .raw(SYNC)
        .long(1)
        .long(i64::MAX)
        .0;
    assert_eq!(refusal(&block), "the Avro file is truncated");
    let negative = Bytes::default()
        .raw(MAGIC)
        .long(1)
        .text(b"avro.schema")
        .text(br#""null""#)
        .long(0)
        .raw(SYNC)
        .long(1)
        .long(-1)
        .0;
    assert_eq!(refusal(&negative), "an Avro block has -1 bytes");
}

#[test]
fn arrays_of_values_without_bytes_come_to_an_end() {
    for count in [i64::MAX, i64::MIN] {
        for items in [
            r#""null""#,
            r#"{"type": "record", "name": "Empty", "fields": []}"#,
            r#"{"type": "fixed", "name": "F", "size": 0}"#,
        ] {
            let block = Bytes::default().long(count).long(0).long(0).0;
            let schema = format!(r#"{{"type": "array", "items": {items}}}"#);
            assert_eq!(refusal(&container(&schema, "null", 1, &block)), "an Avro array has more values than bytes");
        }
    }
}

#[test]
fn values_that_hold_themselves_come_to_an_end() {
    let schema = r#"{"type": "record", "name": "Self", "fields": [{"name": "self", "type": "Self"}]}"#;
    assert!(
        refusal(&container(schema, "null", 1, b"")).contains("nested too deep")
            || refusal(&container(schema, "null", 1, b"")).contains("more values")
    );
    let schema = r#"{"type": "record", "name": "Self", "fields": [{"name": "next", "type": ["null", "Self"]}]}"#;
    assert_eq!(refusal(&container(schema, "null", 1, &[2; 1000])), "the Avro values are nested too deep");
    assert_eq!(skip(&container(schema, "null", 1, &[2, 2, 0])), Ok(()));
    let union = r#"["null", ["null", "long"]]"#;
    assert_eq!(refusal(&container(union, "null", 1, &[2, 2, 0])), "an Avro union holds a union");
    assert_eq!(refusal(&container(r#"["null"]"#, "null", 1, &[2])), "an Avro union has no branch 1");
}

#[test]
fn schemas_that_mean_nothing_are_refused() {
    let deep = format!("{}\"null\"{}", "[".repeat(200), "]".repeat(200));
    for schema in [
        "",
        "{",
        "7",
        r#""unknown""#,
        r#"{"type": "record"}"#,
        r#"{"type": "record", "name": "r"}"#,
        r#"{"name": "x"}"#,
        r#"{"type": "record", "name": "r", "fields": [1]}"#,
        r#"{"type": "record", "name": "r", "fields": [{"name": "a"}]}"#,
        r#"{"type": "record", "name": "r", "fields": 1}"#,
        r#"{"type": "array"}"#,
        r#"{"type": "map"}"#,
        r#"{"type": "enum", "name": "e"}"#,
        r#"{"type": "fixed", "name": "f", "size": -1}"#,
        r#"{"type": "fixed", "name": "f"}"#,
        deep.as_str(),
    ] {
        assert_eq!(skip(&container(schema, "null", 1, b"")).unwrap_err().kind, FormatErrorKind::NotAvro, "{schema}");
    }
    let wide = format!("[{}\"null\"]", "\"null\",".repeat(20_000));
    assert_eq!(refusal(&container(&wide, "null", 1, &[0])), "the Avro schema is larger than any real one");
}

#[test]
fn containers_are_checked_to_their_end() {
    let whole = container(r#""long""#, "null", 1, &[2]);
    assert_eq!(skip(&whole), Ok(()));
    for length in 0..whole.len() {
        assert!(skip(&whole[..length]).is_err(), "cut to {length}");
    }
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    assert_eq!(refusal(&other), "an Avro block does not end in the file's own marker");
    assert_eq!(refusal(&container(r#""long""#, "null", -1, &[2])), "an Avro block has -1 records");
    assert_eq!(refusal(&container(r#""long""#, "null", 0, &[])), "the Avro file holds no record");
    assert_eq!(
        refusal(&container(r#""long""#, "snappy", 1, &[2])),
        "the Avro codec `snappy` is not read, only null and deflate"
    );
    assert_eq!(refusal(b"Obj\x02"), "the file is no Avro container");
    let bare = Bytes::default().raw(MAGIC).long(0).raw(SYNC).0;
    assert_eq!(refusal(&bare), "the Avro header has no schema");
    let entries = (0..200).fold(Bytes::default().raw(MAGIC).long(200), |bytes, _| bytes.text(b"k").text(b"v")).0;
    assert_eq!(refusal(&entries), "the Avro header has more entries than any real one");
}

#[test]
fn a_compressed_block_is_bounded_by_what_it_expands_to() {
    use std::io::Write;
    let deflate = |bytes: &[u8]| {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let text = Bytes::default().text(&vec![b'x'; 1000]).0;
    assert_eq!(skip(&container(r#""string""#, "deflate", 1, &deflate(&text))), Ok(()));
    let read = |most| {
        let file = container(r#""string""#, "deflate", 1, &deflate(&text));
        read_record(&file, &BUDGET, |input, _| input.text(most))
    };
    assert_eq!((read(3).unwrap(), read(1000).unwrap().len()), ("xxx…".to_owned(), 1000));
    let bomb = Bytes::default().text(&vec![0; 2 << 20]).0;
    let error = skip(&container(r#""bytes""#, "deflate", 1, &deflate(&bomb))).unwrap_err();
    assert_eq!(error.kind, FormatErrorKind::TooLarge);
    let cut = deflate(&text);
    assert!(skip(&container(r#""string""#, "deflate", 1, &cut[..cut.len() / 2])).is_err());
    assert!(refusal(&container(r#""string""#, "deflate", 1, b"\xff\xff")).contains("cannot be decompressed"));
    let long = Bytes::default().text(&text).0;
    assert!(refusal(&container(r#""long""#, "deflate", 1, &deflate(&long))).contains("goes on"));
}
