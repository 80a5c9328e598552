//! The real writers, each in a process that takes one order a line: pypaimon, and pyiceberg with
//! delta-rs.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::local;

/// Names a Python that has pypaimon.
const PYTHON: &str = "LAKEBELL_WRITER_PYTHON";
/// Names a Python that has pyiceberg and deltalake.
const LAKE_PYTHON: &str = "LAKEBELL_LAKE_PYTHON";

/// A process that takes orders.
struct Process {
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// Ends with the writer.
    _child: Child,
}

impl Process {
    /// Starts a script; `None`, and a line that says so, where no Python is named.
    fn start(variable: &str, script: &str, folder: Option<&Path>) -> Option<Self> {
        let Some(python) = std::env::var_os(variable).filter(|path| !path.is_empty()) else {
            println!("skipped: no writer ({variable} names a Python for tests/{script})");
            return None;
        };
        let mut process = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script))
            .arg(local::description()?)
            .args(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let orders = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        Some(Self { orders, answers, _child: process })
    }

    async fn order(&mut self, order: &Value) -> Value {
        self.orders.write_all(format!("{order}\n").as_bytes()).await.unwrap();
        let line = self.answers.next_line().await.unwrap().expect("the writer ended; see its messages above");
        serde_json::from_str(&line).unwrap()
    }
}

/// A writer of Paimon tables below `s3://<bucket>/e2e`.
pub(crate) struct Writer(Process);

impl Writer {
    /// Starts it; `None`, and a line that says so, where no Python is named.
    pub(crate) fn start() -> Option<Self> {
        Process::start(PYTHON, "writer.py", None).map(Self)
    }

    /// Makes a table.
    pub(crate) async fn create(&mut self, database: &str, table: &str) {
        self.0.order(&json!({"do": "create", "database": database, "table": table})).await;
    }

    /// Appends rows in one commit: `{snapshotId, commitMs}`.
    pub(crate) async fn append(&mut self, database: &str, table: &str, rows: usize) -> Value {
        self.0.order(&json!({"do": "append", "database": database, "table": table, "rows": rows})).await
    }
}

/// A writer of Iceberg and Delta tables anywhere in the lake.
pub(crate) struct LakeWriter {
    process: Process,
    /// Where its SQL catalog is.
    folder: PathBuf,
}

impl LakeWriter {
    /// Starts it, with a folder of its own; `None`, and a line that says so, where no Python is named.
    pub(crate) fn start(name: &str) -> Option<Self> {
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Process::start(LAKE_PYTHON, "lake_writer.py", Some(&folder)).map(|process| Self { process, folder })
    }

    /// An order to pyiceberg about a table, in one of its catalogs: `{metadata, snapshotId}`.
    pub(crate) async fn iceberg(&mut self, what: &str, catalog: &str, table: [&str; 2], more: &Value) -> Value {
        let [database, table] = table;
        let mut order =
            json!({"do": format!("iceberg-{what}"), "catalog": catalog, "database": database, "table": table});
        for (name, value) in more.as_object().unwrap() {
            order[name] = value.clone();
        }
        self.process.order(&order).await
    }

    /// An order to delta-rs about a table: its version after it.
    pub(crate) async fn delta(&mut self, what: &str, location: &str, more: &Value) -> u64 {
        let mut order = json!({"do": format!("delta-{what}"), "location": location});
        for (name, value) in more.as_object().unwrap() {
            order[name] = value.clone();
        }
        self.process.order(&order).await["version"].as_u64().unwrap()
    }
}

impl Drop for LakeWriter {
    fn drop(&mut self) {
        // Best effort: it lies in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
