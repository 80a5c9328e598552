//! Results of quality tools: dbt, Great Expectations, Soda.
//!
//! None of them says which snapshot was checked, and only dbt says which table in a way that can be
//! resolved. So a wrapper may put beside the tool's own document what it knows:
//! `{"result": <document>, "manifest": <dbt's>, "tables": {"lake.main.orders": "iceberg://sales/orders"},
//! "snapshotId": "17"}`. The document alone is taken as well. Rows of data in it are not read.

use std::collections::HashMap;

use jiff::Timestamp;
use lakebell_domain::state::{CheckResult, Severity};

use crate::node::Node;
use crate::report::{Content, Entry, MAX_REPORTS, Refusal, Report, Says, bounded, check_name, digest, moment};
use crate::table::{CatalogName, TableRef};

/// The tools whose results are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// dbt's `run_results.json` or `sources.json`.
    Dbt,
    /// A validation result of Great Expectations.
    GreatExpectations,
    /// A scan result of Soda Core.
    Soda,
}

impl Tool {
    /// The tool by its name in a path.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "dbt" => Some(Self::Dbt),
            "gx" | "great-expectations" => Some(Self::GreatExpectations),
            "soda" => Some(Self::Soda),
            _ => None,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Dbt => "dbt",
            Self::GreatExpectations => "gx",
            Self::Soda => "soda",
        }
    }
}

/// Decodes what a tool found: one report for each check.
///
/// Errors: the field that is missing or wrong; more than [`MAX_REPORTS`] checks.
pub fn decode(tool: Tool, bytes: &[u8]) -> Result<Entry, Refusal> {
    let body = Node::read(bytes)?;
    let wrapped = body.get("result").is_object()
        && ["tables", "manifest", "snapshotId"].iter().any(|name| body.get(name).is_there());
    let document = if wrapped { body.get("result") } else { &body };
    let beside = if wrapped { &body } else { &Node::Null };
    let checks = Checks {
        tables: beside
            .get("tables")
            .members()
            .iter()
            .filter_map(|(name, to)| Some((name.as_ref(), to.text()?)))
            .collect(),
        snapshot: beside.get("snapshotId").id(),
        content: Content::default(),
    };
    match tool {
        Tool::Dbt => dbt(document, beside.get("manifest"), checks),
        Tool::GreatExpectations => great_expectations(document, checks),
        Tool::Soda => soda(document, checks),
    }
}

/// Reports in the making, with what stood beside the tool's document.
struct Checks<'a> {
    tables: HashMap<&'a str, &'a str>,
    snapshot: Option<String>,
    content: Content,
}

/// One check.
struct Check<'a> {
    name: &'a str,
    result: CheckResult,
    severity: Severity,
    run: Option<&'a str>,
    at: Option<Timestamp>,
    started_at: Option<Timestamp>,
}

impl Checks<'_> {
    /// A table by the parts of its name: what the wrapper says it is, else the name itself.
    ///
    /// Errors: the wrapper names something that is neither a key nor a location.
    fn table(&self, path: &[&str]) -> Result<TableRef, Refusal> {
        let dotted = path.join(".");
        let mut table = TableRef::named(&dotted);
        let mapped = (0..path.len()).find_map(|from| self.tables.get(path[from..].join(".").as_str()));
        match mapped {
            Some(to) => {
                if let Ok(key) = to.parse() {
                    table.key = Some(key);
                } else {
                    table.at(to);
                    if table.location.is_none() {
                        let problem = format!("`{}` is no asset key and no location", bounded(to));
                        let hint = "write an asset key, or s3://bucket/path";
                        return Err(Refusal::new(format!("tables.{}", bounded(&dotted)), problem, hint));
                    }
                }
            }
            None if path.len() > 1 => table.add(CatalogName::new("", path)),
            None => {}
        }
        Ok(table)
    }

    fn add(&mut self, table: TableRef, check: &Check<'_>) -> Result<(), Refusal> {
        if self.content.reports.len() >= MAX_REPORTS {
            return Err(Refusal::new("", format!("it has more than {MAX_REPORTS} checks"), "send it in parts"));
        }
        let says = Says::Check {
            check: check_name(check.name),
            result: check.result,
            severity: check.severity,
            run: check.run.map(bounded),
            started_at: check.started_at,
            snapshot: self.snapshot.clone(),
        };
        self.content.report(Report { table, says, at: check.at })
    }
}

fn missing(field: &str, hint: &str) -> Refusal {
    Refusal::new(field, "it is missing or wrong", hint)
}

