//! The whole table of the trigger machine: from every step along every arrow.

use std::collections::BTreeSet;

use lakebell_domain::ids::{InstanceId, TaskCode, TriggerKey};
use lakebell_domain::sensor::{Asker, Sensor, SensorRun};
use lakebell_domain::trigger::{Arrow, ArrowName, Decision, Status, StatusWord, Trigger, WaitReason};

use crate::support::at;
use crate::walks::{claimed, claimed_for_sensor, claimed_waiting};

const NOW: i64 = 1_000;

/// The run of a task that asks.
fn run() -> SensorRun {
    SensorRun { asker: Asker::WorkflowInstance(InstanceId(31)), run: 1 }
}

/// What [`Trigger::apply`] is asked for in every step, by the name that the table uses.
pub(crate) fn arrows() -> Vec<(&'static str, Arrow)> {
    let reason = WaitReason { code: "BACK_OFF".to_owned(), detail: "503".to_owned() };
    let other: TriggerKey = "00ff".parse().unwrap();
    let decide = |decision| Arrow::Decide { decision, by: "ops".to_owned() };
    let check = |clean, detail: Option<&str>| Arrow::CheckAgain {
        clean,
        check_at: at(NOW + 60),
        detail: detail.map(str::to_owned),
    };
    vec![
        ("lease", Arrow::Lease { until: at(NOW + 30) }),
        ("wake", Arrow::Wake),
        ("answer", Arrow::Answer { task: TaskCode(12), run: run() }),
        ("succeed", Arrow::Succeed { instance: Some(InstanceId(5)) }),
        ("wait", Arrow::Wait { reason: reason.clone(), due_at: at(NOW + 9), refused: false }),
        ("refuse", Arrow::Wait { reason, due_at: at(NOW + 9), refused: true }),
        (
            "lose sight",
            Arrow::LoseSight { code: "TIMEOUT".to_owned(), detail: "30 s".to_owned(), check_at: at(NOW + 60) },
        ),
        ("fail", Arrow::Fail { code: "10109".to_owned(), detail: "no such workflow".to_owned() }),
        ("adopt", Arrow::Adopt { instances: vec![InstanceId(8), InstanceId(9)] }),
        ("clean round", check(true, None)),
        ("undecided round", check(false, Some("scheduler is away"))),
        ("prove absent", Arrow::ProveAbsent { due_at: at(NOW) }),
        ("hold", Arrow::Hold { detail: "two instances".to_owned() }),
        ("decide started", decide(Decision::Started(Some(InstanceId(6))))),
        ("decide absent", decide(Decision::Absent)),
        ("decide failed", decide(Decision::Failed)),
        ("redrive", Arrow::Redrive { by: "ops".to_owned() }),
        ("supersede", Arrow::Supersede { by: other }),
        ("skip", Arrow::Skip { why: "operator".to_owned() }),
        ("send", Arrow::Send { due_at: at(NOW + 120) }),
    ]
}

fn along(mut trigger: Trigger, names: &[&str]) -> Trigger {
    let arrows = arrows();
    for name in names {
        let (_, arrow) = arrows.iter().find(|(known, _)| known == name).unwrap();
        trigger = trigger.apply(arrow, at(NOW)).unwrap_or_else(|illegal| panic!("{illegal}"));
    }
    trigger
}

/// A trigger in every step, and where a step has several faces, each of them.
pub(crate) fn steps() -> Vec<(&'static str, Trigger)> {
    let twice_clean = ["lease", "lose sight", "clean round", "clean round"];
    vec![
        ("queued", claimed()),
        ("leased", along(claimed(), &["lease"])),
        ("waiting, due", claimed_waiting(at(NOW))),
        ("waiting, not due", claimed_waiting(at(NOW + 1))),
        ("unknown", along(claimed(), &["lease", "lose sight"])),
        ("unknown, one clean round", along(claimed(), &twice_clean[..3])),
        ("unknown, two clean rounds", along(claimed(), &twice_clean)),
        ("held", along(claimed(), &["lease", "lose sight", "hold"])),
        ("held, two clean rounds", along(along(claimed(), &twice_clean), &["hold"])),
        ("success", along(claimed(), &["lease", "succeed"])),
        ("failed", along(claimed(), &["lease", "fail"])),
        ("skipped", along(claimed(), &["skip"])),
        ("superseded", along(claimed_waiting(at(NOW)), &["supersede"])),
        ("queued, for a task", claimed_for_sensor()),
        ("success, for a task", along(claimed_for_sensor(), &["answer"])),
    ]
}

