//! Keys of triggers that stand for more than their versions: a window, a tick, a request, a register.

use std::collections::BTreeSet;

use jiff::Timestamp;
use lakebell_domain::policy::{Every, Window};
use lakebell_domain::trigger::{Distinct, trigger_key};

use crate::support::{asset_id, at, group_name};

#[derive(Clone, Copy, Default)]
struct More<'a> {
    window: Option<Window>,
    tick: Option<Timestamp>,
    request: Option<&'a str>,
    register: Option<&'a str>,
}

fn key(more: More<'_>) -> String {
    let registers: Vec<_> = more.register.into_iter().map(|text| (asset_id(0), text.to_owned())).collect();
    trigger_key(&Distinct {
        target: &"7/daily".parse().unwrap(),
        generation: 1,
        groups: &BTreeSet::from([group_name("default")]),
        ranges: &[],
        window: more.window,
        partition: None,
        tick: more.tick,
        request: more.request,
        registers: &registers,
    })
    .to_string()
}

/// Digests of form 2 must be the same for ever, as those of form 1 are.
#[test]
fn keys_of_windows_ticks_requests_and_registers_are_distinct_and_stay() {
    let every = Every::new("1d", "Europe/Berlin".parse().unwrap()).unwrap();
    let window = every.containing(at(0));
    let of = |more| key(more);
    let plain = More::default();
    let keys = [
        ("plain", of(plain)),
        ("window", of(More { window: Some(window), ..plain })),
        ("next window", of(More { window: Some(every.after(window.end)), ..plain })),
        ("tick", of(More { tick: Some(at(0)), ..plain })),
        ("next tick", of(More { tick: Some(at(60)), ..plain })),
        ("request", of(More { request: Some("r1"), ..plain })),
        ("next request", of(More { request: Some("r2"), ..plain })),
        ("register", of(More { register: Some("watermark=1"), ..plain })),
        ("next register", of(More { register: Some("watermark=2"), ..plain })),
    ];
    let distinct: BTreeSet<_> = keys.iter().map(|(_, key)| key).collect();
    assert_eq!(distinct.len(), keys.len());
    let both = More { request: Some("r1"), register: Some("watermark=2"), ..plain };
    assert_eq!(of(both), of(More { request: Some("r1"), ..plain }), "a repeated request is the same, whatever moved");

    let written: serde_json::Map<_, _> = keys.into_iter().map(|(name, key)| (name.to_owned(), key.into())).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/trigger_keys_form_2.json");
    if std::env::var_os("LAKEBELL_BLESS").is_some_and(|flag| flag == "1") {
        std::fs::write(path, serde_json::to_string_pretty(&written).unwrap() + "\n").unwrap();
    }
    let kept: serde_json::Map<_, _> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(written, kept);
}
