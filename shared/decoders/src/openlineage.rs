//! OpenLineage events (specification 2-0-2, github.com/OpenLineage/OpenLineage), single and in batches.
//!
//! What kind an event is, is told by its structure: old senders name no schema. Unknown facets are
//! passed over. A version is a hint; names, symlinks and catalogs are claims.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lakebell_domain::asset::Location;
use lakebell_domain::state::{CheckResult, Severity};

use crate::node::Node;
use crate::report::{
    Committed, Content, Entry, Job, Lifecycle, MAX_REPORTS, Mention, Refusal, Report, Run, Says, bounded, check_name,
    digest, moment,
};
use crate::table::{CatalogName, TableRef, dotted, format};

/// Most events of a batch.
pub const MAX_BATCH: usize = 500;
/// Most datasets on each side of an event.
const MAX_SIDE: usize = 200;
/// How far below the facets of a run what names Lakebell's is looked for.
const MAX_MENTION_DEPTH: usize = 4;
/// Most values that are looked at for it.
const MAX_MENTION_VALUES: usize = 10_000;

/// Decodes the body of the batch form: each event succeeds or is refused by itself.
///
/// Errors: what is no list, or too long.
pub fn decode_batch(bytes: &[u8]) -> Result<Vec<Result<Entry, Refusal>>, Refusal> {
    let Node::List(events) = Node::read(bytes)? else {
        return Err(Refusal::new("body", "it is no list", "send a list of events, or one event to /api/v1/lineage"));
    };
    if events.len() > MAX_BATCH {
        let problem = format!("it has {} events", events.len());
        return Err(Refusal::new("body", problem, format!("send at most {MAX_BATCH}")));
    }
    Ok(events.iter().map(event).collect())
}

/// Decodes the body of the single form.
///
/// Errors: the field that is missing or wrong.
pub fn decode(bytes: &[u8]) -> Result<Entry, Refusal> {
    event(&Node::read(bytes)?)
}

/// What an event is, by its structure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Run,
    Dataset,
    Job,
}

fn event(event: &Node<'_>) -> Result<Entry, Refusal> {
    let kind = match (event.get("run").is_object(), event.get("dataset").is_object(), event.get("job").is_object()) {
        (true, ..) => Kind::Run,
        (false, true, _) => Kind::Dataset,
        (false, false, true) => Kind::Job,
        (false, false, false) => {
            let problem = "it has no `run`, no `dataset` and no `job`";
            return Err(Refusal::new("", problem, "send a RunEvent, DatasetEvent or JobEvent of OpenLineage"));
        }
    };
    let Some(at) = moment(event.get("eventTime")) else {
        return Err(Refusal::new("eventTime", "it is missing or no time", "write it by RFC 3339"));
    };
    let run = event.at(&["run", "runId"]).text();
    if kind == Kind::Run && run.is_none() {
        return Err(Refusal::new("run.runId", "it is missing", "give the id of the run"));
    }
    let job = job_name(event);
    if kind != Kind::Dataset && job.is_none() {
        return Err(Refusal::new("job", "it has no `namespace` and `name`", "name the job"));
    }
    for side in ["inputs", "outputs"] {
        if event.get(side).list().len() > MAX_SIDE {
            let problem = format!("it has {} datasets", event.get(side).list().len());
            return Err(Refusal::new(side, problem, format!("send at most {MAX_SIDE}")));
        }
    }
    let status = event.get("eventType").text().unwrap_or("OTHER").to_ascii_uppercase();
    let mut content = Content { run: run.map(|id| run_of(event, id, &status)), ..Content::default() };
    let mut said = Said { content: &mut content, at, run, status: &status };
    match kind {
        Kind::Run => said.run_event(event, job.as_deref())?,
        Kind::Dataset => said.dataset_event(event.get("dataset"))?,
        Kind::Job => said.content.job = job.as_deref().map(|job| job_of(event, job)),
    }
    Ok(Entry { source: source(event, job.as_deref()), id: identity(event, &status, run), content })
}

fn source(event: &Node<'_>, job: Option<&str>) -> String {
    bounded(&format!("openlineage:{}", job.or_else(|| event.get("producer").text()).unwrap_or("unknown")))
}

/// There is no event id: run, type, time, producer and datasets make an event distinct.
fn identity(event: &Node<'_>, status: &str, run: Option<&str>) -> String {
    let time = event.get("eventTime").text().unwrap_or_default();
    let producer = event.get("producer").text().unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for (side, datasets) in [("i", event.get("inputs").list()), ("o", event.get("outputs").list())] {
        names.extend(datasets.iter().map(|dataset| format!("{side} {}", name_of(dataset))));
    }
    names.push(format!("d {}", name_of(event.get("dataset"))));
    names.sort();
    let mut parts = vec![run.unwrap_or_default(), status, time, producer];
    parts.extend(names.iter().map(String::as_str));
    digest(&parts)
}

