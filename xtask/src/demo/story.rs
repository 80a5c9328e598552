//! What happens in the demo, in order.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::timeline;
use crate::failure::{During, Failure, Outcome};
use crate::local::{self, Local};
use crate::process;
use crate::progress::Progress;
use crate::venv::Venv;
use crate::workspace::Workspace;

/// What the writer needs.
pub(super) const REQUIREMENTS: &str = "xtask/demo/requirements.txt";
/// The tables of the chain, in the order in which they are written.
pub(super) const ASSETS: [&str; 5] = [
    "paimon://ods_db/ods_order_latest",
    "paimon://ods_db/ods_payment_latest",
    "paimon://dw_db/dwd_trade_event_fact",
    "paimon://dws_db/dws_gmv_daily",
    "paimon://ads_db/ads_gmv_dashboard",
];
pub(super) const ORDERS: &str = "ods_db.ods_order_latest";
const PAYMENTS: &str = "ods_db.ods_payment_latest";
/// The workflows of the chain.
const TARGETS: [&str; 3] = ["dwd_trade_event", "dws_gmv_daily", "ads_gmv_dashboard"];
/// How long the chain may take; it takes a few seconds, nearly all of it the writers' start.
const PATIENCE: Duration = Duration::from_mins(2);

/// Everything that the demo works with.
pub(super) struct Story<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) progress: &'a Progress,
    pub(super) local: &'a Local,
    pub(super) writer: &'a Venv,
    /// The writer of the mixed group's Iceberg table, where that group is wanted.
    pub(super) lake: Option<&'a Venv>,
}

