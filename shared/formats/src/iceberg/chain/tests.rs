use super::*;

const UUID: &str = "85f616f1";

/// A file named `N-x`, made from the files of the log, whose main is at a snapshot.
fn link(name: &str, log: &[&str], head: i64) -> ChainLink {
    let full = |name: &str| format!("{name}.metadata.json");
    ChainLink {
        name: full(name),
        table_uuid: Some(UUID.to_owned()),
        log: log.iter().map(|name| full(name)).collect(),
        head: (head > 0).then_some(head),
        recent: (1..=head).collect(),
        last_updated_ms: Some(head),
    }
}

fn short(names: &[String]) -> Vec<&str> {
    names.iter().map(|name| name.trim_end_matches(".metadata.json")).collect()
}

/// The lists of a chain, by names without their suffix: accepted, pending, orphans.
fn lists(links: &[ChainLink], anchor: Anchor<'_>) -> (Vec<String>, Vec<String>, Vec<String>) {
    let chain = resolve(links, anchor);
    let owned = |names: &[String]| short(names).into_iter().map(str::to_owned).collect();
    (owned(&chain.accepted), owned(&chain.pending), owned(&chain.orphans))
}

fn of(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn nothing_is_no_chain() {
    assert!(resolve(&[], Anchor::None).holds_anchor);
    let chain = resolve(&[], Anchor::Accepted("v1.metadata.json"));
    assert!(!chain.holds_anchor && chain.accepted.is_empty());
}

#[test]
fn of_two_that_follow_one_file_the_one_that_was_built_upon_wins() {
    let mut files = vec![
        link("00000-a", &[], 0),
        link("00001-a", &["00000-a"], 1),
        link("00002-won", &["00000-a", "00001-a"], 2),
        link("00002-lost", &["00000-a", "00001-a"], 3),
    ];
    let undecided = (of(&["00000-a", "00001-a"]), of(&["00002-lost", "00002-won"]), of(&[]));
    assert_eq!(lists(&files, Anchor::None), undecided);
    let current = Anchor::Current("s3://b/t/metadata/00002-won.metadata.json");
    assert_eq!(lists(&files, current), (of(&["00000-a", "00001-a", "00002-won"]), of(&[]), of(&["00002-lost"])));
    // What was accepted stays so, until the other one is built upon.
    let accepted = Anchor::Accepted("00002-lost.metadata.json");
    assert_eq!(lists(&files, accepted), (of(&["00000-a", "00001-a", "00002-lost"]), of(&["00002-won"]), of(&[])));
    files.push(link("00003-a", &["00001-a", "00002-won"], 4));
    let decided = (of(&["00000-a", "00001-a", "00002-won", "00003-a"]), of(&[]), of(&["00002-lost"]));
    assert_eq!(lists(&files, Anchor::None), decided);
    assert_eq!(lists(&files, accepted), decided);
    assert!(!resolve(&files, accepted).holds_anchor, "and that is said");
    assert!(resolve(&files, Anchor::Accepted("00002-won.metadata.json")).holds_anchor);
}

#[test]
fn what_the_catalog_has_not_named_yet_is_pending() {
    let files =
        [link("00000-a", &[], 0), link("00001-a", &["00000-a"], 1), link("00002-a", &["00000-a", "00001-a"], 2)];
    let current = Anchor::Current("00001-a.metadata.json");
    assert_eq!(lists(&files, current), (of(&["00000-a", "00001-a"]), of(&["00002-a"]), of(&[])));
    let missing = resolve(&files, Anchor::Current("00009-a.metadata.json"));
    assert!(!missing.holds_anchor && missing.accepted.is_empty());
}

#[test]
fn files_that_are_gone_still_connect() {
    // Only 4 to 6 are there; the log of each is cut to two.
    let files = [
        link("00004-a", &["00002-a", "00003-a"], 4),
        link("00005-a", &["00003-a", "00004-a"], 5),
        link("00006-a", &["00004-a", "00005-a"], 6),
    ];
    assert_eq!(lists(&files, Anchor::None).0, of(&["00004-a", "00005-a", "00006-a"]));
    let gone = resolve(&files, Anchor::Accepted("00003-a.metadata.json"));
    assert!(gone.holds_anchor, "an accepted file need not be there");
    let long_gone = resolve(&files, Anchor::Accepted("00001-a.metadata.json"));
    assert!(!long_gone.holds_anchor && long_gone.accepted.len() == 3);
    // A race right behind the oldest one.
    let raced = [&files[..], &[link("00004-lost", &["00002-a", "00003-a"], 3)]].concat();
    assert_eq!(lists(&raced, Anchor::None).2, of(&["00004-lost"]));
    // The winner of a race is gone, but a later file names it.
    let later = [
        link("00001-lost", &["00000-a"], 9),
        link("00000-a", &[], 0),
        link("00003-a", &["00000-a", "00001-a", "00002-a"], 3),
    ];
    assert_eq!(lists(&later, Anchor::None), (of(&["00000-a", "00003-a"]), of(&[]), of(&["00001-lost"])));
}

#[test]
fn a_file_without_a_log_follows_the_one_whose_snapshot_it_holds() {
    let cut = [link("00007-a", &[], 3), link("00009-b", &[], 5)];
    assert_eq!(lists(&cut, Anchor::None).0, of(&["00007-a", "00009-b"]));
    // Its log says something, and a file between was made from the same one.
    let edited = [link("00002-a", &[], 2), link("00003-a", &["00002-a"], 3), link("00004-b", &["00002-a"], 3)];
    assert_eq!(lists(&edited, Anchor::None).0, of(&["00002-a", "00003-a", "00004-b"]));
    // The snapshot of a race's loser is in no later file.
    let mut lost = edited.clone();
    lost[1].head = Some(99);
    assert_eq!(lists(&lost, Anchor::None).1, of(&["00003-a", "00004-b"]));
}

#[test]
fn files_that_only_a_number_connects_follow_each_other() {
    let epoch = [link("v1730000000", &[], 1), link("v1730000600", &[], 0), link("v1730001200", &[], 2)];
    assert_eq!(lists(&epoch, Anchor::None).0, of(&["v1730000000", "v1730000600", "v1730001200"]));
    let hadoop = [link("v9", &[], 1), link("v10", &[], 2)];
    assert_eq!(lists(&hadoop, Anchor::None).0, of(&["v9", "v10"]));
}

#[test]
fn the_table_written_last_is_the_one_that_is_there() {
    let mut old = [link("00000-a", &[], 0), link("00001-a", &["00000-a"], 5)];
    for link in &mut old {
        link.table_uuid = Some("0ther".to_owned());
    }
    let new = [link("00000-b", &[], 0), link("00001-b", &["00000-b"], 9)];
    let all = [&old[..], &new[..]].concat();
    let chain = resolve(&all, Anchor::Accepted("00001-a.metadata.json"));
    assert_eq!(short(&chain.accepted), ["00000-b", "00001-b"]);
    assert_eq!(short(&chain.foreign), ["00000-a", "00001-a"]);
    assert!(!chain.holds_anchor);
    assert_eq!(short(&resolve(&all, Anchor::Current("00001-a.metadata.json")).accepted), ["00000-a", "00001-a"]);
}

#[test]
fn a_file_without_a_uuid_belongs_with_those_that_name_it() {
    let mut files =
        [link("00000-a", &[], 0), link("00001-a", &["00000-a"], 1), link("00002-a", &["00000-a", "00001-a"], 2)];
    files[0].table_uuid = None;
    files[1].table_uuid = None;
    assert_eq!(lists(&files, Anchor::None).0, of(&["00000-a", "00001-a", "00002-a"]));
}

#[test]
fn logs_in_circles_end() {
    let files = [link("00001-a", &["00002-a"], 1), link("00002-a", &["00001-a"], 2), link("00003-a", &["00003-a"], 3)];
    let (accepted, pending, orphans) = lists(&files, Anchor::None);
    assert_eq!(accepted.len() + pending.len() + orphans.len(), 3);
}