fn job_name(event: &Node<'_>) -> Option<String> {
    let job = event.get("job");
    match (job.get("namespace").text(), job.get("name").text()) {
        (Some(namespace), Some(name)) => Some(bounded(&format!("{namespace}/{name}"))),
        // Some integrations leave out the name of what is not named.
        (Some(namespace), None) => Some(bounded(namespace)),
        _ => None,
    }
}

fn name_of(dataset: &Node<'_>) -> String {
    let (namespace, name) = (dataset.get("namespace").text(), dataset.get("name").text());
    match (namespace, name) {
        (Some(namespace), Some(name)) => {
            format!("{}/{}", namespace.trim_end_matches('/'), name.trim_start_matches('/'))
        }
        (one, other) => one.or(other).unwrap_or_default().to_owned(),
    }
}

fn job_of(event: &Node<'_>, name: &str) -> Job {
    let side = |side: &str| event.get(side).list().iter().filter(|dataset| !is_temporary(dataset)).map(table).collect();
    let facets = [event.at(&["run", "facets"]), event.at(&["job", "facets"])];
    Job { name: name.to_owned(), inputs: side("inputs"), outputs: side("outputs"), mentions: mention(&facets) }
}

/// What an event tells of its run. What an output's version is before the end is what it was before the run.
fn run_of(event: &Node<'_>, id: &str, status: &str) -> Run {
    let checkpoints = event.at(&["run", "facets", "checkpoints", "completed"]).int();
    let mut run = Run {
        id: bounded(id),
        status: bounded(status),
        checkpoints: checkpoints.and_then(|count| count.try_into().ok()),
        read: BTreeMap::new(),
        committed: BTreeMap::new(),
        lifecycle: BTreeMap::new(),
    };
    for input in event.get("inputs").list() {
        if let Some(version) = version_of(input) {
            run.read.insert(bounded(&name_of(input)), version);
        }
    }
    for output in event.get("outputs").list().iter().filter(|output| !is_temporary(output)) {
        let name = bounded(&name_of(output));
        if let Some(committed) = commit_report(output) {
            run.committed.insert(name.clone(), committed);
        }
        if let Some(change) = lifecycle_of(output) {
            run.lifecycle.insert(name, change);
        }
    }
    run
}

fn version_of(dataset: &Node<'_>) -> Option<String> {
    dataset.at(&["facets", "version", "datasetVersion"]).id()
}

/// The commit that an output's own report tells of.
fn commit_report(output: &Node<'_>) -> Option<Committed> {
    let report = output.at(&["outputFacets", "icebergCommitReport"]);
    let mut committed = Committed::named(&report.get("snapshotId").id()?);
    // Version 1 of the format writes 0, which orders nothing.
    committed.ordinal = report.get("sequenceNumber").int().and_then(|number| number.try_into().ok());
    committed.operation = report.get("operation").text().map(bounded);
    let metrics = report.get("commitMetrics").members();
    committed.count(metrics.iter().chain(statistics(output)).map(|(name, node)| (&**name, node)));
    Some(committed)
}

fn statistics<'e>(output: &'e Node<'_>) -> impl Iterator<Item = &'e (std::borrow::Cow<'e, str>, Node<'e>)> {
    output.at(&["outputFacets", "outputStatistics"]).members().iter()
}

fn lifecycle_of(dataset: &Node<'_>) -> Option<Lifecycle> {
    let facet = dataset.at(&["facets", "lifecycleStateChange"]);
    match facet.get("lifecycleStateChange").text().unwrap_or_default() {
        "CREATE" => Some(Lifecycle::Created),
        "ALTER" => Some(Lifecycle::Altered),
        "DROP" => Some(Lifecycle::Dropped),
        "RENAME" => Some(Lifecycle::Renamed { previous: bounded(&name_of(facet.get("previousIdentifier"))) }),
        // Truncated and overwritten data is a commit like any other.
        _ => None,
    }
}

fn is_temporary(dataset: &Node<'_>) -> bool {
    let sub_type = dataset.at(&["facets", "datasetType", "subType"]).text();
    sub_type.is_some_and(|sub_type| sub_type.eq_ignore_ascii_case("TEMPORARY"))
}

