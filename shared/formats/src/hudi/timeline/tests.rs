use super::*;

fn known(ids: &[&str]) -> BTreeSet<CommitId> {
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

fn shown(files: &[InstantFile]) -> Vec<String> {
    files.iter().map(InstantFile::relative_key).collect()
}

const T1: &str = "20260101000001000";
const T2: &str = "20260101000002000";
const T3: &str = "20260101000003000";
const T4: &str = "20260101000004000";

#[test]
fn completion_orders_layout_2_and_instants_order_layout_1() {
    let keys = [format!(".hoodie/timeline/{T1}_{T4}.commit"), format!(".hoodie/timeline/{T2}_{T3}.commit")];
    let timeline = Timeline::from_keys(keys.iter().map(String::as_str));
    assert_eq!(shown(timeline.completed()), [keys[1].clone(), keys[0].clone()]);
    let keys = [format!(".hoodie/{T2}.commit"), format!(".hoodie/{T1}.commit")];
    let timeline = Timeline::from_keys(keys.iter().map(String::as_str));
    assert_eq!(shown(timeline.completed()), [keys[1].clone(), keys[0].clone()]);
    let late = timeline.unseen(&known(&[&format!("{T2}.commit")]));
    assert_eq!(shown(&late), [keys[1].clone()], "an older instant is simply the next");
    assert_eq!(timeline.rewrite(&known(&[&format!("{T2}.commit")])), None);
}

#[test]
fn an_instant_in_both_layouts_counts_once() {
    let keys = [
        format!(".hoodie/{T1}.commit"),
        format!(".hoodie/timeline/{T1}_{T4}.commit"),
        format!(".hoodie/timeline/{T1}_{T3}.commit"),
        format!(".hoodie/{T2}.inflight"),
        format!(".hoodie/timeline/{T2}.inflight"),
        format!("t/.hoodie/{T3}.commit"),
    ];
    for keys in [keys.iter().rev().collect::<Vec<_>>(), keys.iter().collect()] {
        let timeline = Timeline::from_keys(keys.into_iter().map(String::as_str));
        assert_eq!(shown(timeline.completed()), [format!(".hoodie/timeline/{T1}_{T3}.commit")]);
        assert_eq!(shown(timeline.pending()), [format!(".hoodie/{T2}.inflight")]);
    }
}

#[test]
fn without_completion_times_the_file_in_layout_2_counts() {
    let keys = [format!(".hoodie/{T1}.commit"), format!(".hoodie/timeline/{T1}.commit")];
    for keys in [keys.iter().rev().collect::<Vec<_>>(), keys.iter().collect()] {
        let timeline = Timeline::from_keys(keys.into_iter().map(String::as_str));
        assert_eq!(shown(timeline.completed()), [format!(".hoodie/timeline/{T1}.commit")]);
    }
}

#[test]
fn what_completed_under_another_name_is_not_pending() {
    let keys = [
        format!(".hoodie/{T1}.compaction.requested"),
        format!(".hoodie/{T1}.compaction.inflight"),
        format!(".hoodie/{T1}.commit"),
        format!(".hoodie/{T1}.savepoint.inflight"),
        format!(".hoodie/{T2}.clustering.requested"),
    ];
    let timeline = Timeline::from_keys(keys.iter().map(String::as_str));
    assert_eq!(
        shown(timeline.pending()),
        keys[3..],
        "a savepoint has its commit's instant and is an action of its own"
    );
}

#[test]
fn a_savepoint_in_layout_1_leaves_room_for_doubt() {
    let mut keys = vec![
        format!(".hoodie/{T1}.commit"),
        format!(".hoodie/{T3}.commit"),
        ".hoodie/archived/.commits_.archive.1_1-0-1".to_owned(),
    ];
    let fate =
        |keys: &[String], id: &str| Timeline::from_keys(keys.iter().map(String::as_str)).fate(id.parse().unwrap());
    let between = format!("{T2}.commit");
    assert_eq!(fate(&keys, &between), Fate::Gone);
    assert_eq!(fate(&keys, "20250101000000000.commit"), Fate::Archived);
    keys.push(format!(".hoodie/{T1}.savepoint"));
    assert_eq!(fate(&keys, &between), Fate::MayBeArchived);
    let timeline = Timeline::from_keys(keys.iter().map(String::as_str));
    assert_eq!(timeline.rewrite(&known(&[&between, &format!("{T1}.commit")])), None);
}

#[test]
fn cleans_and_rollbacks_that_go_prove_nothing() {
    let key = format!(".hoodie/{T2}.commit");
    let timeline = Timeline::from_keys([key.as_str()]);
    let seen = known(&[&format!("{T1}.clean"), &format!("{T1}.rollback"), &format!("{T2}.commit")]);
    assert_eq!(timeline.rewrite(&seen), None);
    assert_eq!(Timeline::default().rewrite(&BTreeSet::new()), None);
    assert_eq!(
        Timeline::from_keys([".hoodie/20260101000001000.restore"]).rewrite(&BTreeSet::new()),
        None,
        "a first read"
    );
}

#[test]
fn a_rewrite_is_told_by_what_vanished() {
    let (one, two) = (format!("{T1}.commit"), format!("{T2}.commit"));
    let (later, earlier) = (format!(".hoodie/{T3}.commit"), format!(".hoodie/{T1}.deltacommit"));
    let seen = known(&[&one, &two]);
    let first = format!("{T3}.commit").parse().unwrap();
    assert_eq!(Timeline::from_keys([later.as_str()]).rewrite(&seen), Some(Rewrite::OtherTable { first }));
    let gone: Vec<_> = seen.iter().copied().collect();
    assert_eq!(Timeline::default().rewrite(&seen), Some(Rewrite::Vanished(gone.clone())));
    assert_eq!(Timeline::from_keys([earlier.as_str(), later.as_str()]).rewrite(&seen), Some(Rewrite::Vanished(gone)));
    let restore = format!(".hoodie/{T4}.restore");
    let restored = Timeline::from_keys([restore.as_str()]).rewrite(&seen);
    assert_eq!(restored, Some(Rewrite::Restored(vec![format!("{T4}.restore").parse().unwrap()])));
}