/// The parts of a relation's name, whatever quotes the adapter puts around them.
fn relation(name: &str) -> Vec<&str> {
    let trim = |part: &'_ str| part.trim_matches(['"', '`', '[', ']']).len();
    name.split('.').map(|part| part.trim_matches(['"', '`', '[', ']'])).filter(|part| trim(part) > 0).collect()
}

fn dbt(document: &Node<'_>, manifest: &Node<'_>, mut checks: Checks<'_>) -> Result<Entry, Refusal> {
    let metadata = document.get("metadata");
    let version = metadata.get("dbt_schema_version").text().unwrap_or_default();
    let is_sources = version.contains("/sources/");
    if !is_sources && !version.contains("/run-results/") {
        let hint = "send run_results.json or sources.json; the manifest stands beside it as `manifest`";
        return Err(missing("metadata.dbt_schema_version", hint));
    }
    let invocation = metadata.get("invocation_id").text();
    let id = digest(&["dbt", invocation.unwrap_or_default(), version, &moment_text(metadata.get("generated_at"))]);
    let generated = moment(metadata.get("generated_at"));
    let began = moment(metadata.get("invocation_started_at"));
    for result in document.get("results").list() {
        let Some(unique) = result.get("unique_id").text() else {
            checks.content.skip("a result", "it has no unique_id");
            continue;
        };
        let status = result.get("status").text().unwrap_or_default();
        let executed = result.get("timing").list().iter().find(|timing| timing.get("name").text() == Some("execute"));
        let time = |name: &str| executed.and_then(|timing| moment(timing.get(name)));
        let (started_at, at) = (time("started_at").or(began), time("completed_at").or(generated));
        let Some(name) = relation_name(unique, result, manifest) else {
            checks.content.skip(unique, "its table cannot be told; send the manifest beside the results");
            continue;
        };
        let table = checks.table(&relation(name))?;
        if is_sources {
            if let Some(to) = moment(result.get("max_loaded_at")) {
                checks.content.report(Report { table: table.clone(), says: Says::Watermark { to }, at })?;
            }
        } else if !unique.starts_with("test.") {
            // A model that was built is no check of it.
            if status == "success" {
                checks.content.report(Report { table, says: Says::Touched, at })?;
            } else {
                checks.content.skip(unique, "it was not built");
            }
            continue;
        }
        let (result, severity) = match status {
            "pass" => (CheckResult::Passed, severity_of(unique, manifest)),
            "warn" => (CheckResult::Failed, Severity::Warn),
            "fail" => (CheckResult::Failed, Severity::Error),
            // Freshness that is too old is a failure, a test that broke is no verdict.
            "error" if is_sources => (CheckResult::Failed, Severity::Error),
            "error" | "runtime error" => (CheckResult::Errored, Severity::Error),
            _ => {
                checks.content.skip(unique, "it was not run");
                continue;
            }
        };
        let name = if is_sources { "source freshness" } else { unique.split('.').nth(2).unwrap_or(unique) };
        checks.add(table, &Check { name, result, severity, run: invocation, at, started_at })?;
    }
    Ok(Entry { source: "dbt".to_owned(), id, content: checks.content })
}

fn severity_of(unique: &str, manifest: &Node<'_>) -> Severity {
    let node = manifest.at(&["nodes", unique]);
    let word = node.get("severity").text().or_else(|| node.at(&["config", "severity"]).text());
    if word.is_some_and(|word| word.eq_ignore_ascii_case("warn")) { Severity::Warn } else { Severity::Error }
}

/// The relation that a result is about: its own, or that of the node that the test is attached to.
fn relation_name<'a>(unique: &str, result: &'a Node<'_>, manifest: &'a Node<'_>) -> Option<&'a str> {
    if let Some(name) = result.get("relation_name").text().filter(|_| !unique.starts_with("test.")) {
        return Some(name);
    }
    let node = manifest.at(&["nodes", unique]);
    let of = |unique: &str| {
        let found = manifest.at(&["nodes", unique]);
        let found = if found.is_there() { found } else { manifest.at(&["sources", unique]) };
        found.get("relation_name").text()
    };
    if !unique.starts_with("test.") {
        return of(unique);
    }
    match (node.get("attached_node").text(), node.at(&["depends_on", "nodes"]).list()) {
        (Some(attached), _) => of(attached),
        // A singular test: only where it is about exactly one table.
        (None, [only]) => only.text().and_then(of),
        _ => None,
    }
}

fn moment_text(node: &Node<'_>) -> String {
    bounded(node.text().unwrap_or_default())
}

