//! The demo's group of two formats.

use crate::failure::{Failure, Outcome};
use crate::venv::Venv;

use super::story::{ASSETS, ORDERS, Story};

const REFUNDS: &str = "iceberg://ods_db/ods_refund_latest";
const TARGET: &str = "refund_report";

impl Story<'_> {
    /// A workflow that waits for a Paimon and an Iceberg table, each with its real writer.
    pub(super) fn mixed(&self, lake: &Venv) -> Outcome {
        let refunds = |what: &str| self.script(lake, "refunds.py", &[what]);
        self.progress.step("pyiceberg makes a table in Glue", || refunds("prepare"))?;
        let file = self.declaration("mixed.yaml")?;
        self.heading("A group of two formats: orders in Paimon, refunds in Iceberg, whose catalog is asked");
        self.show(&["apply", "-f", &file.to_string_lossy()])?;
        let before = self.events(ASSETS[0])?.len();
        self.progress.step("pypaimon commits orders", || self.gmv(&["commit", ORDERS]))?;
        self.wait_for("the orders to be seen", || Ok(self.events(ASSETS[0])?.len() > before))?;
        self.show(&["why", TARGET])?;
        self.progress.step("pyiceberg commits refunds", || refunds("commit"))?;
        let is_of = |trigger: &serde_json::Value| trigger["target"].as_str().is_some_and(|it| it.ends_with(TARGET));
        self.wait_for("the report to start", || {
            Ok(self.triggers()?.iter().any(|trigger| is_of(trigger) && trigger["triggerStatus"] == "SUCCESS"))
        })?;
        self.gmv(&["settled"])?;
        self.show(&["assets", REFUNDS])?;
        self.show(&["triggers"])?;
        match self.triggers()?.iter().filter(|trigger| is_of(trigger)).count() {
            1 => Ok(()),
            count => Err(Failure::new(format!("expected one start of {TARGET}, found {count}"))),
        }
    }
}
