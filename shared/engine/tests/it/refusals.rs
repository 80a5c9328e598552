//! What a push was refused for is noted in the state, once, and shown in every evaluation.

use lakebell_domain::commit::Millis;
use lakebell_domain::event::EventKind;
use lakebell_domain::state::RefusedEvidence;
use lakebell_engine::push::{self, Facts, Named, Pushed};
use lakebell_testkit::Op;

use crate::support::{Deployment, key, spec, trace};

impl Deployment {
    async fn refuse(&self, id: &str, kind: EventKind, facts: Facts) {
        let (asset, source) = (Named::Key(key("a")), "job".to_owned());
        let pushed = Pushed { id: id.to_owned(), source, kind, asset, time: None, facts };
        push::push(&self.world.ports(), &pushed, &trace()).await.unwrap();
    }

    fn refused(&self) -> Option<RefusedEvidence> {
        self.head("a").state.refused
    }
}

fn watermark(at: i64) -> Facts {
    Facts { watermark: Some(Millis(at)), ..Facts::default() }
}

#[tokio::test]
async fn evidence_that_the_push_refuses_is_noted_once() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    d.refuse("1", EventKind::WatermarkAdvanced, watermark(5)).await;
    let first = d.refused().unwrap();
    assert_eq!(first.kind, EventKind::WatermarkAdvanced);

    let writes = d.world.tap.count(Op::Write);
    d.refuse("1", EventKind::WatermarkAdvanced, watermark(5)).await;
    assert_eq!(d.world.tap.count(Op::Write) - writes, 1, "the event that stands there already");
    d.world.clock.advance(std::time::Duration::from_secs(5));
    d.refuse("2", EventKind::WatermarkAdvanced, watermark(6)).await;
    assert_eq!(d.refused().unwrap(), first, "the same refusal moves nothing");
}

#[tokio::test]
async fn what_storage_does_not_confirm_is_noted() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", "all".into(), &["a"])])).await;
    d.commit("a", "COMPACT").await;
    d.refuse("1", EventKind::TagCreated, Facts { tag: Some("daily".to_owned()), ..Facts::default() }).await;
    let refused = d.refused().unwrap();
    assert_eq!((refused.kind, refused.reason.as_str()), (EventKind::TagCreated, "tag daily is not visible in storage"));

    let member = d.why("t").await.groups.remove(0).members.remove(0);
    assert_eq!(member.refused, Some(refused));
    assert_eq!(member.written_by.unwrap().name, "job");

    d.refuse("2", EventKind::SnapshotCommitted, Facts { snapshot_id: Some("9".to_owned()), ..Facts::default() }).await;
    assert_eq!(d.refused().unwrap().reason, "snapshot 9 is not visible in storage");
    assert_eq!(d.why("t").await.groups[0].members[0].refused, d.refused());
}
