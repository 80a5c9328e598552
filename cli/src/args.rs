//! The command line.

// The comments are the help texts that a terminal shows, so no Markdown.
#![allow(clippy::doc_markdown)]

mod access;

pub(crate) use access::{GrantsCommand, TokenArgs, TokensCommand};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;
use lakebell_domain::asset::{AssetKey, Location};
use lakebell_domain::ids::{ConnectionName, InstanceId, ProjectCode, TargetName, TriggerKey};
use lakebell_engine::ports::dead_letters::DeadQueue;

/// Starts DolphinScheduler workflows when lakehouse tables have new data
#[derive(Debug, Parser)]
#[command(name = "lakebell", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Base URL of the API; without it, that of the local deployment
    #[arg(long, global = true, value_name = "URL", env = "LAKEBELL_API_URL")]
    pub(crate) api: Option<String>,
    /// Token of the API
    #[arg(long, global = true, value_name = "T", env = "LAKEBELL_API_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// DolphinScheduler's code of the project
    #[arg(long, global = true, value_name = "CODE", env = "LAKEBELL_PROJECT")]
    pub(crate) project: Option<ProjectCode>,
    /// Write JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the deployment what a file says; safe to repeat
    Apply(ApplyArgs),
    /// Remove one thing
    #[command(subcommand)]
    Delete(Doomed),
    /// List assets, or show the state of one
    Assets {
        /// The asset, as in paimon://ods_db/orders
        key: Option<AssetKey>,
    },
    /// List the events of an asset, newest first
    Events {
        /// The asset, as in paimon://ods_db/orders
        key: AssetKey,
        /// How many at most
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// List triggers, newest first
    Triggers(TriggersArgs),
    /// Show one trigger and its way so far
    Trigger {
        /// Its key, as `triggers` shows it
        key: TriggerKey,
    },
    /// Explain why targets start or do not
    Why {
        /// A target's name or the code of its workflow; without it, every target of the project
        target: Option<String>,
    },
    /// Pause a target: nothing of it is started until it is resumed
    Pause {
        /// Its name
        target: TargetName,
        #[command(flatten)]
        by: By,
    },
    /// Resume a target; what has advanced meanwhile is one start
    Resume {
        /// Its name
        target: TargetName,
        #[command(flatten)]
        by: By,
    },
    /// Start a failed trigger anew, or every failed one of the project
    Redrive(RedriveArgs),
    /// Skip a queued or waiting trigger: its data counts as processed
    Skip {
        /// Its key, as `triggers` shows it
        key: TriggerKey,
        #[command(flatten)]
        by: By,
    },
    /// Decide a held trigger: did its workflow start?
    Decide(DecideArgs),
    /// Start a target now with what is there, whatever its conditions say
    Fire(FireArgs),
    /// Begin a target anew, as if it had just been declared
    Reset {
        /// Its name
        target: TargetName,
        #[command(flatten)]
        by: By,
    },
    /// Count what is there as taken, without a start
    PassOver(PassOverArgs),
    /// Show or set whether anything of a project, or of all of them, may start
    Switch(SwitchArgs),
    /// List when a target would have started, by the recorded history of its tables
    Replay(ReplayArgs),
    /// List the triggers that took versions which a rewrite has withdrawn
    Withdrawn {
        /// The asset
        key: AssetKey,
    },
    /// Show what a table is made from, what is made from it, and the targets that it starts
    Lineage {
        /// The asset
        key: AssetKey,
        /// Only what it is made from
        #[arg(long, conflicts_with = "downstream")]
        upstream: bool,
        /// Only what is made from it
        #[arg(long)]
        downstream: bool,
    },
    /// Check what is recorded against the rules, and triggers against the scheduler's instances
    Audit(AuditArgs),
    /// Check the deployment and say what to do
    Doctor,
    /// Count messages that nobody tries any more, or put them back
    #[command(subcommand)]
    DeadLetters(DeadLettersCommand),
    /// List tables that commit and are not registered
    Unregistered,
    /// Accept that an asset's history was rewritten; it starts anew from what is there
    AcceptRewrite {
        /// The asset
        key: AssetKey,
    },
    /// Look at the whole table now
    Observe {
        /// The asset
        key: AssetKey,
    },
    /// Tasks that wait inside a running workflow
    #[command(subcommand)]
    Sensor(SensorCommand),
    /// List, give and take back grants of a project's assets to other projects
    #[command(subcommand)]
    Grants(GrantsCommand),
    /// Make, list, rotate and revoke tokens of the API: of a project, or without one of the deployment
    #[command(subcommand)]
    Tokens(TokensCommand),
    /// Look at tables without a deployment
    #[command(subcommand)]
    Table(TableCommand),
}

