//! What the stand-in remembers.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::{Fault, Profile};

/// How many start calls are kept for tests to look at.
const STARTS_KEPT: usize = 1000;

/// When something happens that a real server does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Delay {
    /// After so many milliseconds; 0 means before the call that caused it answers.
    AfterMs(u64),
    /// Never by itself: only when `/_standin/advance` says so.
    Word(ManualWord),
}

impl Delay {
    /// Only on `/_standin/advance`.
    pub const MANUAL: Self = Self::Word(ManualWord::Manual);
    /// Before the call that caused it answers.
    pub const AT_ONCE: Self = Self::AfterMs(0);
}

/// The word `manual` in place of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ManualWord {
    /// Only on `/_standin/advance`.
    Manual,
}

/// What can be set at run time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// From a command to its instance (3.1, 3.2), or to the instance's parameters (3.3 and later).
    pub consume: Delay,
    /// From the begin of an instance to its end, where its definition has no command line.
    pub finish: Delay,
    /// How many masters are alive. Without one, starts are refused and commands stay where they are.
    pub masters: u32,
    /// The user that the token belongs to, as `executorName` shows it.
    pub executor: String,
    /// When the token stops working; none: not in this test's life.
    #[serde(default)]
    pub token_expires: Option<Timestamp>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            consume: Delay::AT_ONCE,
            finish: Delay::AT_ONCE,
            masters: 1,
            executor: "lakebell".to_owned(),
            token_expires: None,
        }
    }
}

/// A project.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Its code.
    pub code: i64,
    /// Its name.
    pub name: String,
}

/// A workflow definition.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Its code.
    pub code: i64,
    /// Its name, unique within the project.
    pub name: String,
    /// The code of its project.
    pub project: i64,
    /// Whether it is released (ONLINE).
    pub online: bool,
    /// `PARALLEL`, `SERIAL_WAIT`, `SERIAL_DISCARD` or `SERIAL_PRIORITY`; shown, and only
    /// `SERIAL_DISCARD` changes what happens.
    pub execution_type: String,
    /// The codes of its tasks.
    pub tasks: Vec<i64>,
    /// The command line that an instance runs; empty: it ends by the settings.
    pub command: Vec<String>,
    /// The folder that the command line is run in; absent, the stand-in's own.
    pub working_dir: Option<String>,
    /// The alert group, which starts of 3.1 and 3.2 overwrite.
    pub warning_group: Option<i64>,
}

/// An accepted start that no master has consumed yet, or that ended in the error list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// Its id.
    pub id: i64,
    /// The definition to start.
    pub definition: i64,
    /// Its project.
    pub project: i64,
    /// The parameters as they were read.
    pub params: BTreeMap<String, String>,
    /// `commandParam` as rows show it.
    pub command_param: String,
    /// The trigger code that 3.2 answers.
    pub trigger_code: i64,
    /// Instances that exist already (3.3 and later).
    pub instances: Vec<i64>,
    /// How many instances it becomes.
    pub copies: u32,
    /// Whether handling it fails.
    pub to_error: bool,
    /// Whether its instances end at once in STOP.
    pub discard: bool,
    /// Whether its instances begin without parameters.
    pub lose_params: bool,
    /// The time that a backfill is for; none for a plain start.
    #[serde(default)]
    pub schedule_time: Option<DateTime>,
    /// When it was accepted.
    pub at: Timestamp,
}

/// A workflow instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// Its id.
    pub id: i64,
    /// Its name: the definition's, and a time.
    pub name: String,
    /// The definition.
    pub definition: i64,
    /// The project.
    pub project: i64,
    /// DolphinScheduler's state name.
    pub state: String,
    /// When it began.
    pub start_time: Timestamp,
    /// When it ended.
    pub end_time: Option<Timestamp>,
    /// How often it ran; reruns keep the id.
    pub run_times: u32,
    /// The parameters that the workflow sees.
    pub params: BTreeMap<String, String>,
    /// `commandParam` as rows show it; null until a master has consumed the command (3.3 and later).
    pub command_param: Option<String>,
    /// `globalParams` as rows show it.
    pub global_params: Option<String>,
    /// The trigger code (3.2).
    pub trigger_code: i64,
    /// The user.
    pub executor: String,
    /// Exit code of the command line.
    pub exit_code: Option<i32>,
    /// The last 4 KiB that the command line wrote to its outputs.
    pub log: String,
    /// The time that a backfill is for; none for a plain start.
    #[serde(default)]
    pub schedule_time: Option<DateTime>,
}

