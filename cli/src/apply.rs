//! `apply`: shows what will change and changes it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anstyle::Style;
use lakebell_domain::ids::ProjectCode;
use serde_json::{Value, json};

use crate::args::ApplyArgs;
use crate::client::{Api, Request};
use crate::error::CliError;
use crate::file::{self, Declarations};
use crate::plan::{self, Action, Current, Operation, Step};
use crate::report::Report;
use crate::text::{BAD, BOLD, DIM, GOOD, WAIT, at, paint, painted_word};

/// What became of a step.
enum Outcome {
    /// Nothing was to be done, or only shown.
    Planned,
    /// It was done, with what the API said.
    Done(Said),
    Failed(CliError),
    /// An earlier failure would have met it too.
    NotTried,
}

/// What the API said about something that was done.
#[derive(Default)]
struct Said {
    /// In a few words.
    word: String,
    /// When a target starts, in plain words.
    rule: String,
    /// What a person should know.
    warnings: Vec<String>,
}

impl From<String> for Said {
    fn from(word: String) -> Self {
        Self { word, ..Self::default() }
    }
}

/// Applies a file. `project` is for dependency records, which name none.
pub(crate) async fn run(
    api: &impl Fn() -> Result<Api, CliError>,
    args: &ApplyArgs,
    project: Option<ProjectCode>,
) -> Result<Report, CliError> {
    // A file that is wrong is said to be before the deployment is looked up.
    let declared = file::read(&args.file, project)?;
    if declared.is_records && args.prune {
        return Err(CliError::usage(
            "a list of records does not say what else should be there",
            "leave --prune out, or put the records under `dependencies` of a lakebell.yaml",
        ));
    }
    let api = api()?;
    let current = current(&api, &declared).await?;
    let steps = plan::plan(&declared, &current, args.prune);
    let has_conflict = steps.iter().any(|step| step.action == Action::Conflict);
    let outcomes = if args.dry_run || has_conflict {
        steps.iter().map(|_| Outcome::Planned).collect()
    } else {
        execute(&api, &steps).await
    };
    let is_complete =
        !has_conflict && outcomes.iter().all(|outcome| matches!(outcome, Outcome::Planned | Outcome::Done(_)));
    let text = text(args, declared.project, &steps, &outcomes);
    let json = to_json(args, declared.project, &steps, &outcomes);
    Ok(Report { text, json, is_complete })
}

async fn current(api: &Api, declared: &Declarations) -> Result<Current, CliError> {
    let project = declared.project.to_string();
    let mut current = Current {
        connections: api.list(&["connections"], &[], None).await?,
        warehouses: api.list(&["warehouses"], &[], None).await?,
        assets: api.list(&["projects", &project, "assets"], &[], None).await?,
        targets: Vec::new(),
    };
    let mut projects: BTreeSet<ProjectCode> = declared.targets.iter().map(|(id, _)| id.project).collect();
    projects.insert(declared.project);
    for project in projects {
        let path = ["projects", &project.to_string(), "asset-dependencies"];
        current.targets.extend(api.list(&path, &[], None).await?);
    }
    Ok(current)
}

async fn execute(api: &Api, steps: &[Step]) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(steps.len());
    let mut is_stopped = false;
    for step in steps {
        let outcome = if step.operation == Operation::Nothing {
            Outcome::Planned
        } else if is_stopped {
            Outcome::NotTried
        } else {
            match perform(api, &step.operation).await {
                Ok(said) => Outcome::Done(said),
                Err(error) => {
                    is_stopped = error.stops_everything();
                    Outcome::Failed(error)
                }
            }
        };
        outcomes.push(outcome);
    }
    outcomes
}

/// Does one thing and says what came of it.
async fn perform(api: &Api, operation: &Operation) -> Result<Said, CliError> {
    match operation {
        Operation::Nothing => Ok(Said::default()),
        Operation::PutConnection(spec) => {
            let mut body = serde_json::to_value(spec).unwrap_or_default();
            if let Some(fields) = body.as_object_mut() {
                fields.remove("name");
            }
            api.send(&Request::put(&["connections", spec.name.as_str()]).body(&body)?).await?;
            Ok(Said::default())
        }
        Operation::PutWarehouse(warehouse) => {
            let discovery = api.send(&Request::put(&["warehouses"]).body(warehouse)?).await?;
            Ok(discovered(&discovery).into())
        }
        Operation::Register(project, spec) => {
            let path = ["projects", &project.to_string(), "assets"];
            let answer = api.send(&Request::post(&path).body(spec)?).await?;
            let is_old = answer.get("isNew") == Some(&Value::Bool(false));
            Ok(if is_old { "it was registered already".to_owned().into() } else { Said::default() })
        }
        Operation::Declare(project, spec) => {
            let path = ["projects", &project.to_string(), "asset-dependencies"];
            let answer = api.send(&Request::post(&path).body(spec)?).await?;
            Ok(declared(&answer))
        }
        Operation::Deregister(project, key) => {
            let path = ["projects", &project.to_string(), "assets", &key.to_string()];
            api.send(&Request::delete(&path)).await.map(|_| Said::default())
        }
        Operation::Undeclare(id) => {
            let path = ["projects", &id.project.to_string(), "asset-dependencies", id.name.as_str()];
            api.send(&Request::delete(&path)).await.map(|_| Said::default())
        }
    }
}