/// `apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The file
    #[arg(short = 'f', long = "file", value_name = "FILE", default_value = "lakebell.yaml")]
    pub(crate) file: PathBuf,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove the project's targets and assets that are not in the file
    #[arg(long)]
    pub(crate) prune: bool,
}

/// What `delete` removes.
#[derive(Debug, Subcommand)]
pub(crate) enum Doomed {
    /// Deregister an asset; its targets are then blocked
    Asset {
        /// Its key
        key: AssetKey,
    },
    /// Undeclare a target, or with a workflow's code all targets of it
    Target {
        /// Its name
        name: TargetName,
    },
    /// Forget a connection
    Connection {
        /// Its name
        name: ConnectionName,
    },
    /// Forget a warehouse; the assets that it brought stay
    Warehouse {
        /// Its location, as in s3://lake/warehouse
        location: Location,
    },
}

/// `triggers`.
#[derive(Debug, Args)]
pub(crate) struct TriggersArgs {
    /// Only those of a target
    #[arg(long)]
    pub(crate) target: Option<TargetName>,
    /// Only those with a status
    #[arg(long, ignore_case = true)]
    pub(crate) status: Option<TriggerStatus>,
    /// How many at most
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
}

/// The statuses of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum TriggerStatus {
    /// Queued, being started, or waiting to be
    Triggering,
    /// It may have started
    Unknown,
    /// It started
    Success,
    /// It did not start
    Failed,
    /// It was not to start
    Skipped,
}

/// Who it is that operates.
#[derive(Debug, Args)]
pub(crate) struct By {
    /// Who does it; it is kept with the target or trigger
    #[arg(long, value_name = "NAME", env = "USER")]
    pub(crate) by: Option<String>,
}

/// `fire`.
#[derive(Debug, Args)]
pub(crate) struct FireArgs {
    /// The target's name
    pub(crate) target: TargetName,
    /// The same id again is the same start; without it each call is one of its own
    #[arg(long, value_name = "ID")]
    pub(crate) request_id: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
}

/// `pass-over`.
#[derive(Debug, Args)]
pub(crate) struct PassOverArgs {
    /// The target's name
    pub(crate) target: TargetName,
    /// Only what is there of this asset
    #[arg(long, value_name = "KEY")]
    pub(crate) asset: Option<AssetKey>,
    #[command(flatten)]
    pub(crate) by: By,
}

/// `switch`.
#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// What to set it to; without it, how it stands is shown
    pub(crate) state: Option<SwitchState>,
    /// The switch of all projects
    #[arg(long)]
    pub(crate) all_projects: bool,
    #[command(flatten)]
    pub(crate) by: By,
}

/// How a switch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SwitchState {
    /// Starting goes on
    On,
    /// Nothing is started; what advances is kept
    Off,
}

/// `replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The target's name
    pub(crate) target: TargetName,
    /// The target as this file declares it, which need not be applied
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// `redrive`.
#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    /// Its key, as `triggers --status failed` shows it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) key: Option<TriggerKey>,
    /// Every failed trigger of the project
    #[arg(long)]
    pub(crate) all: bool,
    /// Of those only the ones that failed with this code, as in WORKFLOW_MISSING
    #[arg(long, value_name = "CODE", requires = "all", conflicts_with = "key")]
    pub(crate) code: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
}

