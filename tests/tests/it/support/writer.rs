//! The real writer: pypaimon, in a process that takes one order a line.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::local;

/// Names a Python that has pypaimon.
const PYTHON: &str = "LAKEBELL_WRITER_PYTHON";

/// A writer of tables below `s3://<bucket>/e2e`.
pub(crate) struct Writer {
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// Ends with the writer.
    _process: Child,
}

impl Writer {
    /// Starts it; `None`, and a line that says so, where no Python is named.
    pub(crate) fn start() -> Option<Self> {
        let Some(python) = std::env::var_os(PYTHON).filter(|path| !path.is_empty()) else {
            println!("skipped: no writer ({PYTHON} names a Python with pypaimon)");
            return None;
        };
        let mut process = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("writer.py"))
            .arg(local::description()?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let orders = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        Some(Self { orders, answers, _process: process })
    }

    async fn order(&mut self, order: &Value) -> Value {
        self.orders.write_all(format!("{order}\n").as_bytes()).await.unwrap();
        let line = self.answers.next_line().await.unwrap().expect("the writer ended; see its messages above");
        serde_json::from_str(&line).unwrap()
    }

    /// Makes a table.
    pub(crate) async fn create(&mut self, database: &str, table: &str) {
        self.order(&json!({"do": "create", "database": database, "table": table})).await;
    }

    /// Makes tables `t0`, `t1` and so on with so many commits each on the local disk, and says in which folder.
    pub(crate) async fn history(&mut self, tables: usize, commits: u64) -> PathBuf {
        let made = self.order(&json!({"do": "history", "tables": tables, "commits": commits})).await;
        PathBuf::from(made["folder"].as_str().unwrap())
    }

    /// Appends rows in one commit: `{snapshotId, commitMs}`.
    pub(crate) async fn append(&mut self, database: &str, table: &str, rows: usize) -> Value {
        self.order(&json!({"do": "append", "database": database, "table": table, "rows": rows})).await
    }
}