/// The arrows of the protocol (ARCHITECTURE.md), and the send. What is not here does not exist.
const TABLE: &[(&str, &str, &str)] = &[
    ("queued", "lease", "leased"),
    ("queued", "skip", "skipped"),
    ("queued", "supersede", "skipped"),
    ("queued", "send", "queued"),
    ("waiting, due", "wake", "queued"),
    ("waiting, due", "skip", "skipped"),
    ("waiting, due", "supersede", "skipped"),
    ("waiting, not due", "skip", "skipped"),
    ("waiting, not due", "supersede", "skipped"),
    ("leased", "succeed", "success"),
    ("leased", "wait", "waiting"),
    ("leased", "refuse", "waiting"),
    ("leased", "lose sight", "unknown"),
    ("leased", "fail", "failed"),
    ("leased", "send", "leased"),
    ("unknown", "adopt", "success"),
    ("unknown", "clean round", "unknown"),
    ("unknown", "undecided round", "unknown"),
    ("unknown", "hold", "held"),
    ("unknown", "send", "unknown"),
    ("unknown, one clean round", "adopt", "success"),
    ("unknown, one clean round", "clean round", "unknown"),
    ("unknown, one clean round", "undecided round", "unknown"),
    ("unknown, one clean round", "hold", "held"),
    ("unknown, one clean round", "send", "unknown"),
    ("unknown, two clean rounds", "adopt", "success"),
    ("unknown, two clean rounds", "clean round", "unknown"),
    ("unknown, two clean rounds", "undecided round", "unknown"),
    ("unknown, two clean rounds", "prove absent", "waiting"),
    ("unknown, two clean rounds", "hold", "held"),
    ("unknown, two clean rounds", "send", "unknown"),
    ("held", "adopt", "success"),
    ("held", "clean round", "held"),
    ("held", "undecided round", "held"),
    ("held", "decide started", "success"),
    ("held", "decide absent", "waiting"),
    ("held", "decide failed", "failed"),
    ("held", "send", "held"),
    ("held, two clean rounds", "adopt", "success"),
    ("held, two clean rounds", "clean round", "held"),
    ("held, two clean rounds", "undecided round", "held"),
    ("held, two clean rounds", "decide started", "success"),
    ("held, two clean rounds", "decide absent", "waiting"),
    ("held, two clean rounds", "decide failed", "failed"),
    ("held, two clean rounds", "send", "held"),
    ("failed", "redrive", "queued"),
    ("failed", "supersede", "skipped"),
    ("queued, for a task", "answer", "success"),
    ("queued, for a task", "skip", "skipped"),
    ("queued, for a task", "supersede", "skipped"),
];

#[test]
fn from_every_step_along_every_arrow() {
    let mut seen = BTreeSet::new();
    for (step, trigger) in steps() {
        for (name, arrow) in arrows() {
            let expected = TABLE.iter().find(|(from, along, _)| (*from, *along) == (step, name)).map(|(_, _, to)| *to);
            let before = trigger.clone();
            match (trigger.apply(&arrow, at(NOW)), expected) {
                (Ok(after), Some(to)) => {
                    assert_eq!(after.status().step(), to, "{step} along {name}");
                    seen.insert((step, name));
                }
                (Ok(after), None) => panic!("{step} along {name} led to {}", after.status().step()),
                (Err(illegal), Some(to)) => panic!("{step} along {name} should lead to {to}: {illegal}"),
                (Err(illegal), None) => {
                    assert_eq!((illegal.step, illegal.arrow), (trigger.status().step(), arrow.name()));
                    let text = format!("a trigger that is {} has no arrow {}", illegal.step, arrow.name());
                    assert_eq!(illegal.to_string(), text);
                }
            }
            assert_eq!(trigger, before, "{step} along {name} changed the trigger that was there");
        }
    }
    assert_eq!(seen.len(), TABLE.len(), "the table names a step or an arrow that is not tried");
}