impl Story<'_> {
    /// Plays it, and fails where something does not come out as promised.
    pub(super) fn play(&self) -> Outcome {
        self.progress.step("making five tables and three workflows", || self.gmv(&["prepare"]))?;
        let file = self.declaration("lakebell.yaml")?;
        self.heading("lakebell apply: five assets, three targets");
        self.show(&["apply", "-f", &file.to_string_lossy()])?;

        self.heading("A commit to ods_order_latest. Payments have not come, so DWD waits, and says why");
        self.progress.step("pypaimon commits orders", || self.gmv(&["commit", ORDERS]))?;
        self.wait_for("the commit to be seen", || Ok(!self.events(ASSETS[0])?.is_empty()))?;
        self.show(&["why", TARGETS[0]])?;

        self.heading("A commit to ods_payment_latest. DWD starts, writes its table, and that starts DWS, and that ADS");
        self.progress.step("pypaimon commits payments", || self.gmv(&["commit", PAYMENTS]))?;
        self.wait_for("the chain to reach the dashboard", || Ok(!self.events(ASSETS[4])?.is_empty()))?;
        self.gmv(&["settled"])?;

        let triggers = self.triggers()?;
        let mut events = Vec::new();
        for asset in ASSETS {
            events.extend(self.events(asset)?.into_iter().map(|event| (asset, event)));
        }
        println!("{}", timeline::timeline(&events, &triggers));

        self.heading("The payment commit's notification comes once more. Nothing starts");
        self.gmv(&["redeliver", PAYMENTS])?;
        self.gmv(&["settled"])?;
        let after = self.triggers()?;
        self.show(&["why", TARGETS[0]])?;
        if after.len() != triggers.len() || triggers.len() != TARGETS.len() {
            return Err(Failure::new(format!(
                "expected {} triggers before and after the redelivery, found {} and {}",
                TARGETS.len(),
                triggers.len(),
                after.len()
            )));
        }
        println!("{}", timeline::summary(&events, &triggers));
        self.lake.map_or(Ok(()), |lake| self.mixed(lake))
    }

    pub(super) fn heading(&self, text: &str) {
        println!("\n== {text} [{:.1} s]\n", self.progress.elapsed().as_secs_f64());
    }

    /// A declaration of the demo with this deployment's names in it.
    pub(super) fn declaration(&self, name: &str) -> Outcome<PathBuf> {
        let source = self.workspace.path(format!("xtask/demo/{name}"));
        let text = fs::read_to_string(&source).during(format!("read {}", source.display()))?;
        let text = text
            .replace("${BUCKET}", &self.local.bucket)
            .replace("${SCHEDULER_URL}", &self.local.scheduler_url)
            .replace("${TOKEN_SECRET}", &self.local.connection_secret);
        let path = local::description(self.workspace, self.local.port).with_file_name(name);
        fs::write(&path, text).during(format!("write {}", path.display()))?;
        Ok(path)
    }

    /// One call of the writer, which prints a line of JSON.
    pub(super) fn gmv(&self, arguments: &[&str]) -> Outcome<Value> {
        self.script(self.writer, "gmv.py", arguments)
    }

    /// One call of a script of the demo, which prints a line of JSON.
    pub(super) fn script(&self, python: &Venv, name: &str, arguments: &[&str]) -> Outcome<Value> {
        let mut command = python.script(&self.workspace.path(format!("xtask/demo/{name}")));
        command.arg("--local").arg(local::description(self.workspace, self.local.port)).args(arguments);
        let printed = process::output(&mut command)?;
        let last = printed.lines().next_back().unwrap_or_default();
        serde_json::from_str(last).during(format!("read what {name} printed: {last}"))
    }

    fn lakebell(&self) -> Command {
        let mut command = Command::new(self.workspace.target("debug").join("lakebell"));
        command.env("LAKEBELL_API_URL", &self.local.api_url).env("LAKEBELL_API_TOKEN", &self.local.api_token);
        command.env("LAKEBELL_PROJECT", "1001");
        command
    }

    /// A call of the command line as a person would make it.
    pub(super) fn show(&self, arguments: &[&str]) -> Outcome {
        println!("$ lakebell {}", arguments.join(" "));
        process::run(self.lakebell().args(arguments))
    }

    fn items(&self, arguments: &[&str]) -> Outcome<Vec<Value>> {
        let printed = process::output(self.lakebell().arg("--json").args(arguments))?;
        let answer: Value = serde_json::from_str(&printed).during("read what lakebell printed")?;
        Ok(answer["items"].as_array().cloned().unwrap_or_default())
    }

    pub(super) fn events(&self, asset: &str) -> Outcome<Vec<Value>> {
        self.items(&["events", asset])
    }

    pub(super) fn triggers(&self) -> Outcome<Vec<Value>> {
        self.items(&["triggers"])
    }

    pub(super) fn wait_for(&self, what: &str, mut is_true: impl FnMut() -> Outcome<bool>) -> Outcome {
        let begun = Instant::now();
        while !is_true()? {
            if begun.elapsed() > PATIENCE {
                let logs: Vec<_> = self.local.logs.values().map(|log| self.workspace.shown(log)).collect();
                return Err(Failure::new(format!("gave up waiting for {what}; the logs are {}", logs.join(" and "))));
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

/// What to try in a deployment that was kept.
pub(super) fn what_next(workspace: &Workspace, local: &Local) -> String {
    let gmv = format!(
        "{} xtask/demo/gmv.py --local {}",
        workspace.shown(&workspace.state("venv-demo").join("bin/python")),
        workspace.shown(&local::description(workspace, local.port))
    );
    let lakebell = workspace.shown(&workspace.target("debug").join("lakebell"));
    format!(
        "Try next:\n  {gmv} commit {ORDERS}      # another commit; DWD waits for payments again\n  \
         {lakebell} --project 1001 why                 # every target, and why it does or does not start\n  \
         {lakebell} --project 1001 triggers            # what was started, with which versions\n  \
         {lakebell} table inspect --format paimon s3://{}/warehouse/ods_db.db/ods_order_latest\n  \
         cargo xtask down --port {}",
        local.bucket, local.port
    )
}
