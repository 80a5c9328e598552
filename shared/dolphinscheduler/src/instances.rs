//! Single instances, to follow one to its end, and all of a workflow's since a time, with the
//! trigger keys that they carry.
//!
//! Source: the instance controllers of DolphinScheduler 3.1.9, 3.2.2 and the line that became 3.3.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use jiff::Timestamp;
use lakebell_domain::ids::{ConnectionName, InstanceId, ProjectCode, WorkflowCode};
use lakebell_engine::ports::scheduler::{CarriedKey, InstanceList, InstanceReport, ListedInstance, Refusal};
use serde_json::Value;

use crate::check::{MARGIN, MOST_CANDIDATES};
use crate::list::{Reach, each_row, unexpected};
use crate::parameters::carried;
use crate::rows::{self, TIME};
use crate::scheduler::DolphinScheduler;
use crate::session::{NoSession, Session, data_of};
use crate::spelling::Spelling;

/// The code of an instance that is not there.
const GONE: &str = "50001";

impl DolphinScheduler {
    pub(crate) async fn one_instance(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        instance: InstanceId,
    ) -> Result<Option<InstanceReport>, Refusal> {
        let mut session = Session::open(self, connection).await.map_err(NoSession::into_refusal)?;
        let spelling = self.spelling(&mut session, project).await?;
        let answer = session.get(&spelling.instance(project, instance), &[]).await;
        if answer.is_unknown_path() {
            self.forget_line(&session);
        }
        match data_of(answer) {
            Ok(row) => rows::report(&row).map(Some),
            Err(refusal) if refusal.code == GONE => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    pub(crate) async fn all_instances(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        workflow: WorkflowCode,
        since: Timestamp,
    ) -> Result<InstanceList, Refusal> {
        let mut session = Session::open(self, connection).await.map_err(NoSession::into_refusal)?;
        let spelling = self.spelling(&mut session, project).await?;
        let listed = list(&mut session, &spelling, project, workflow, since).await;
        self.forgetting_line(&session, listed)
    }
}

/// What was listed so far, by id: rows may show up twice while new ones push others on.
type Found = BTreeMap<i64, ListedInstance>;

async fn list(
    session: &mut Session<'_>,
    spelling: &Spelling,
    project: ProjectCode,
    workflow: WorkflowCode,
    since: Timestamp,
) -> Result<InstanceList, Refusal> {
    // Before the instances: once a master has handled its command, an instance has its own
    // parameters, and is read after that.
    let commands = keys_of_commands(session, spelling, project, workflow).await?;
    let earliest = since.checked_sub(MARGIN).unwrap_or(since);
    let filters = [(spelling.list_workflow, workflow.to_string()), ("startDate", earliest.strftime(TIME).to_string())];
    let mut found = Found::new();
    let mut trouble = None;
    let reach = each_row(session, &spelling.instances(project), &filters, |row| {
        if rows::time(row, "startTime").is_some_and(|began| began < earliest) {
            return ControlFlow::Break(());
        }
        match rows::report(row) {
            Ok(report) => {
                found.insert(report.id.0, ListedInstance { report, key: carried(row) });
                ControlFlow::Continue(())
            }
            Err(refusal) => {
                trouble = Some(refusal);
                ControlFlow::Break(())
            }
        }
    })
    .await?;
    if let Some(refusal) = trouble {
        return Err(refusal);
    }
    let mut cut = (reach == Reach::TooLong).then(|| "the scheduler has more instances than can be listed".to_owned());
    if !spelling.rows_have_parameters && read_each(session, spelling, project, &mut found).await? {
        cut = Some(format!("only the newest {MOST_CANDIDATES} instances were read one by one"));
    }
    for (id, listed) in &mut found {
        if listed.key == CarriedKey::Unknown
            && let Some(key) = commands.get(id)
        {
            listed.key = key.clone();
        }
    }
    Ok(InstanceList { instances: found.into_values().collect(), cut })
}

/// From 3.3 on an instance exists without its parameters until a master has handled its command;
/// which instance has which key then stands in the commands, failed ones among them.
async fn keys_of_commands(
    session: &mut Session<'_>,
    spelling: &Spelling,
    project: ProjectCode,
    workflow: WorkflowCode,
) -> Result<BTreeMap<i64, CarriedKey>, Refusal> {
    let mut keys = BTreeMap::new();
    if !spelling.lists_commands {
        return Ok(keys);
    }
    let filters = [("projectCode", project.to_string())];
    for path in ["projects/analysis/listCommand", "projects/analysis/listErrorCommand"] {
        each_row(session, path, &filters, |row| {
            let of_workflow = row.get(spelling.row_workflow).and_then(Value::as_i64) == Some(workflow.0);
            let instance = row.get(spelling.row_instance).and_then(Value::as_i64).filter(|id| *id > 0);
            if let Some(id) = instance.filter(|_| of_workflow) {
                keys.insert(id, carried(row));
            }
            ControlFlow::Continue(())
        })
        .await?;
    }
    Ok(keys)
}

/// 3.1 lists no parameters: each instance is read, the newest first; whether some were left out.
async fn read_each(
    session: &mut Session<'_>,
    spelling: &Spelling,
    project: ProjectCode,
    found: &mut Found,
) -> Result<bool, Refusal> {
    let newest: Vec<i64> = found.keys().rev().take(MOST_CANDIDATES).copied().collect();
    let left_out = found.len() > newest.len();
    for id in newest {
        match data_of(session.get(&spelling.instance(project, InstanceId(id)), &[]).await) {
            Ok(Value::Null) => return Err(unexpected("an instance came without its fields")),
            Ok(row) => {
                let listed = ListedInstance { report: rows::report(&row)?, key: carried(&row) };
                found.insert(id, listed);
            }
            // Deleted since it was listed.
            Err(refusal) if refusal.code == GONE => {
                found.remove(&id);
            }
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(left_out)
}
