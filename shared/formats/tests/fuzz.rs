//! Every parser of files takes anything: no panic, and memory bounded by what it was given.
//!
//! Inputs are the committed fixtures, changed: bytes and words replaced, parts removed, doubled, moved
//! between files. `LAKEBELL_FUZZ_RUNS` says how many inputs each parser gets (2,000 otherwise),
//! `LAKEBELL_FUZZ_SEED` where the randomness begins. A longer run, in release:
//!
//! `LAKEBELL_FUZZ_RUNS=1000000 cargo test --release -p lakebell-formats --test fuzz -- --nocapture`

// A helper here fails the test as an assertion does.
#![allow(clippy::unwrap_used, clippy::panic)]
// Sizes are of kilobytes, and names in fixtures are in lower case.
#![allow(clippy::cast_precision_loss, clippy::case_sensitive_file_extension_comparisons)]

use std::env;
use std::fs;
use std::io::Write as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use lakebell_domain::version::Ordinal;
use lakebell_formats::iceberg::{Anchor, Known, MAIN, Metadata, ReadOptions};
use lakebell_formats::{delta, hudi, iceberg, paimon};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// One parser at a time, because memory is counted for the whole process.
static TURN: Mutex<()> = Mutex::new(());

/// Inputs of each parser in a run that says nothing else.
const RUNS: u64 = 2_000;
/// Largest file of a fixture that is taken: what matters is many inputs, not large ones.
const MAX_SEED: usize = 6 << 10;
/// What a parser may take beside a multiple of its input. Compressed blocks unpack to more than they are.
const FREE_KB: f32 = 4_096.0;
const PER_BYTE: f32 = 64.0;

/// A generator that is the same everywhere: xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }
}

/// What parsers trip over: ends of ranges, other types, other encodings, deep and long things.
const WORDS: [&[u8]; 28] = [
    b"null",
    b"true",
    b"-1",
    b"0",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"1e400",
    b"\"\"",
    b"\"\\ud800\"",
    b"\"\\u0000\"",
    b"[]",
    b"{}",
    b"[[[[[[[[",
    b"{\"a\":{\"a\":",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\xff\xfe",
    b"\xc3\x28",
    b"\n",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"Obj\x01",
    b"\x1f\x8b",
    b"#=:",
    b"2026-01-01T00:00:00Z",
];

/// A changed copy of a seed.
fn changed(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + 1 + random.below(60)).min(bytes.len());
        match random.below(9) {
            0 if at < bytes.len() => bytes[at] = (random.next() >> 56) as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 => drop(bytes.drain(at.min(end)..end)),
            3 => bytes.truncate(at),
            4 => {
                let copy = bytes[at.min(end)..end].to_vec();
                for _ in 0..=random.below(4) {
                    bytes.splice(at..at, copy.iter().copied());
                }
            }
            5 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                let to = (from + random.below(400)).min(other.len());
                bytes.splice(at.min(end)..end, other[from..to].iter().copied());
            }
            6 => {
                // A number in place of a number.
                let digits = bytes.iter().skip(at).position(u8::is_ascii_digit).map(|found| at + found);
                if let Some(from) = digits {
                    let to = from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                    bytes.splice(from..to, WORDS[random.below(8)].iter().copied());
                }
            }
            _ => {
                let word = WORDS[random.below(WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
        }
    }
    bytes.truncate(4 * MAX_SEED);
    bytes
}

