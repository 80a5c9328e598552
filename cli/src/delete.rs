//! `delete`: one thing at a time.

use lakebell_domain::ids::ProjectCode;
use serde_json::json;

use crate::args::Doomed;
use crate::client::{Api, Request};
use crate::error::CliError;
use crate::report::Report;
use crate::settings;

/// Removes one thing.
pub(crate) async fn run(api: &Api, project: Option<ProjectCode>, doomed: &Doomed) -> Result<Report, CliError> {
    let (kind, name) = match doomed {
        Doomed::Asset { key } => {
            let (project, key) = (settings::project(project)?.to_string(), key.to_string());
            api.send(&Request::delete(&["projects", &project, "assets", &key])).await?;
            ("asset", key)
        }
        Doomed::Target { name } => {
            let (project, name) = (settings::project(project)?.to_string(), name.to_string());
            api.send(&Request::delete(&["projects", &project, "asset-dependencies", &name])).await?;
            ("target", name)
        }
        Doomed::Connection { name } => {
            api.send(&Request::delete(&["connections", name.as_str()])).await?;
            ("connection", name.to_string())
        }
        Doomed::Warehouse { location } => {
            let request = Request::delete(&["warehouses"]).query("location", location.to_string());
            api.send(&request).await?;
            ("warehouse", location.to_string())
        }
    };
    Ok(Report::new(format!("{kind} {name} is deleted\n"), json!({ "deleted": { "kind": kind, "name": name } })))
}