/// A dataset as a table: by its own name, its symlinks and its catalog.
fn table(dataset: &Node<'_>) -> TableRef {
    let facets = dataset.get("facets");
    let catalog = facets.get("catalog");
    let word = facets.at(&["storage", "storageLayer"]).text();
    let told = format(word).or_else(|| format(catalog.get("framework").text()));
    let mut table = TableRef::named(&name_of(dataset)).format(told);
    let (namespace, name) = (dataset.get("namespace").text(), dataset.get("name").text());
    named(&mut table, namespace.unwrap_or_default(), name.unwrap_or_default());
    for identifier in facets.at(&["symlinks", "identifiers"]).list() {
        if let (Some(namespace), Some(name)) = (identifier.get("namespace").text(), identifier.get("name").text()) {
            named(&mut table, namespace, name);
            // What an engine calls the catalog stands for it where nothing better is known.
            if let (Some(alias), Some(path)) = (catalog.get("name").text(), table_path(namespace, name)) {
                table.add(CatalogName::new(alias, &path));
            }
        }
    }
    table
}

/// Adds what a namespace and a name stand for.
fn named(table: &mut TableRef, namespace: &str, name: &str) {
    let scheme = namespace.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    match scheme.as_str() {
        "s3" | "s3a" | "s3n" => {
            // A warehouse and a dotted name, or a bucket and a path.
            let is_below = namespace.trim_end_matches('/').matches('/').count() > 2;
            if is_below && !name.contains('/') && name.contains('.') {
                table.add(CatalogName::new(namespace, &dotted(name)));
            } else {
                table.at(&format!("{}/{}", namespace.trim_end_matches('/'), name.trim_start_matches('/')));
            }
        }
        _ if namespace.is_empty() || namespace == "file" || scheme == "file" || namespace.starts_with("file:") => {}
        _ => {
            if let Some(path) = table_path(namespace, name) {
                table.add(CatalogName::new(namespace, &path));
            }
        }
    }
}

/// The parts of a name in a catalog: dotted, or below `table/` as Glue has it.
fn table_path<'a>(namespace: &str, name: &'a str) -> Option<Vec<&'a str>> {
    if name.is_empty() || name.len() > 1_024 {
        return None;
    }
    if namespace.starts_with("arn:") {
        return Some(match name.strip_prefix("table/") {
            Some(path) => path.split('/').collect(),
            None => dotted(name),
        });
    }
    (!name.contains('/')).then(|| dotted(name))
}

/// What of Lakebell's is named anywhere in the facets: as a member, or as a tag with that key.
fn mention(facets: &[&Node<'_>]) -> Option<Mention> {
    let mut left = MAX_MENTION_VALUES;
    let mut found: [Option<Mention>; 3] = [None, None, None];
    for node in facets {
        search(node, MAX_MENTION_DEPTH, &mut left, &mut found);
    }
    found.into_iter().flatten().next()
}

fn search(node: &Node<'_>, depth: usize, left: &mut usize, found: &mut [Option<Mention>; 3]) {
    let mut take = |name: &str, value: Option<&str>| {
        let Some(value) = value else { return };
        match name {
            "lakebell_trigger_key" => found[0] = value.parse().ok().map(Mention::Trigger),
            "lakebell_target" => found[1] = value.parse().ok().map(Mention::Target),
            "lakebell_workflow" => found[2] = Mention::workflow(value),
            _ => {}
        }
    };
    if let (Some(key), value) = (node.get("key").text(), node.get("value").text()) {
        take(key, value);
    }
    for (name, value) in node.members() {
        take(name, value.text());
    }
    if depth == 0 {
        return;
    }
    for below in node.members().iter().map(|(_, value)| value).chain(node.list()) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        if below.is_object() || !below.list().is_empty() {
            search(below, depth - 1, left, found);
        }
    }
}

/// An event on its way into reports.
struct Said<'c, 'e> {
    content: &'c mut Content,
    at: Timestamp,
    run: Option<&'e str>,
    status: &'e str,
}

impl Said<'_, '_> {
    fn report(&mut self, table: TableRef, says: Says) -> Result<(), Refusal> {
        self.content.report(Report { table, says, at: Some(self.at) })
    }

    fn run_event(&mut self, event: &Node<'_>, job: Option<&str>) -> Result<(), Refusal> {
        self.content.job = job.map(|job| job_of(event, job));
        let outputs = event.get("outputs").list();
        for output in outputs {
            if is_temporary(output) {
                self.content.skip(&name_of(output), "it is temporary");
                continue;
            }
            self.output(output)?;
        }
        let inputs = event.get("inputs").list();
        for dataset in inputs.iter().chain(outputs) {
            self.assertions(dataset)?;
        }
        let tests = event.at(&["run", "facets", "test", "tests"]).list();
        match (tests, inputs) {
            ([], _) => {}
            (tests, [only]) => self.tests(only, tests)?,
            _ => {
                let why = "its tests name no dataset, and the run has not exactly one input";
                self.content.skip("run.facets.test", why);
            }
        }
        Ok(())
    }

