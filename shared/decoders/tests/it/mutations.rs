//! Damaged and hostile payloads: every decoder answers, whatever comes in, and what it says stays
//! within its bounds.
//!
//! `LAKEBELL_FUZZ=1000000 cargo test --release -p lakebell-decoders -- --ignored a_million` runs as many
//! inputs through each decoder.

use lakebell_decoders::{MAX_NAME, MAX_REPORTS};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::Value;

use crate::support::{DECODERS, files, own_fixtures, shared_samples, shown};

/// Every payload there is, as text.
fn seeds() -> Vec<Vec<u8>> {
    let folders = [Some(own_fixtures()), shared_samples()];
    let files = folders.into_iter().flatten().flat_map(|folder| files(&folder));
    files.map(|file| std::fs::read(file).unwrap()).filter(|bytes| bytes.len() < 16 * 1024).collect()
}

/// Random numbers of one run.
struct Dice(TestRng);

impl Dice {
    fn seeded(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.0.next_u64() % u64::try_from(most.max(1)).unwrap()).unwrap()
    }
}

/// Values that have broken readers before.
const ODD: [&str; 16] = [
    "null",
    "true",
    "-1",
    "0",
    "1e400",
    "9223372036854775808",
    "-9223372036854775809",
    "\"\"",
    "\"a.b.c.d.e.f.g.h.i.j\"",
    "\"s3://b/\"",
    "\"\\u0000\\ud83d\\ude00\"",
    "[]",
    "{}",
    "[[[[[[]]]]]]",
    "\"s3://lake/x/metadata/.metadata.json\"",
    "\"%00/../=\"",
];

/// Damages a document by its structure, and its bytes sometimes.
fn damaged(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut out = match serde_json::from_slice::<Value>(bytes) {
        Ok(mut value) => {
            for _ in 0..=dice.below(3) {
                damage(&mut value, dice, 0);
            }
            value.to_string().into_bytes()
        }
        Err(_) => bytes.to_vec(),
    };
    match dice.below(8) {
        0 => out.truncate(dice.below(out.len())),
        1 if !out.is_empty() => {
            let at = dice.below(out.len());
            out[at] = u8::try_from(dice.below(256)).unwrap();
        }
        2 => {
            let at = dice.below(out.len());
            let odd = ODD[dice.below(ODD.len())];
            out.splice(at..at, odd.bytes());
        }
        _ => {}
    }
    out
}

fn damage(value: &mut Value, dice: &mut Dice, depth: usize) {
    let stops = depth > 8 || dice.below(4) == 0;
    match value {
        Value::Array(list) if !list.is_empty() && !stops => {
            let at = dice.below(list.len());
            match dice.below(6) {
                0 => drop(list.remove(at)),
                1 => list.push(list[at].clone()),
                _ => damage(&mut list[at], dice, depth + 1),
            }
        }
        Value::Object(members) if !members.is_empty() && !stops => {
            let name = members.keys().nth(dice.below(members.len())).unwrap().clone();
            match dice.below(8) {
                0 => drop(members.remove(&name)),
                1 => {
                    let moved = members.remove(&name).unwrap();
                    members.insert(format!("{name}x"), moved);
                }
                _ => damage(members.get_mut(&name).unwrap(), dice, depth + 1),
            }
        }
        Value::String(text) if dice.below(2) == 0 => {
            let at = text.char_indices().nth(dice.below(text.len())).map_or(0, |(at, _)| at);
            match dice.below(3) {
                0 => text.truncate(at),
                1 => text.insert(at, ['.', '/', '=', '\u{1f}', 'é', '\0'][dice.below(6)]),
                _ => *text = text.repeat(1 + dice.below(40)),
            }
        }
        other => *other = serde_json::from_str(ODD[dice.below(ODD.len())]).unwrap_or(Value::Null),
    }
}

/// What holds of whatever a decoder says.
fn check(decoder: &str, outcome: &Value) {
    let items = outcome.as_array().map_or_else(|| vec![outcome], |list| list.iter().collect());
    for item in items {
        let content = item.get("content").unwrap_or(item);
        let reports = content.get("reports").and_then(Value::as_array).map_or(0, Vec::len);
        assert!(reports <= MAX_REPORTS, "{decoder}: {reports}");
        let names = content.pointer("/job/name").and_then(Value::as_str).map_or(0, str::len);
        assert!(names <= MAX_NAME, "{decoder}");
        for report in content.get("reports").and_then(Value::as_array).into_iter().flatten() {
            assert!(report["table"]["name"].as_str().unwrap().len() <= MAX_NAME);
            let check = report.pointer("/says/check/check").and_then(Value::as_str);
            assert!(check.is_none_or(|check| !check.trim().is_empty() && check.len() <= 128), "{decoder}: {report}");
        }
        if let Some(refused) = item.get("refused") {
            assert!(!refused["problem"].as_str().unwrap().is_empty() && !refused["hint"].as_str().unwrap().is_empty());
        }
    }
}

fn run(decoder: &str, seeds: &[Vec<u8>], count: usize, seed: u64) {
    let mut dice = Dice::seeded(seed);
    for _ in 0..count {
        let bytes = damaged(&seeds[dice.below(seeds.len())], &mut dice);
        check(decoder, &shown(decoder, &bytes));
    }
}

#[test]
fn damaged_payloads_are_answered() {
    let seed = std::env::var("LAKEBELL_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    let seeds = seeds();
    for decoder in DECODERS {
        run(decoder, &seeds, 2_000, seed);
    }
}

#[test]
#[ignore = "a million inputs for each decoder take minutes; run once before a release"]
fn a_million_damaged_payloads_are_answered() {
    let count = std::env::var("LAKEBELL_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let seeds = seeds();
    for decoder in DECODERS {
        run(decoder, &seeds, count, 42);
        println!("{decoder}: {count} inputs");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for decoder in DECODERS {
            check(decoder, &shown(decoder, &bytes));
        }
    }
}