/// The verdict on a target, its rule, and what the API warns of.
fn declared(answer: &Value) -> Said {
    let verdict = painted_word(&at(answer, "/evaluation/verdict"));
    let claimed = at(answer, "/claimed");
    let word = if claimed.is_empty() { verdict } else { format!("{verdict}, trigger {claimed}") };
    let warnings = answer.get("warnings").and_then(Value::as_array).into_iter().flatten();
    let warnings = warnings.filter_map(Value::as_str).map(str::to_owned).collect();
    Said { word, rule: at(answer, "/rule"), warnings }
}

/// How many tables a warehouse brought, and which could not be registered.
fn discovered(discovery: &Value) -> String {
    let list = |name: &str| discovery.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut said = match list("registered").len() {
        0 => String::new(),
        count => format!("{count} tables registered"),
    };
    for refused in list("refused") {
        let _ = write!(said, "\n      {}: {}", at(&refused, "/location"), at(&refused, "/reason"));
    }
    said
}

fn style(action: Action) -> Style {
    match action {
        Action::Create => GOOD,
        Action::Change => WAIT,
        Action::Same | Action::Keep => DIM,
        Action::Delete | Action::Conflict => BAD,
    }
}

fn text(args: &ApplyArgs, project: ProjectCode, steps: &[Step], outcomes: &[Outcome]) -> String {
    let mut text = format!("{}\n", paint(BOLD, &format!("{} -> project {project}", args.file.display())));
    for (step, outcome) in steps.iter().zip(outcomes) {
        let sign = paint(style(step.action), step.action.sign());
        let said = match outcome {
            Outcome::Done(said) if !said.word.is_empty() => format!("  {}", said.word),
            Outcome::NotTried => format!("  {}", paint(BAD, "not tried")),
            _ => String::new(),
        };
        let _ = writeln!(text, "  {sign} {:<10}  {}{said}", step.kind, step.name);
        for note in &step.notes {
            let _ = writeln!(text, "      {note}");
        }
        if let Outcome::Done(said) = outcome {
            if !said.rule.is_empty() {
                let _ = writeln!(text, "      {}", paint(DIM, &said.rule));
            }
            for warning in &said.warnings {
                let _ = writeln!(text, "      {} {warning}", paint(WAIT, "warning:"));
            }
        }
        if let Outcome::Failed(error) = outcome {
            let error = error.to_text().replace('\n', "\n      ");
            let _ = writeln!(text, "      {} {error}", paint(BAD, "failed:"));
        }
    }
    text.push_str(&summary(args, steps, outcomes));
    let is_declared = |(step, outcome): (&Step, &Outcome)| {
        matches!((&step.operation, outcome), (Operation::Declare(..), Outcome::Done(_)))
    };
    if steps.iter().zip(outcomes).any(is_declared) {
        text.push_str(
            "DolphinScheduler is being asked about these workflows; `lakebell why` shows what to know of them.\n",
        );
    }
    text
}

fn count(steps: &[Step], action: Action) -> usize {
    steps.iter().filter(|step| step.action == action).count()
}

fn summary(args: &ApplyArgs, steps: &[Step], outcomes: &[Outcome]) -> String {
    let of = |action| count(steps, action);
    let numbers = format!(
        "{} to create, {} to change, {} the same, {} to delete",
        of(Action::Create),
        of(Action::Change),
        of(Action::Same),
        of(Action::Delete)
    );
    let failed = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Failed(_) | Outcome::NotTried)).count();
    let end = match (of(Action::Conflict), args.dry_run, failed) {
        (conflicts, _, _) if conflicts > 0 => format!("nothing was changed: {conflicts} in conflict"),
        (_, true, _) => "nothing was changed (--dry-run)".to_owned(),
        (_, _, 0) => "done".to_owned(),
        (_, _, failed) => format!("{failed} failed or not tried; apply again once the cause is gone"),
    };
    format!("{numbers}; {end}\n")
}

fn to_json(args: &ApplyArgs, project: ProjectCode, steps: &[Step], outcomes: &[Outcome]) -> Value {
    let of_steps: Vec<Value> = steps.iter().zip(outcomes).map(|(step, outcome)| step_json(step, outcome)).collect();
    json!({
        "project": project,
        "dryRun": args.dry_run,
        "steps": of_steps,
        "summary": {
            "create": count(steps, Action::Create),
            "change": count(steps, Action::Change),
            "same": count(steps, Action::Same),
            "delete": count(steps, Action::Delete),
            "keep": count(steps, Action::Keep),
            "conflict": count(steps, Action::Conflict),
        },
    })
}

fn step_json(step: &Step, outcome: &Outcome) -> Value {
    let mut json = json!({ "action": step.action, "kind": step.kind, "name": step.name, "notes": step.notes });
    json["outcome"] = match outcome {
        Outcome::Planned if step.operation == Operation::Nothing => "none".into(),
        Outcome::Planned => "planned".into(),
        Outcome::Done(said) => {
            if !said.rule.is_empty() {
                json["rule"] = said.rule.clone().into();
            }
            if !said.warnings.is_empty() {
                json["warnings"] = said.warnings.clone().into();
            }
            "done".into()
        }
        Outcome::NotTried => "notTried".into(),
        Outcome::Failed(error) => {
            json["error"] = error.to_json()["error"].take();
            "failed".into()
        }
    };
    json
}