    fn output(&mut self, output: &Node<'_>) -> Result<(), Refusal> {
        let table = table(output);
        // Checkpoints come every minute: their counters say nothing about a table.
        if self.status != "RUNNING" {
            self.report(table.clone(), Says::JobStatus { status: bounded(self.status) })?;
        }
        match self.status {
            "COMPLETE" => {
                let lifecycle = self.lifecycle(output, &table)?;
                // The report of the commit itself beats what the catalog said a moment later.
                let version = || {
                    let mut committed = Committed::named(&version_of(output)?);
                    committed.count(statistics(output).map(|(name, node)| (&**name, node)));
                    Some(committed)
                };
                match commit_report(output).or_else(version) {
                    Some(committed) => self.report(table, Says::Committed(committed)),
                    None if lifecycle => Ok(()),
                    None => self.report(table, Says::Touched),
                }
            }
            // Part of it may have been committed all the same.
            "FAIL" | "ABORT" => self.report(table, Says::Touched),
            _ => Ok(()),
        }
    }

    /// Whether the table was made, renamed or dropped, so that no commit need be looked for.
    fn lifecycle(&mut self, dataset: &Node<'_>, table: &TableRef) -> Result<bool, Refusal> {
        let Some(change) = lifecycle_of(dataset) else { return Ok(false) };
        let is_only = change.leaves_no_commit();
        self.report(table.clone(), Says::Lifecycle(change))?;
        Ok(is_only)
    }

    fn dataset_event(&mut self, dataset: &Node<'_>) -> Result<(), Refusal> {
        let table = table(dataset);
        self.lifecycle(dataset, &table)?;
        match version_of(dataset) {
            Some(snapshot) => self.report(table, Says::Committed(Committed::named(&snapshot)))?,
            None if dataset.at(&["facets", "schema"]).is_object() => {
                self.report(table, Says::SchemaChanged { schema: None })?;
            }
            None => {}
        }
        self.assertions(dataset)
    }

    /// The assertions of a dataset. Some producers say them twice, under both kinds of facets.
    fn assertions(&mut self, dataset: &Node<'_>) -> Result<(), Refusal> {
        let facet = |place: &str| dataset.at(&[place, "dataQualityAssertions", "assertions"]).list();
        let assertions = if facet("inputFacets").is_empty() { facet("facets") } else { facet("inputFacets") };
        for assertion in assertions {
            let Some(success) = assertion.get("success").bool() else {
                self.content.skip("an assertion", "it does not say whether it succeeded");
                continue;
            };
            let kind = assertion.get("assertion").text().unwrap_or("assertion");
            let named = assertion.get("name").text().map(str::to_owned);
            let of_column = || match assertion.get("column").text() {
                Some(column) => format!("{kind}({column})"),
                None => kind.to_owned(),
            };
            let name = named.unwrap_or_else(of_column);
            self.check(dataset, &name, success, assertion.get("severity"))?;
        }
        Ok(())
    }

    /// Tests of the run, which are about its only input.
    fn tests(&mut self, input: &Node<'_>, tests: &[Node<'_>]) -> Result<(), Refusal> {
        for test in tests {
            let name = test.get("name").text().unwrap_or("test");
            let success = match test.get("status").text().unwrap_or_default() {
                "pass" => true,
                "fail" => false,
                _ => {
                    self.content.skip(name, "it was skipped, or does not say whether it passed");
                    continue;
                }
            };
            self.check(input, name, success, test.get("severity"))?;
        }
        Ok(())
    }

    fn check(&mut self, dataset: &Node<'_>, name: &str, success: bool, severity: &Node<'_>) -> Result<(), Refusal> {
        if self.content.reports.len() >= MAX_REPORTS {
            return Err(Refusal::new("", format!("it has more than {MAX_REPORTS} assertions"), "send fewer at once"));
        }
        let is_warning = severity.text().is_some_and(|word| word.eq_ignore_ascii_case("warn"));
        let says = Says::Check {
            check: check_name(name),
            result: if success { CheckResult::Passed } else { CheckResult::Failed },
            severity: if is_warning { Severity::Warn } else { Severity::Error },
            run: self.run.map(bounded),
            started_at: None,
            snapshot: version_of(dataset),
        };
        let report = Report { table: table(dataset), says, at: Some(self.at) };
        // What both kinds of facets say is said once.
        if !self.content.reports.contains(&report) {
            self.content.report(report)?;
        }
        Ok(())
    }
}

/// The location that a dataset's namespace and name stand for, as [`table`] finds it.
pub fn location_of(namespace: &str, name: &str) -> Option<Location> {
    let mut table = TableRef::named(name);
    named(&mut table, namespace, name);
    table.location
}