/// The same by steps, with held drawn on its own.
#[test]
fn the_machine_is_the_one_of_the_protocol() {
    let drawn: BTreeSet<(&str, &str)> = [
        ("queued", "leased"),
        ("queued", "success"),
        ("waiting", "queued"),
        ("queued", "skipped"),
        ("waiting", "skipped"),
        ("leased", "success"),
        ("leased", "waiting"),
        ("leased", "unknown"),
        ("leased", "failed"),
        ("unknown", "success"),
        ("unknown", "waiting"),
        ("unknown", "unknown"),
        ("unknown", "held"),
        ("held", "success"),
        ("held", "waiting"),
        ("held", "failed"),
        ("held", "held"),
        ("failed", "queued"),
        ("failed", "skipped"),
    ]
    .into();
    let mut found = BTreeSet::new();
    for (_, trigger) in steps() {
        for (_, arrow) in arrows().into_iter().filter(|(_, arrow)| arrow.name() != ArrowName::Send) {
            if let Ok(after) = trigger.apply(&arrow, at(NOW)) {
                found.insert((trigger.status().step(), after.status().step()));
            }
        }
    }
    assert_eq!(found, drawn);
}

#[test]
fn the_history_shows_five_words() {
    for (step, trigger) in steps() {
        let word = match trigger.status().step() {
            "queued" | "leased" | "waiting" => StatusWord::Triggering,
            "unknown" | "held" => StatusWord::Unknown,
            "success" => StatusWord::Success,
            "failed" => StatusWord::Failed,
            _ => StatusWord::Skipped,
        };
        assert_eq!(trigger.status().word(), word, "{step}");
        assert_eq!(serde_json::to_value(word).unwrap(), word.as_str());
        let ended = !matches!(word, StatusWord::Triggering | StatusWord::Unknown);
        assert_eq!(trigger.has_ended(), ended, "{step}");
        let is_timed = trigger.sensor.is_none();
        assert_eq!(trigger.due_at.is_some(), is_timed && !ended, "{step}: a time is due exactly until the end");
    }
}

#[test]
fn a_start_is_recorded_with_its_instance() {
    let started = along(claimed(), &["lease", "succeed"]);
    assert_eq!((started.instance, started.status()), (Some(InstanceId(5)), &Status::Success { assumed: false }));

    let adopted = along(claimed(), &["lease", "lose sight", "adopt"]);
    assert_eq!((adopted.instance, &adopted.extra_instances), (Some(InstanceId(8)), &vec![InstanceId(9)]));

    let told = along(claimed(), &["lease", "lose sight", "hold", "decide started"]);
    assert_eq!((told.instance, told.status()), (Some(InstanceId(6)), &Status::Success { assumed: false }));

    let blind = Arrow::Decide { decision: Decision::Started(None), by: "policy".to_owned() };
    let assumed = along(claimed(), &["lease", "lose sight", "hold"]).apply(&blind, at(NOW)).unwrap();
    assert_eq!((assumed.instance, assumed.status()), (None, &Status::Success { assumed: true }));
}

#[test]
fn what_a_task_takes_is_recorded_with_its_run() {
    let queued = claimed_for_sensor();
    assert_eq!((queued.start_at, queued.sends, queued.due_at), (None, 0, None), "nobody is sent it");
    assert!(queued.waits_for_sensor() && !claimed().waits_for_sensor());
    let taken = along(queued, &["answer"]);
    assert_eq!((taken.instance, taken.status()), (Some(InstanceId(31)), &Status::Success { assumed: false }));
    assert_eq!(taken.sensor, Some(Sensor { task: TaskCode(12), taken_by: Some(run()) }));
    assert_eq!(taken.log.last().unwrap().detail.as_deref(), Some("task 12 of workflow instance 31, run 1"));
    assert!(!taken.waits_for_sensor());
    let other = SensorRun { asker: Asker::Token("k-1".parse().unwrap()), run: 2 };
    let taken = claimed_for_sensor().apply(&Arrow::Answer { task: TaskCode(12), run: other }, at(NOW)).unwrap();
    assert_eq!((taken.instance, taken.status()), (None, &Status::Success { assumed: false }));
}

