use super::*;

fn file(key: &str) -> InstantFile {
    match classify(key).unwrap_or_else(|| panic!("{key} was not recognised")).kind {
        HudiObjectKind::Instant(file) => file,
        other => panic!("{key} is {other:?}"),
    }
}

fn instant(text: &str) -> Instant {
    text.parse().unwrap()
}

const AT: &str = "20240418172802262";
const DONE: &str = "20240418172803000";

#[test]
fn every_action_is_told_in_every_state_and_layout() {
    for layout in [Layout::One, Layout::Two] {
        for action in Action::ALL {
            let middle = if action == Action::Commit { String::new() } else { format!("{action}.") };
            let completion = (layout == Layout::Two).then(|| instant(DONE));
            let done = if layout == Layout::Two { format!("_{DONE}") } else { String::new() };
            let names = [
                (format!("{AT}.{action}.requested"), State::Requested, None),
                (format!("{AT}.{middle}inflight"), State::Inflight, None),
                (format!("{AT}{done}.{action}"), State::Completed, completion),
            ];
            for (name, state, completion) in names {
                let relative = format!("{}{name}", layout.folder());
                let expected = InstantFile { instant: instant(AT), completion, action, state, layout };
                for root in ["", "t/", "lake/a b.db/c+d%2F/"] {
                    let object = classify(&format!("{root}{relative}")).unwrap();
                    assert_eq!(object.root, root.trim_end_matches('/'));
                    assert_eq!(object.kind, HudiObjectKind::Instant(expected));
                    assert_eq!(object.completed().is_some(), state == State::Completed);
                }
                assert_eq!(expected.relative_key(), relative);
            }
        }
    }
}

#[test]
fn spellings_that_writers_also_use_are_read() {
    let named = file(&format!(".hoodie/{AT}.commit.inflight"));
    assert_eq!((named.action, named.state), (Action::Commit, State::Inflight));
    let legacy = file(&format!("t/.hoodie/timeline/{AT}.commit"));
    assert_eq!((legacy.completion, legacy.layout, legacy.position()), (None, Layout::Two, instant(AT)));
    assert_eq!(file("t/.hoodie/00000000000001.commit").instant, instant("00000000000001"));
    assert_eq!(Layout::from_version("0"), Some(Layout::One));
    assert_eq!(Layout::from_version("2"), Some(Layout::Two));
    assert_eq!(Layout::from_version("3"), None);
}

#[test]
fn properties_and_archives_are_told() {
    let kind = |key: &str| classify(key).map(|object| object.kind);
    let log = HudiObjectKind::Archive(ArchiveFile::Log);
    assert_eq!(kind("t/.hoodie/hoodie.properties"), Some(HudiObjectKind::Properties));
    assert_eq!(kind("t/.hoodie/archived/.commits_.archive.12_1-0-1"), Some(log));
    assert_eq!(kind(".hoodie/.commits_.archive.1_1-0-1"), Some(log));
    let range = ArchiveFile::Range(instant(AT), instant(DONE));
    let history = format!("t/.hoodie/timeline/history/{AT}_{DONE}_0.parquet");
    assert_eq!(kind(&history), Some(HudiObjectKind::Archive(range)));
}

#[test]
fn a_table_inside_the_table_is_never_its_own() {
    for name in
        [format!("{AT}.deltacommit"), format!("timeline/{AT}_{DONE}.deltacommit"), "hoodie.properties".to_owned()]
    {
        for inside in ["metadata", ".temp/x", "anything"] {
            assert_eq!(classify(&format!("t/.hoodie/{inside}/.hoodie/{name}")), None);
            assert_eq!(classify(&format!(".hoodie/{inside}/.hoodie/{name}")), None);
        }
        assert!(classify(&format!("metadata/.hoodie/{name}")).is_some(), "a table may be named so");
        assert!(classify(&format!("my.hoodie/t/.hoodie/{name}")).is_some());
    }
}

#[test]
fn everything_else_is_nothing() {
    let others = [
        String::new(),
        "/".into(),
        format!("{AT}.commit"),
        format!("t/{AT}.commit"),
        format!("t/timeline/{AT}_{DONE}.commit"),
        format!("x.hoodie/{AT}.commit"),
        format!("t/.hoodie/sub/{AT}.commit"),
        format!("t/.hoodie/.temp/{AT}.commit"),
        format!("t/.hoodie/.aux/{AT}.compaction.requested"),
        format!("t/.hoodie/.schema/{AT}.schemacommit"),
        format!("t/.hoodie/.heartbeat/{AT}"),
        format!("t/.hoodie/.{AT}.commit.crc"),
        format!("t/.hoodie/{AT}.commit.crc"),
        format!("t/.hoodie/{AT}.commit.requested.crc"),
        format!("t/.hoodie/{AT}_{DONE}.commit"),
        format!("t/.hoodie/timeline/{AT}_{DONE}.commit.requested"),
        format!("t/.hoodie/timeline/{AT}_{DONE}.inflight"),
        format!("t/.hoodie/timeline/{AT}_.commit"),
        format!("t/.hoodie/timeline/_{DONE}.commit"),
        format!("t/.hoodie/timeline/{AT}_{DONE}_{DONE}.commit"),
        format!("t/.hoodie/timeline/{AT}_{DONE}.Commit"),
        format!("t/.hoodie/{AT}.unknown"),
        format!("t/.hoodie/{AT}"),
        format!("t/.hoodie/{AT}."),
        "t/.hoodie/2024041817280226.commit".into(),
        "t/.hoodie/2024041817280x.commit".into(),
        "t/.hoodie/hoodie.properties.backup".into(),
        "t/.hoodie/timeline/hoodie.properties".into(),
        "t/.hoodie/timeline/".into(),
        "t/.hoodie/archived/x".into(),
        "t/.hoodie/timeline/history/manifest_1".into(),
        "t/.hoodie/timeline/history/_version_".into(),
        format!("t/.hoodie/timeline/history/{AT}_{DONE}_x.parquet"),
        format!("t/.hoodie/timeline/history/{AT}_0.parquet"),
    ];
    for key in others {
        assert_eq!(classify(&key), None, "{key}");
    }
}

#[test]
fn look_alikes_lie_on_the_timeline_and_are_no_checksums() {
    for name in ["20240418172802262.future", "20240418172802262_1.commit", "20240418172802262.commit.bak"] {
        assert!(
            resembles_instant(&format!(".hoodie/{name}")) && resembles_instant(&format!(".hoodie/timeline/{name}")),
            "{name}"
        );
        assert!(!resembles_instant(&format!(".hoodie/metadata/.hoodie/{name}")));
    }
    for key in [
        ".hoodie/20240418172802262.commit",
        ".hoodie/2024.commit",
        ".hoodie/20240418172802262.commit.CRC",
        "20240418172802262.x",
        ".hoodie/20240418172802262",
    ] {
        assert!(!resembles_instant(key), "{key}");
    }
}
