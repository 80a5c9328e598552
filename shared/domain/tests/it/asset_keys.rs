//! Asset keys: what parses, to what, in which one spelling, and what is refused with which words.

use lakebell_domain::asset::{AssetKey, Format, FormatChoice, MAX_ASSET_KEY_BYTES, WrittenKey};
use proptest::prelude::*;

const SHAPE: &str = "write <format>://[<catalog>/]<database>/<table>[@branch], as in paimon://ods_db/orders";

fn parse(text: &str) -> AssetKey {
    text.parse().unwrap_or_else(|invalid| panic!("{text}: {invalid}"))
}

#[test]
fn every_spelling_has_one_canonical_form() {
    let cases = [
        ("paimon://ods/orders", "paimon://ods/orders"),
        ("iceberg://lake/ods/orders", "iceberg://lake/ods/orders"),
        ("hudi://ods/orders@dev", "hudi://ods/orders@dev"),
        ("delta://lake/ods/orders@dev", "delta://lake/ods/orders@dev"),
        // case is kept, in names and not in the scheme
        ("paimon://Ods/ORDERS", "paimon://Ods/ORDERS"),
        // the main line has no branch, however it is written
        ("paimon://ods/orders@main", "paimon://ods/orders"),
        ("paimon://ods/orders@%6Dain", "paimon://ods/orders"),
        ("paimon://ods/orders@Main", "paimon://ods/orders@Main"),
        // encoded and plain are one; escapes are decoded once and written in upper case
        ("paimon://ods/or%64ers", "paimon://ods/orders"),
        ("paimon://ods/a%2fb", "paimon://ods/a%2Fb"),
        ("paimon://ods/a%252Fb", "paimon://ods/a%252Fb"),
        ("paimon://ods/a b", "paimon://ods/a%20b"),
        ("paimon://ods/a+b", "paimon://ods/a%2Bb"),
        ("paimon://ods/a?b#c", "paimon://ods/a%3Fb%23c"),
        ("paimon://ods/a%40b@c", "paimon://ods/a%40b@c"),
        ("paimon://ods/bestellungen_größe", "paimon://ods/bestellungen_gr%C3%B6%C3%9Fe"),
        ("paimon://ods/订单", "paimon://ods/%E8%AE%A2%E5%8D%95"),
        ("paimon://ods/a-b.c_d~e$f=g,h", "paimon://ods/a-b.c_d~e$f=g,h"),
        ("paimon://ods/...", "paimon://ods/..."),
        // the first `@` ends the table; what follows is the branch, slashes and all
        ("iceberg://ods/orders@feature/x", "iceberg://ods/orders@feature%2Fx"),
        ("iceberg://ods/orders@a@b", "iceberg://ods/orders@a%40b"),
    ];
    for (text, canonical) in cases {
        let key = parse(text);
        assert_eq!(key.to_string(), canonical, "of {text}");
        assert_eq!(parse(canonical), key, "the canonical form of {text} is another key");
    }
}

#[test]
fn the_parts_are_what_was_written() {
    let two = parse("paimon://ods/orders");
    assert_eq!((two.format(), two.catalog(), two.branch()), (Format::Paimon, None, None));
    assert_eq!((two.database(), two.table()), ("ods", "orders"));

    let three = parse("delta://lake/o%2Fds/or%20ders@b%401");
    assert_eq!((three.format(), three.catalog(), three.branch()), (Format::Delta, Some("lake"), Some("b@1")));
    assert_eq!((three.database(), three.table()), ("o/ds", "or ders"));

    assert_ne!(two, parse("iceberg://ods/orders"), "the format belongs to the key");
    assert_ne!(two, parse("paimon://lake/ods/orders"), "the catalog belongs to the key");
    assert_ne!(two, parse("paimon://ods/orders@dev"), "the branch belongs to the key");
    assert_ne!(parse("paimon://a%2Fb/c"), parse("paimon://a/b/c"), "an encoded slash separates nothing");
}