#[test]
fn tries_count_refusals_and_proven_absences() {
    let tries = |names: &[&str]| along(claimed(), names).tries;
    assert_eq!(tries(&["lease", "wait"]), 0, "a closed gate uses up nothing");
    assert_eq!(tries(&["lease", "refuse"]), 1);
    assert_eq!(tries(&["lease", "lose sight", "clean round", "clean round", "prove absent"]), 1);
    assert_eq!(tries(&["lease", "lose sight", "hold", "decide absent"]), 0, "a person's word uses up nothing");
    assert_eq!(tries(&["lease", "fail", "redrive"]), 0);

    let mut trigger = claimed();
    for round in 1..=3 {
        trigger = along(trigger, &["lease", "refuse"]).apply(&Arrow::Wake, at(NOW + 9)).unwrap();
        assert_eq!((trigger.tries, trigger.attempt), (round, round));
    }
    let redriven = along(trigger, &["lease", "fail", "redrive"]);
    assert_eq!((redriven.tries, redriven.attempt), (0, 5), "a redrive renews the budget and fences older messages");
}

#[test]
fn an_undecided_round_starts_the_count_again() {
    let rounds = |names: &[&str]| {
        let trigger = along(along(claimed(), &["lease", "lose sight"]), names);
        let Status::Unknown { clean_rounds, last_round, .. } = trigger.status() else { panic!("{trigger:?}") };
        (*clean_rounds, *last_round)
    };
    assert_eq!(rounds(&[]), (0, None));
    assert_eq!(rounds(&["clean round"]), (1, Some(at(NOW))));
    assert_eq!(rounds(&["clean round", "undecided round"]).0, 0);
    assert_eq!(rounds(&["clean round", "undecided round", "clean round"]).0, 1);
    let trigger = along(claimed(), &["lease", "lose sight", "undecided round"]);
    let Status::Unknown { code, detail, since, .. } = trigger.status() else { panic!("{trigger:?}") };
    assert_eq!((code.as_str(), detail.as_str(), *since), ("TIMEOUT", "scheduler is away", at(NOW)));
}

#[test]
fn times_that_a_gate_reads_are_not_moved_by_a_send() {
    for (step, trigger) in steps() {
        let Ok(sent) = along_send(&trigger) else { continue };
        assert_eq!(sent.sends, trigger.sends + 1, "{step}");
        assert_eq!(sent.log, trigger.log, "{step}: sends are counted, not logged");
        let expected = if step == "queued" { Some(at(NOW + 120)) } else { trigger.due_at };
        assert_eq!(sent.due_at, expected, "{step}");
    }
    let leased = along(claimed(), &["lease"]);
    assert_eq!((leased.due_at, leased.first_tried_at), (Some(at(NOW + 30)), Some(at(NOW))));
    let again = along(leased, &["fail", "redrive"]).apply(&Arrow::Lease { until: at(NOW + 99) }, at(NOW + 60)).unwrap();
    assert_eq!(again.first_tried_at, Some(at(NOW)), "a duplicate check looks from the first start on");
}

fn along_send(trigger: &Trigger) -> Result<Trigger, lakebell_domain::trigger::IllegalArrow> {
    trigger.apply(&Arrow::Send { due_at: at(NOW + 120) }, at(NOW))
}

#[test]
fn nothing_wakes_before_its_time() {
    let waiting = claimed_waiting(at(NOW));
    assert!(waiting.apply(&Arrow::Wake, at(NOW - 1)).is_err());
    let awake = waiting.apply(&Arrow::Wake, at(NOW)).unwrap();
    assert_eq!((awake.status(), awake.due_at), (&Status::Queued, Some(at(NOW))));
}
