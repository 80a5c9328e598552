//! Which triggers consumed what a rewrite withdrew.

use lakebell_domain::ids::ProjectCode;
use lakebell_engine::history::{self, MAX_LOOKED_AT, Withdrawn};
use lakebell_engine::observe::{self, Hint, Look};

use crate::support::{Deployment, spec, trace};

impl Deployment {
    async fn withdrawn(&self) -> Withdrawn {
        history::withdrawn(&self.world.quiet_ports(), self.ids["a"], None).await.unwrap()
    }

    async fn look_whole(&self) {
        let source = lakebell_domain::event::Source::Poll;
        let hint = Hint { asset: self.ids["a"], look: Look::Whole, source, trace: trace() };
        observe::observe(&self.world.quiet_ports(), &hint).await.unwrap();
    }
}

/// A target on `a` that started once for each of so many commits.
async fn started(commits: usize) -> Deployment {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", "all".into(), &["a"])])).await;
    for _ in 0..commits {
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
        d.world.clock.advance(std::time::Duration::from_secs(1));
    }
    d
}

#[tokio::test]
async fn a_rollback_names_every_trigger_above_what_is_left_newest_first() {
    let mut d = started(4).await;
    d.declare(&spec("other", &[("g", "all".into(), &["b"])])).await;
    d.commit("b", "APPEND").await;
    assert_eq!(d.withdrawn().await, Withdrawn { hold: None, triggers: Vec::new(), of_others: 0, is_complete: true });

    d.table("a").rollback_to(2);
    d.look_whole().await;
    let report = d.withdrawn().await;
    let took: Vec<(&str, bool)> =
        report.triggers.iter().map(|consumed| (consumed.to.snapshot_id.as_str(), consumed.is_certain)).collect();
    assert_eq!((took, report.is_complete), (vec![("4", true), ("3", true)], true));
    assert!(report.triggers.iter().all(|consumed| consumed.target.name.as_str() == "t"));
}

#[tokio::test]
async fn what_cannot_be_told_is_listed_as_uncertain() {
    let mut d = started(2).await;
    d.table("a").drop_table();
    d.look_whole().await;
    let report = d.withdrawn().await;
    let took: Vec<(&str, bool)> =
        report.triggers.iter().map(|consumed| (consumed.to.snapshot_id.as_str(), consumed.is_certain)).collect();
    assert_eq!(took, [("2", true), ("1", false)]);
}

#[tokio::test]
async fn a_report_looks_at_the_newest_triggers_and_says_where_it_stopped() {
    let mut d = started(MAX_LOOKED_AT + 1).await;
    d.table("a").rollback_to(1);
    d.look_whole().await;
    let report = d.withdrawn().await;
    assert_eq!((report.triggers.len(), report.is_complete), (MAX_LOOKED_AT, false));
}

#[tokio::test]
async fn triggers_of_other_projects_are_counted_and_not_shown() {
    let mut d = started(2).await;
    d.table("a").rollback_to(1);
    d.look_whole().await;
    let ports = d.world.quiet_ports();
    let of = |project| history::withdrawn(&ports, d.ids["a"], Some(ProjectCode(project)));
    let own = of(7).await.unwrap();
    assert_eq!((own.triggers.len(), own.of_others), (1, 0));
    let other = of(8).await.unwrap();
    assert_eq!((other.triggers.len(), other.of_others, other.is_complete), (0, 1, true));
}