/// `dead-letters`.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadLettersCommand {
    /// Count them
    List,
    /// Put them back into the queue that they came from; do so when their cause is mended
    Drain {
        /// The queue: hints, evaluate or dispatch; without it, all of them
        queue: Option<DeadQueue>,
    },
}

/// `audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Triggers that were claimed since, as in 2026-01-15T00:00:00Z; the last 24 hours without it
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Timestamp>,
    /// How many seconds to wait for it
    #[arg(long, value_name = "S", default_value_t = 120)]
    pub(crate) wait: u64,
}

/// `decide`.
#[derive(Debug, Args)]
pub(crate) struct DecideArgs {
    /// Its key, as `why` shows it
    pub(crate) key: TriggerKey,
    /// What became of its workflow
    pub(crate) decision: DecisionWord,
    /// The workflow instance that started
    #[arg(long, value_name = "N")]
    pub(crate) instance: Option<InstanceId>,
    #[command(flatten)]
    pub(crate) by: By,
}

/// What became of a held trigger's workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecisionWord {
    /// It started
    Started,
    /// It did not start: try again
    Absent,
    /// Give up; the next trigger takes over the data
    Failed,
}

impl DecisionWord {
    /// The word of the API.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Absent => "absent",
            Self::Failed => "failed",
        }
    }
}

/// `sensor`.
#[derive(Debug, Subcommand)]
pub(crate) enum SensorCommand {
    /// Print the DolphinScheduler task that waits for a target
    Task(SensorTaskArgs),
}

/// `sensor task`.
#[derive(Debug, Args)]
pub(crate) struct SensorTaskArgs {
    /// The target's name
    pub(crate) target: TargetName,
    /// The DolphinScheduler to print it for; without it, what the target's connection says
    #[arg(long, value_name = "LINE")]
    pub(crate) scheduler_version: Option<SensorVersion>,
    /// How long each poll may wait for its answer; it is paid for
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=20))]
    pub(crate) wait_seconds: u32,
    /// The parameter of DolphinScheduler that holds the token of the API
    #[arg(long, value_name = "NAME", default_value = "lakebell_api_token", value_parser = parameter)]
    pub(crate) api_token_parameter: String,
    /// On 3.1, the start parameter that tells the runs of the workflow apart
    #[arg(long, value_name = "NAME", default_value = "lakebell_trigger_key", value_parser = parameter)]
    pub(crate) token_parameter: String,
}

/// The name of a parameter of DolphinScheduler.
fn parameter(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if is_name { Ok(text.to_owned()) } else { Err("use letters, digits, `_`, `-` or `.`".to_owned()) }
}

/// Version lines of DolphinScheduler, as far as their HTTP tasks differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SensorVersion {
    /// Body by parameters; a task is told no workflow instance
    #[value(name = "3.1")]
    V3_1,
    /// Body as text
    #[value(name = "3.2")]
    V3_2,
    /// Body as a flat object; one time-out
    #[value(name = "3.3")]
    V3_3,
    /// As 3.3
    #[value(name = "3.4")]
    V3_4,
}

/// `table`.
#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// Show what Lakebell sees in a table
    Inspect(InspectArgs),
}

/// `table inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The table's format
    #[arg(long, value_enum, default_value_t = TableFormat::Auto)]
    pub(crate) format: TableFormat,
    /// The table's root: a folder, or an URL as in s3://lake/warehouse/ods_db.db/orders
    pub(crate) path: String,
}

/// Formats that can be inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// Whichever it is, told by its folders
    Auto,
    /// Apache Paimon
    Paimon,
    /// Apache Iceberg, without asking a catalog
    Iceberg,
    /// Apache Hudi
    Hudi,
    /// Delta Lake
    Delta,
}