#[test]
fn what_is_malformed_is_refused_with_what_is_wrong_and_what_would_be_right() {
    let escape = "write a literal `%` as `%25` and encode text as UTF-8";
    let cases = [
        ("", "`` has no `://`", SHAPE),
        ("ods/orders", "`ods/orders` has no `://`", SHAPE),
        ("paimon:/ods/orders", "`paimon:/ods/orders` has no `://`", SHAPE),
        ("paimon://orders", "`paimon://orders` has 1 segments", SHAPE),
        ("paimon://a/b/c/d", "`paimon://a/b/c/d` has 4 segments", SHAPE),
        ("paimon://", "`paimon://` has an empty segment", SHAPE),
        ("paimon:///orders", "`paimon:///orders` has an empty segment", SHAPE),
        ("paimon://ods/", "`paimon://ods/` has an empty segment", SHAPE),
        ("paimon://ods//orders", "`paimon://ods//orders` has an empty segment", SHAPE),
        ("paimon://ods/orders/", "`paimon://ods/orders/` has an empty segment", SHAPE),
        ("paimon://ods/orders@", "`paimon://ods/orders@` has an empty segment", SHAPE),
        ("paimon://ods/@dev", "`paimon://ods/@dev` has an empty segment", SHAPE),
        ("paimon://ods/..", "`paimon://ods/..` has a segment that is `.` or `..`", SHAPE),
        ("paimon://./orders", "`paimon://./orders` has a segment that is `.` or `..`", SHAPE),
        ("paimon://ods/%2e%2e", "`paimon://ods/%2e%2e` has a segment that is `.` or `..`", SHAPE),
        ("paimon://ods/a%00b", "`paimon://ods/a%00b` has a control character", SHAPE),
        ("paimon://ods/a\nb", "`paimon://ods/a\\nb` has a control character", SHAPE),
        ("paimon://ods/a%", "`paimon://ods/a%` has a malformed percent escape", escape),
        ("paimon://ods/a%2", "`paimon://ods/a%2` has a malformed percent escape", escape),
        ("paimon://ods/a%zz", "`paimon://ods/a%zz` has a malformed percent escape", escape),
        ("paimon://ods/a%2%30", "`paimon://ods/a%2%30` has a malformed percent escape", escape),
        ("paimon://ods/%ff", "`paimon://ods/%ff` has a malformed percent escape", escape),
        ("paimon://ods/%C3", "`paimon://ods/%C3` has a malformed percent escape", escape),
        ("paimon://ods/orders@%", "`paimon://ods/orders@%` has a malformed percent escape", escape),
    ];
    for (text, problem, hint) in cases {
        let invalid = text.parse::<AssetKey>().expect_err(text);
        assert_eq!(
            (invalid.field.as_str(), invalid.problem.as_str(), invalid.hint.as_str()),
            ("asset key", problem, hint),
            "of {text:?}"
        );
    }
}

#[test]
fn an_unknown_format_is_named_with_the_known_ones() {
    for text in ["orc://ods/orders", "Paimon://ods/orders", "://ods/orders", " paimon://ods/orders"] {
        let invalid = text.parse::<AssetKey>().expect_err(text);
        let format = text.split("://").next().unwrap();
        assert_eq!(invalid.field, "format");
        assert_eq!(invalid.problem, format!("`{format}` is not a table format"));
        assert_eq!(invalid.hint, "use paimon, iceberg, hudi or delta");
    }
    for format in Format::ALL {
        assert_eq!(format.as_str().parse::<Format>().unwrap(), format);
        assert_eq!(serde_json::to_value(format).unwrap(), format.as_str());
    }
}

#[test]
fn the_canonical_form_has_a_limit_in_bytes() {
    let room = MAX_ASSET_KEY_BYTES - "paimon://ods/".len();
    assert_eq!(parse(&format!("paimon://ods/{}", "x".repeat(room))).to_string().len(), MAX_ASSET_KEY_BYTES);
    // what counts is the canonical form, whatever the spelling was
    let spelled_out = format!("paimon://ods/{}@%6D%61%69%6E", "%78".repeat(room));
    assert_eq!(parse(&spelled_out).to_string().len(), MAX_ASSET_KEY_BYTES);

    let too_long = format!("paimon://ods/{}", "x".repeat(room + 1)).parse::<AssetKey>().unwrap_err();
    assert_eq!(too_long.problem, "it has 513 bytes in its canonical form");
    assert_eq!(too_long.hint, "use at most 512 bytes");
    let umlauts = "ü".repeat(room / 6 + 1);
    assert!(format!("paimon://ods/{umlauts}").parse::<AssetKey>().is_err(), "each is six bytes when encoded");
    assert!(AssetKey::new(Format::Paimon, None, "ods", &umlauts, None).is_err());

    let huge = format!("paimon://ods/{}", "x".repeat(100_000)).parse::<AssetKey>().unwrap_err();
    assert_eq!(huge.problem, "it has 100013 bytes");
    assert_eq!(huge.hint, "use at most 512 bytes", "the refusal says what would be right");
}

#[test]
fn parts_that_cannot_be_written_are_refused() {
    for (catalog, database, table, branch) in [
        (Some(""), "ods", "orders", None),
        (None, "", "orders", None),
        (None, "ods", "", None),
        (None, "ods", "orders", Some("")),
        (None, "..", "orders", None),
        (None, "ods", ".", None),
        (None, "ods", "a\u{7f}b", None),
        (None, "ods", "orders", Some("a\u{85}b")),
    ] {
        let invalid = AssetKey::new(Format::Hudi, catalog, database, table, branch).unwrap_err();
        assert_eq!(invalid.field, "asset key");
        assert!(invalid.problem.contains(" has a"), "{}", invalid.problem);
        assert!(!invalid.problem.contains(char::is_control), "{:?}", invalid.problem);
    }
}

#[test]
fn json_is_the_text() {
    let key = parse("paimon://ods/订单@dev");
    let json = serde_json::to_value(&key).unwrap();
    assert_eq!(json, "paimon://ods/%E8%AE%A2%E5%8D%95@dev");
    assert_eq!(serde_json::from_value::<AssetKey>(json).unwrap(), key);
    let error = serde_json::from_str::<AssetKey>("\"paimon://ods\"").unwrap_err().to_string();
    assert!(error.contains("`paimon://ods` has 1 segments") && error.contains(SHAPE), "{error}");
}

