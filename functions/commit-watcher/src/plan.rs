//! In which order the findings of a batch are handled, and which of them are one.
//!
//! Created objects go table by table and upwards, so that one batch with several commits of a table
//! never shows the engine a gap; the same object delivered twice is looked at once. Evaluations
//! come last and see what the batch advanced.

use lakebell_decoders::Entry;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::watch::{CommitKey, Created};

use crate::deliveries::Delivery;
use crate::unwrap::Finding;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    /// Look at the table of a created object.
    Object(Created),
    /// Do what the message asks for.
    Message(Message),
    /// Store what a service of AWS says.
    Entry(Box<Entry>),
}

/// One thing to do, with the deliveries that asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// What to do.
    pub(crate) work: Work,
    /// Places in the list of deliveries, first one first.
    pub(crate) deliveries: Vec<usize>,
}

/// Where a step stands: rank, then for objects the table, its branch, the number, and the object.
type Place<'a> = (u8, &'a str, String, Option<String>, u64, &'a str, Option<&'a str>);

/// The steps of a batch.
pub(crate) fn plan(deliveries: &[Delivery]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (at, delivery) in deliveries.iter().enumerate() {
        steps.extend(delivery.findings.iter().filter_map(|finding| {
            let work = match finding {
                Finding::Object { created, .. } => Work::Object(created.clone()),
                Finding::Message(message) => Work::Message(message.clone()),
                Finding::Service(entry) => Work::Entry(entry.clone()),
                Finding::Ignored(_) | Finding::Refused(_) => return None,
            };
            Some(Step { work, deliveries: vec![at] })
        }));
    }
    let mut placed: Vec<(Place<'_>, &Step)> = steps.iter().map(|step| (place(&step.work), step)).collect();
    placed.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut planned: Vec<Step> = Vec::new();
    for (_, step) in placed {
        match planned.last_mut().filter(|last| last.work == step.work) {
            Some(last) => last.deliveries.extend(&step.deliveries),
            None => planned.push(step.clone()),
        }
    }
    planned
}

fn place(work: &Work) -> Place<'_> {
    match work {
        Work::Object(created) => {
            let Created { bucket, key, etag } = created;
            let (root, branch, number) = match CommitKey::of(key) {
                Some(commit) => (commit.root, commit.branch, commit.order),
                None => (String::new(), None, 0),
            };
            (0, bucket, root, branch, number, key, etag.as_deref())
        }
        Work::Message(Message::Observe { .. } | Message::LookForTables { .. }) => {
            (1, "", String::new(), None, 0, "", None)
        }
        Work::Entry(entry) => (1, &entry.source, entry.id.clone(), None, 0, "", None),
        Work::Message(_) => (2, "", String::new(), None, 0, "", None),
    }
}

#[cfg(test)]
mod tests {
    use lakebell_domain::ids::{AssetId, TraceId};

    use super::*;

    fn object(key: &str) -> Finding {
        let created = Created { bucket: "lake".to_owned(), key: key.to_owned(), etag: None };
        Finding::Object { created, is_key_raw: false }
    }

    fn delivery(findings: Vec<Finding>) -> Delivery {
        Delivery { id: None, findings }
    }

    #[test]
    fn commits_of_a_table_go_upwards_and_duplicates_are_one() {
        let trace = TraceId::new("t").unwrap();
        let observe = Message::Observe { asset: AssetId::from_bits(1), is_again: false, trace: trace.clone() };
        let evaluate = Message::Evaluate { targets: Vec::new(), trace };
        let deliveries = [
            delivery(vec![Finding::Message(evaluate.clone())]),
            delivery(vec![object("w/a/snapshot/snapshot-10"), Finding::Message(observe.clone())]),
            delivery(vec![object("w/b/snapshot/snapshot-1"), object("w/a/tag/tag-x")]),
            delivery(vec![object("w/a/snapshot/snapshot-9")]),
            delivery(vec![object("w/a/snapshot/snapshot-10"), object("w/a/snapshot/snapshot-10")]),
        ];
        let planned: Vec<(String, Vec<usize>)> = plan(&deliveries)
            .into_iter()
            .map(|step| match step.work {
                Work::Object(created) => (created.key, step.deliveries),
                Work::Message(message) if message == observe => ("observe".to_owned(), step.deliveries),
                Work::Message(message) if message == evaluate => ("evaluate".to_owned(), step.deliveries),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            ("w/a/snapshot/snapshot-9", vec![3]),
            ("w/a/snapshot/snapshot-10", vec![1, 4, 4]),
            ("w/a/tag/tag-x", vec![2]),
            ("w/b/snapshot/snapshot-1", vec![2]),
            ("observe", vec![1]),
            ("evaluate", vec![0]),
        ];
        assert_eq!(planned, expected.map(|(name, deliveries)| (name.to_owned(), deliveries)));
    }

    #[test]
    fn tables_of_every_format_go_upwards() {
        let delta = ["d/_delta_log/00000000000000000009.json", "d/_delta_log/00000000000000000010.json"];
        let hudi = [
            "h/.hoodie/timeline/20260101000000002_20260101000000003.commit",
            "h/.hoodie/timeline/20260101000000001_20260101000000004.commit",
        ];
        let iceberg = ["i/metadata/00009-b.metadata.json", "i/metadata/00010-a.metadata.json"];
        let versions = ["v/metadata/v9.metadata.json", "v/metadata/v10.metadata.json"];
        let expected: Vec<&str> = [delta, hudi, iceberg, versions].concat();
        let deliveries: Vec<Delivery> = expected.iter().rev().map(|key| delivery(vec![object(key)])).collect();
        let planned: Vec<String> = plan(&deliveries)
            .into_iter()
            .filter_map(|step| match step.work {
                Work::Object(created) => Some(created.key),
                Work::Message(_) | Work::Entry(_) => None,
            })
            .collect();
        assert_eq!(planned, expected);
    }
}