fn great_expectations(document: &Node<'_>, mut checks: Checks<'_>) -> Result<Entry, Refusal> {
    let meta = document.get("meta");
    let batch = meta.get("active_batch_definition");
    let (source, asset) = (batch.get("datasource_name").text(), batch.get("data_asset_name").text());
    let hint = "send the validation result itself: a checkpoint's description names no table";
    let Some(asset) = asset else { return Err(missing("meta.active_batch_definition.data_asset_name", hint)) };
    let suite = document.get("suite_name").text().or_else(|| meta.get("expectation_suite_name").text());
    let run_time = meta.at(&["run_id", "run_time"]);
    let started_at = moment(run_time);
    let at = moment(meta.get("validation_time")).or(started_at);
    let Some(at) = at else { return Err(missing("meta.validation_time", hint)) };
    let validation = meta.get("validation_id").text();
    let id = digest(&["gx", validation.unwrap_or_default(), suite.unwrap_or_default(), asset, &at.to_string()]);
    let path: Vec<&str> = source.into_iter().chain(asset.split('.')).collect();
    let table = checks.table(&path)?;
    let (mut failed, mut errored) = (false, false);
    for result in document.get("results").list() {
        let config = result.get("expectation_config");
        let kind = config.get("type").text().or_else(|| config.get("expectation_type").text()).unwrap_or("expectation");
        let name = match config.at(&["kwargs", "column"]).text() {
            Some(column) => format!("{kind}({column})"),
            None => kind.to_owned(),
        };
        let severity = match config.get("severity").text() {
            Some("warning" | "info") => Severity::Warn,
            _ => Severity::Error,
        };
        let has_raised = result.at(&["exception_info", "raised_exception"]).bool() == Some(true);
        let result = match (has_raised, result.get("success").bool()) {
            (true, _) | (_, None) => CheckResult::Errored,
            (_, Some(true)) => CheckResult::Passed,
            (_, Some(false)) => CheckResult::Failed,
        };
        failed |= result == CheckResult::Failed && severity == Severity::Error;
        errored |= result == CheckResult::Errored;
        checks
            .add(table.clone(), &Check { name: &name, result, severity, run: validation, at: Some(at), started_at })?;
    }
    if let Some(suite) = suite {
        let said = document.get("success").bool();
        let result = match said {
            _ if failed => CheckResult::Failed,
            // Where only warnings failed, the suite as a whole has passed.
            Some(_) if !errored => CheckResult::Passed,
            _ => CheckResult::Errored,
        };
        let whole = Check { name: suite, result, severity: Severity::Error, run: validation, at: Some(at), started_at };
        checks.add(table, &whole)?;
    }
    Ok(Entry {
        source: format!("{}:{}", Tool::GreatExpectations.word(), bounded(suite.unwrap_or("suite"))),
        id,
        content: checks.content,
    })
}

fn soda(document: &Node<'_>, mut checks: Checks<'_>) -> Result<Entry, Refusal> {
    let started_at = moment(document.get("scanStartTimestamp"));
    let at = moment(document.get("scanEndTimestamp")).or(started_at);
    let hint = "send the scan result as Soda Core writes it";
    if !matches!(document.get("checks"), Node::List(_)) {
        return Err(missing("checks", hint));
    }
    let Some(at) = at else { return Err(missing("scanEndTimestamp", hint)) };
    let definition = document.get("definitionName").text().unwrap_or("scan");
    let start = moment_text(document.get("scanStartTimestamp"));
    let run = format!("{}@{start}", bounded(definition));
    for check in document.get("checks").list() {
        let name = check.get("name").text().or_else(|| check.get("identity").text()).unwrap_or("check");
        let Some(of_table) = check.get("table").text() else {
            checks.content.skip(name, "it names no table");
            continue;
        };
        let path: Vec<&str> = check.get("dataSource").text().into_iter().chain(of_table.split('.')).collect();
        let table = checks.table(&path)?;
        let (result, severity) = match check.get("outcome").text() {
            Some("pass") => (CheckResult::Passed, Severity::Error),
            Some("warn") => (CheckResult::Failed, Severity::Warn),
            Some("fail") => (CheckResult::Failed, Severity::Error),
            // Not evaluated is no verdict.
            _ => (CheckResult::Errored, Severity::Error),
        };
        checks.add(table, &Check { name, result, severity, run: Some(&run), at: Some(at), started_at })?;
    }
    let id = digest(&["soda", definition, &start]);
    Ok(Entry { source: format!("{}:{}", Tool::Soda.word(), bounded(definition)), id, content: checks.content })
}
