//! What notices look like on the bus.

use lakebell_domain::ids::InstanceId;
use lakebell_domain::notice::Notice;
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::state::RewriteHold;
use lakebell_domain::trigger::{Arrow, FollowedState, Sighting, Trigger};

use crate::golden::golden;
use crate::machine::steps;
use crate::support::{asset_key, at, version};

fn step(name: &str) -> Trigger {
    steps().into_iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn each_notice_has_its_form() {
    let started = step("success");
    let seen = Sighting::Seen { state: FollowedState::Failure, started_at: None, ended_at: Some(at(90)), runs: 1 };
    let ended = started.sighted(&seen, at(100)).unwrap();
    let followed = ended.followed().unwrap().clone();
    let hold = RewriteHold {
        evidence: "snapshot 5 is another one".to_owned(),
        withdrawn: Some(version(0, 5)),
        storage_newest: None,
        first_seen: at(7),
        confirmed_at: None,
    };
    let notices = [
        ("asset_advanced", Notice::AssetAdvanced { asset: asset_key("orders"), version: version(0, 5) }),
        ("history_rewritten", Notice::of_hold(&asset_key("orders"), &hold)),
        ("trigger_started", Notice::of(&started).unwrap()),
        ("trigger_failed", Notice::of(&step("failed")).unwrap()),
        ("trigger_held", Notice::of(&step("held")).unwrap()),
        ("workflow_ended", Notice::WorkflowEnded { trigger: (&ended).into(), followed }),
        ("extra_instance", Notice::ExtraInstance { trigger: (&started).into(), extras: vec![InstanceId(9)] }),
        (
            "target_late",
            Notice::TargetLate {
                target: started.target.clone(),
                deadline: at(60),
                verdict: Verdict::Waiting,
                reason: Some(ReasonCode::NoNewVersion),
            },
        ),
        ("token_expiring", Notice::TokenExpiring { connection: started.connection.clone(), expires_at: at(80) }),
    ];
    let mut types = std::collections::BTreeSet::new();
    for (name, notice) in &notices {
        let envelope = golden(&format!("notice_{name}"), &notice.envelope(at(10)));
        assert!(types.insert(envelope["type"].to_string()), "{name}");
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/notices.md")).unwrap();
    for (_, notice) in &notices {
        assert!(page.contains(&format!("`{}`", notice.type_name())), "docs/notices.md lacks {}", notice.type_name());
    }
}

#[test]
fn a_status_on_the_way_is_nothing_to_react_to() {
    for name in ["queued", "leased", "unknown", "skipped", "superseded"] {
        assert_eq!(Notice::of(&step(name)), None, "{name}");
    }
}

#[test]
fn the_same_happening_has_the_same_id_and_another_try_another_one() {
    let failed = step("failed");
    let id = Notice::of(&failed).unwrap().id();
    assert_eq!(Notice::of(&step("failed")).unwrap().id(), id);
    let again = failed.apply(&Arrow::Redrive { by: "ops".to_owned() }, at(2_000)).unwrap();
    let again = again.apply(&Arrow::Lease { until: at(2_030) }, at(2_000)).unwrap();
    let again = again.apply(&Arrow::Fail { code: "x".to_owned(), detail: String::new() }, at(2_000)).unwrap();
    assert_ne!(Notice::of(&again).unwrap().id(), id);
}