/// The command type of a start: of a backfill where it is for a time.
pub(crate) const fn command_type(schedule_time: Option<DateTime>) -> &'static str {
    if schedule_time.is_some() { "COMPLEMENT_DATA" } else { "START_PROCESS" }
}

impl Instance {
    /// `${system.biz.date}` as a task sees it, `yyyyMMdd`: the day before the scheduled one, or
    /// before the day of its begin where it is no backfill.
    pub fn business_date(&self) -> String {
        let begun = || self.start_time.to_zoned(TimeZone::UTC).date();
        let scheduled = self.schedule_time.map_or_else(begun, DateTime::date);
        scheduled.yesterday().unwrap_or(scheduled).strftime("%Y%m%d").to_string()
    }

    /// Whether it has ended, as DolphinScheduler sees it.
    pub fn has_ended(&self) -> bool {
        matches!(self.state.as_str(), "SUCCESS" | "FAILURE" | "STOP" | "PAUSE")
    }
}

/// A start call as it came, whatever became of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartCall {
    /// When.
    pub at: Timestamp,
    /// The project in the path.
    pub project: String,
    /// All its fields.
    pub fields: BTreeMap<String, String>,
}

/// Everything that the stand-in remembers; also the answer of `GET /_standin/state`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct World {
    /// Says what this is not.
    pub note: String,
    /// The release stood in for.
    pub profile: Profile,
    /// What can be set.
    pub settings: Settings,
    /// Faults that have not struck yet.
    pub faults: Vec<Fault>,
    /// How many start calls came in.
    pub start_calls: u64,
    /// The last 1000 of them.
    pub starts: VecDeque<StartCall>,
    /// Projects by code.
    pub projects: BTreeMap<i64, Project>,
    /// Definitions by code.
    pub definitions: BTreeMap<i64, Definition>,
    /// Commands that wait for a master.
    pub commands: Vec<Command>,
    /// Commands that could not be handled.
    pub error_commands: Vec<Command>,
    /// Instances by id.
    pub instances: BTreeMap<i64, Instance>,
    next_id: i64,
    next_code: i64,
}

impl World {
    /// An empty one.
    pub(crate) fn new(profile: Profile, settings: Settings) -> Self {
        Self {
            note: "stand-in for tests and demos, not Apache DolphinScheduler".to_owned(),
            profile,
            settings,
            faults: Vec::new(),
            start_calls: 0,
            starts: VecDeque::new(),
            projects: BTreeMap::new(),
            definitions: BTreeMap::new(),
            commands: Vec::new(),
            error_commands: Vec::new(),
            instances: BTreeMap::new(),
            next_id: 1,
            next_code: 10_000_000_000_001,
        }
    }

    /// The next id of a command or an instance.
    pub(crate) fn new_id(&mut self) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// The next code of a project, a definition, a task or a trigger.
    pub(crate) fn new_code(&mut self) -> i64 {
        let code = self.next_code;
        self.next_code += 1;
        code
    }

    /// Remembers a start call.
    pub(crate) fn note_start(&mut self, project: &str, fields: &BTreeMap<String, String>) {
        self.start_calls += 1;
        if self.starts.len() == STARTS_KEPT {
            self.starts.pop_front();
        }
        let call = StartCall { at: Timestamp::now(), project: project.to_owned(), fields: fields.clone() };
        self.starts.push_back(call);
    }

    /// Makes sure that the project exists.
    pub(crate) fn ensure_project(&mut self, code: i64) {
        self.projects.entry(code).or_insert_with(|| Project { code, name: format!("project-{code}") });
    }

    /// Instances whose workflow saw this parameter with this value, oldest first.
    pub fn instances_with(&self, name: &str, value: &str) -> Vec<&Instance> {
        self.instances
            .values()
            .filter(|instance| instance.params.get(name).is_some_and(|found| found == value))
            .collect()
    }
}