/// Any name, of any characters.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => proptest::collection::vec(any::<char>(), 1..12).prop_map(String::from_iter),
        2 => "[a-z%/@?+#:. ]{1,12}",
        1 => "[A-Za-z0-9_]{1,24}",
        1 => Just("main".to_owned()),
    ]
}

#[test]
fn a_written_key_may_leave_its_format_open() {
    let open: WrittenKey = "auto://lake/a%20b/t@audit".parse().unwrap();
    assert_eq!(
        (open.told(), open.branch(), open.to_string()),
        (None, Some("audit"), "auto://lake/a%20b/t@audit".to_owned())
    );
    for format in Format::ALL {
        let key: AssetKey = format!("{format}://lake/a%20b/t@audit").parse().unwrap();
        assert_eq!(open.of(format).unwrap(), key);
        let told: WrittenKey = key.to_string().parse().unwrap();
        assert_eq!((told.told(), told.to_string()), (Some(key.clone()), key.to_string()));
        assert!(open.may_be(&key) && told.may_be(&key));
        assert_eq!(
            told.may_be(&AssetKey::new(Format::Hudi, Some("lake"), "a b", "t", Some("audit")).unwrap()),
            format == Format::Hudi
        );
        assert!(!open.may_be(&format!("{format}://lake/a%20b/t").parse().unwrap()));
        assert!(FormatChoice::Auto.takes(format) && FormatChoice::from(format).told() == Some(format));
        let takes = Format::ALL.into_iter().filter(|other| FormatChoice::from(format).takes(*other)).count();
        assert_eq!(takes, 1);
    }
    for wrong in ["auto://t", "auto://a//b", "auto:a/b", "AUTO://a/b", "auto://a/b/c/d", "parquet://a/b"] {
        let refused = wrong.parse::<WrittenKey>().unwrap_err();
        assert!(!refused.hint.is_empty() && !refused.problem.contains("delta"), "{refused}");
    }
    let longest = format!("auto://d/{}", "t".repeat(MAX_ASSET_KEY_BYTES - "iceberg://d/".len() + 1));
    let longest: WrittenKey = longest.parse().unwrap();
    assert!(longest.of(Format::Delta).is_ok() && longest.of(Format::Iceberg).is_err());
}

fn is_writable(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(char::is_control)
}

proptest! {
    #[test]
    fn any_names_survive_writing_and_parsing(
        format in proptest::sample::select(Format::ALL.to_vec()),
        catalog in proptest::option::of(name()),
        database in name(),
        table in name(),
        branch in proptest::option::of(name()),
    ) {
        let made = AssetKey::new(format, catalog.as_deref(), &database, &table, branch.as_deref());
        let writable = [&database, &table].into_iter().chain(&catalog).chain(&branch).all(|name| is_writable(name));
        prop_assert!(made.is_err() || writable, "{made:?} cannot be written");
        let Ok(key) = made else {
            let bytes: usize = [&database, &table].into_iter().chain(&catalog).chain(&branch).map(String::len).sum();
            prop_assert!(!writable || bytes * 3 + 20 > MAX_ASSET_KEY_BYTES, "refused without need");
            return Ok(());
        };
        prop_assert_eq!((key.format(), key.catalog()), (format, catalog.as_deref()));
        prop_assert_eq!((key.database(), key.table()), (database.as_str(), table.as_str()));
        prop_assert_eq!(key.branch(), branch.as_deref().filter(|name| *name != "main"));

        let text = key.to_string();
        prop_assert!(text.len() <= MAX_ASSET_KEY_BYTES);
        prop_assert!(text.is_ascii() && !text.contains([' ', '?', '#', '+']), "{text} does not survive a URL");
        let parsed: AssetKey = text.parse().unwrap();
        prop_assert_eq!(&parsed, &key);
        prop_assert_eq!(parsed.to_string(), text, "the canonical form is no fixed point");
    }

    #[test]
    fn any_text_parses_to_a_key_that_parses_again_or_is_refused_in_words(
        text in prop_oneof![any::<String>(), "(paimon|delta)://[a-z%/@0-9A-F.]{0,30}"],
    ) {
        match text.parse::<AssetKey>() {
            Ok(key) => prop_assert_eq!(key.to_string().parse::<AssetKey>().unwrap(), key),
            Err(invalid) => {
                prop_assert!(!invalid.field.is_empty() && !invalid.problem.is_empty() && !invalid.hint.is_empty());
            }
        }
    }

    #[test]
    fn two_keys_are_equal_exactly_when_their_texts_are(
        one in (name(), name(), proptest::option::of(name())),
        other in (name(), name(), proptest::option::of(name())),
    ) {
        let key = |(database, table, branch): &(String, String, Option<String>)| {
            AssetKey::new(Format::Delta, None, database, table, branch.as_deref())
        };
        if let (Ok(one), Ok(other)) = (key(&one), key(&other)) {
            prop_assert_eq!(one == other, one.to_string() == other.to_string());
        }
    }
}
