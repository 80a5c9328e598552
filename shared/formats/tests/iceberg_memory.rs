//! What reading a large metadata file takes in memory, counted for the whole process.

// A helper here fails the test as an assertion does.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::io::{self, Read, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use lakebell_formats::iceberg::{Known, MAIN, MAX_SNAPSHOTS, Metadata, Movement, ReadOptions};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const LIMIT_MB: f32 = 64.0;

/// A metadata file that is made while it is read, so that it never lies in memory.
struct Written {
    next: i64,
    last: i64,
    /// Blanks in front of each snapshot, to make it as long as wanted.
    padding: usize,
    text: String,
    taken: usize,
}

impl Written {
    fn new(snapshots: i64, padding: usize) -> Self {
        let start = r#"{"format-version":2,"table-uuid":"85f616f1","location":"s3://lake/t","snapshots":["#;
        Self { next: 1, last: snapshots, padding, text: start.to_owned(), taken: 0 }
    }

    /// Puts the next part of the file into `text`; nothing where it has ended.
    fn refill(&mut self) {
        (self.taken, self.next) = (0, self.next + 1);
        self.text.clear();
        let n = self.next - 1;
        if n <= self.last {
            let comma = if n == 1 { "" } else { "," };
            let parent = if n == 1 { String::new() } else { format!(r#""parent-snapshot-id":{},"#, id(n - 1)) };
            let _ = write!(
                self.text,
                concat!(
                    r#"{}{:pad$}{{"sequence-number":{},"snapshot-id":{},{}"timestamp-ms":{},"summary":{{"operation":"append","#,
                    r#""added-records":"10","total-records":"{}","total-data-files":"{}","total-delete-files":"0","#,
                    r#""spark.app.id":"local-1795982380788","engine-version":"3.5.1","iceberg-version":"Apache Iceberg 1.6.1"}},"#,
                    r#""manifest-list":"s3://lake/t/metadata/snap-{}-1-{:032x}.avro","schema-id":0}}"#
                ),
                comma,
                "",
                n,
                id(n),
                parent,
                n,
                10 * n,
                n,
                id(n),
                id(n + 5),
                pad = self.padding
            );
        } else if n == self.last + 1 {
            let _ = write!(
                self.text,
                r#"],"current-snapshot-id":{0},"refs":{{"main":{{"snapshot-id":{0},"type":"branch"}}}}}}"#,
                id(self.last)
            );
        }
    }
}

impl Read for Written {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.text.len() {
            self.refill();
        }
        let taken = (&self.text.as_bytes()[self.taken..]).read(buffer)?;
        self.taken += taken;
        Ok(taken)
    }
}

fn id(n: i64) -> i64 {
    n.wrapping_mul(6_364_136_223_846_793_005) & i64::MAX
}

fn compressed(mut json: impl Read) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    io::copy(&mut json, &mut encoder).unwrap();
    encoder.finish().unwrap()
}

/// Reads, checks, and gives the peak in megabytes above what was there before.
fn peak_of(what: &str, snapshots: i64, read: impl FnOnce() -> Metadata) -> f32 {
    let before = MEMORY.current_usage_as_mb();
    MEMORY.reset_peak_usage();
    let metadata = read();
    let peak = MEMORY.peak_usage_as_mb() - before;
    assert_eq!(i64::try_from(metadata.snapshots().len()).unwrap(), snapshots);
    let known = Known::Snapshot { id: id(snapshots - 3), sequence_number: None };
    let step = metadata.step(MAIN, known);
    assert_eq!((step.movement, step.new.len(), step.changes_data()), (Movement::Advanced, 3, Some(true)));
    let _ = writeln!(io::stderr(), "{what}: {peak:.1} MB");
    peak
}

#[test]
fn large_files_are_read_in_little_memory() {
    let options = ReadOptions::default();
    let of = |snapshots, padding| move || Metadata::read(Written::new(snapshots, padding), options).unwrap();
    let most = i64::try_from(MAX_SNAPSHOTS).unwrap();

    let peak = peak_of("50,000 snapshots as a stream", 50_000, of(50_000, 0));
    assert!(peak < LIMIT_MB / 2.0, "{peak}");
    let peak = peak_of("50 MB of JSON as a stream", 50_000, of(50_000, 500));
    assert!(peak < LIMIT_MB / 2.0, "{peak}");
    let peak = peak_of("as many snapshots as are read", most, of(most, 0));
    assert!(peak < LIMIT_MB, "{peak}");

    let gzip = compressed(Written::new(50_000, 0));
    let _ = writeln!(io::stderr(), "compressed: {} bytes", gzip.len());
    let peak = peak_of("50,000 snapshots as gzip", 50_000, || Metadata::read(gzip.as_slice(), options).unwrap());
    assert!(peak < LIMIT_MB / 2.0, "{peak}");

    // What would fill memory is refused, whichever form it takes.
    for (name, part) in [("brackets", "["), ("a text", "\"aaaaaaaaaaaaaaaa"), ("objects", "{\"a\":")] {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(b"{\"schemas\":").unwrap();
        let body = if name == "a text" { &part[1..] } else { part }.repeat(1 << 14);
        bomb.write_all(&part.as_bytes()[..1]).unwrap();
        for _ in 0..1_000 {
            bomb.write_all(body.as_bytes()).unwrap();
        }
        let bomb = bomb.finish().unwrap();
        let before = MEMORY.current_usage_as_mb();
        MEMORY.reset_peak_usage();
        assert!(Metadata::parse(&bomb, options).is_err());
        let peak = MEMORY.peak_usage_as_mb() - before;
        let _ = writeln!(io::stderr(), "{name}: {} bytes of gzip, {peak:.1} MB", bomb.len());
        assert!(peak < LIMIT_MB / 4.0, "{name}: {peak}");
    }
}