/// The files of a format's fixtures that a parser is for.
fn seeds(format: &str, wants: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(format)];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                folders.push(path);
            } else if wants(&path.to_string_lossy().replace('\\', "/")) {
                found.extend(Some(fs::read(path).unwrap()).filter(|bytes| bytes.len() <= MAX_SEED));
            }
        }
    }
    assert!(!found.is_empty(), "{format} has seeds");
    found
}

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// Feeds a parser; `parse` says whether the input was understood.
fn feed(name: &str, seeds: &[Vec<u8>], parse: impl Fn(&[u8]) -> bool) {
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (runs, seed) = (setting("LAKEBELL_FUZZ_RUNS", RUNS), setting("LAKEBELL_FUZZ_SEED", 0x9e37_79b9_7f4a_7c15));
    let mut random = Random(seed | 1);
    let (mut longest, mut understood, mut highest) = (0, 0_u64, 0.0_f32);
    let begun = Instant::now();
    for run in 0..runs {
        let bytes = changed(&mut random, seeds);
        let before = MEMORY.current_usage_as_kb();
        MEMORY.reset_peak_usage();
        let parsed = panic::catch_unwind(AssertUnwindSafe(|| parse(&bytes)));
        let peak = MEMORY.peak_usage_as_kb() - before;
        let told = || format!("{name}: input {run} of seed {seed}: {}", String::from_utf8_lossy(&bytes));
        understood += u64::from(parsed.unwrap_or_else(|_| panic!("{}", told())));
        let limit = FREE_KB + PER_BYTE * bytes.len() as f32 / 1024.0;
        assert!(peak < limit, "{peak} KB, at most {limit}: {}", told());
        longest = longest.max(bytes.len());
        highest = highest.max(peak);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let _ = writeln!(
        std::io::stderr(),
        "{name}: {runs} inputs of seed {seed}, {understood} understood, longest {longest} bytes, at most {highest:.0} KB, {seconds:.1} s"
    );
    drop(turn);
}

#[test]
fn paimon_snapshots() {
    feed("paimon snapshot", &seeds("paimon", |path| path.contains("/snapshot-")), |bytes| {
        let read = paimon::Snapshot::parse(bytes);
        if let Ok(snapshot) = &read {
            let _ = (
                snapshot.to_commit(paimon::Schema::parse(b"{}").ok().and_then(|it| it.changelog_producer)),
                snapshot.link_holds(Some(1)),
            );
        }
        read.is_ok()
    });
}

#[test]
fn paimon_schemas_tags_and_consumers() {
    let is_small = |path: &str| path.contains("/schema-") || path.contains("/tag-") || path.contains("/consumer-");
    feed("paimon schema, tag, consumer", &seeds("paimon", is_small), |bytes| {
        let read = [
            paimon::Schema::parse(bytes).is_ok(),
            paimon::Tag::parse(bytes).is_ok(),
            paimon::Consumer::parse(bytes).is_ok(),
        ];
        read.contains(&true)
    });
}

fn read_iceberg(bytes: &[u8], read: Option<&Metadata>) -> bool {
    if let Some(metadata) = read {
        let link = metadata.link("00004-x.metadata.json");
        let _ = iceberg::resolve(std::slice::from_ref(&link), Anchor::None);
        for known in [Known::Nothing, Known::Snapshot { id: 1, sequence_number: Some(i64::MAX) }] {
            let step = metadata.step(MAIN, known);
            let _ = metadata.to_commit("00004-x.metadata.json", MAIN, Ordinal(bytes.len() as u64), &step);
        }
    }
    read.is_some()
}

#[test]
fn iceberg_metadata() {
    feed("iceberg metadata", &seeds("iceberg", |path| path.ends_with(".metadata.json")), |bytes| {
        read_iceberg(bytes, Metadata::parse(bytes, ReadOptions::default()).ok().as_ref())
    });
}

#[test]
fn iceberg_metadata_in_gzip() {
    let compressed = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let seeds = seeds("iceberg", |path| path.ends_with(".metadata.json"));
    // Changed before and after they are compressed.
    let both: Vec<Vec<u8>> = seeds.iter().cloned().chain(seeds.iter().map(|bytes| compressed(bytes))).collect();
    feed("iceberg metadata in gzip", &both, |bytes| {
        let file = if bytes.starts_with(b"\x1f\x8b") { bytes.to_vec() } else { compressed(bytes) };
        read_iceberg(bytes, Metadata::read(file.as_slice(), ReadOptions::default()).ok().as_ref())
    });
}

fn is_instant(path: &str) -> bool {
    path.contains("/.hoodie/") && !path.ends_with(".properties") && !path.contains("/metadata/")
}

#[test]
fn hudi_commit_metadata() {
    let mut seeds = seeds("hudi", is_instant);
    seeds.retain(|bytes| !bytes.is_empty());
    feed("hudi commit and restore metadata", &seeds, |bytes| {
        let read = hudi::CommitMetadata::parse(bytes);
        let is_restore = hudi::RestoreMetadata::parse(bytes).is_ok();
        if let Ok(metadata) = &read {
            let _ = hudi::changes_data(hudi::Action::ReplaceCommit, metadata);
        }
        read.is_ok() || is_restore
    });
}

#[test]
fn hudi_table_properties() {
    feed("hudi table properties", &seeds("hudi", |path| path.ends_with("hoodie.properties")), |bytes| {
        hudi::TableProperties::parse(bytes).is_ok()
    });
}

#[test]
fn delta_commits() {
    let is_commit = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        path.ends_with(".json") && name.len() == 25
    };
    feed("delta commit", &seeds("delta", is_commit), |bytes| {
        let read = delta::DeltaCommit::parse(bytes, 7);
        let mut pieces = delta::CommitReader::new(7);
        let pushed = bytes.chunks(97).try_for_each(|piece| pieces.push(piece));
        let in_pieces = pushed.and_then(|()| pieces.finish());
        assert_eq!(read.as_ref().ok(), in_pieces.as_ref().ok(), "both ways read the same");
        if let Ok(commit) = &read {
            let schema = commit.schema_after(None);
            let _ = (commit.to_commit(schema.as_ref()), commit.delta_records());
        }
        read.is_ok()
    });
}

#[test]
fn delta_hints_and_checksums() {
    let is_small = |path: &str| path.ends_with("_last_checkpoint") || path.ends_with(".crc");
    feed("delta hint and checksum", &seeds("delta", is_small), |bytes| {
        delta::LastCheckpoint::parse(bytes).is_ok() || delta::Checksum::parse(bytes).is_ok()
    });
}

#[test]
fn object_keys() {
    let keys: [&[u8]; 12] = [
        b"w/db.db/t/snapshot/snapshot-12",
        b"w/db.db/t/branch/branch-b/tag/tag-a",
        b"w/t/metadata/00012-6f1d0d4f-2a0b-4d0e-9d4a-9a1c2c7b1f10.metadata.json",
        b"w/t/metadata/v3.gz.metadata.json",
        b"w/t/metadata/version-hint.text",
        b"w/t/_delta_log/00000000000000000042.json",
        b"w/t/_delta_log/00000000000000000001.00000000000000000009.compacted.json",
        b"w/t/_delta_log/_staged_commits/00000000000000000042.6f1d0d4f-2a0b-4d0e-9d4a-9a1c2c7b1f10.json",
        b"w/t/.hoodie/20240418172802262.commit",
        b"w/t/.hoodie/timeline/20240418172802262_20240418172804.deltacommit",
        b"w/t/.hoodie/metadata/.hoodie/20240418172802262.deltacommit",
        b"w/t/.hoodie/timeline/history/manifest_1",
    ];
    let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
    feed("object keys", &keys, |bytes| {
        let key = String::from_utf8_lossy(bytes);
        let known = [
            paimon::classify(&key).is_some(),
            iceberg::classify(&key).is_some(),
            hudi::classify(&key).is_some(),
            delta::classify(&key).is_some(),
        ];
        known.contains(&true)
    });
}
