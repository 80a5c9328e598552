//! The AWS Glue Data Catalog by its own API: `GetTable`, whose `metadata_location` is the pointer.
//!
//! The API is one signed JSON request, so the SDK's client of the whole service, which is larger than
//! a function, is left out. <https://docs.aws.amazon.com/glue/latest/webapi/API_GetTable.html>

use std::collections::BTreeMap;

use lakebell_domain::asset::AssetKey;
use lakebell_engine::catalog::GlueCatalog;
use lakebell_engine::{EngineError, ErrorKind};
use serde::Deserialize;
use serde_json::json;

use super::sign::Signer;
use crate::failure::{Cause, cause};
use crate::http::{Http, Request, away};

/// Largest answer that is read: a table of thousands of columns has less.
const MAX_ANSWER: usize = 8 << 20;
/// Longest part of a message of Glue that is told.
const MAX_SAID: usize = 200;

/// Asks Glue.
#[derive(Debug)]
pub(super) struct Glue {
    http: Http,
    signer: Signer,
    /// An emulator's, in place of the region's own.
    endpoint: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answered {
    table: Table,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Table {
    #[serde(default)]
    parameters: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
struct Problem {
    #[serde(rename = "__type", default)]
    kind: String,
    #[serde(alias = "Message", default)]
    message: String,
}

impl Glue {
    pub(super) const fn new(http: Http, signer: Signer, endpoint: Option<String>) -> Self {
        Self { http, signer, endpoint }
    }

    pub(super) async fn current(&self, catalog: &GlueCatalog, key: &AssetKey) -> Result<String, EngineError> {
        let region = catalog.region.as_deref().or_else(|| self.signer.region()).ok_or_else(|| {
            EngineError::new(ErrorKind::Denied, "the region of Glue is not known: set `region` of the catalog")
        })?;
        let (database, table) = (catalog.table.database(key), catalog.table.table(key));
        let mut body = json!({"DatabaseName": database, "Name": table});
        if let Some(account) = &catalog.account {
            body["CatalogId"] = account.as_str().into();
        }
        let request = Request::post(self.url(region), "application/x-amz-json-1.1", body.to_string().into_bytes())
            .with("x-amz-target", "AWSGlue.GetTable".to_owned());
        let request = self.signer.sign(request, "glue", region).await?;
        let mut answer = self.http.send(&request).await?;
        let status = answer.status;
        let named = format!("{database}.{table}");
        let unclear = |problem: &str| EngineError::new(ErrorKind::Damaged, format!("Glue's {problem}"));
        let body = answer.bytes(MAX_ANSWER).await?.ok_or_else(|| unclear("answer is larger than 8 MiB"))?;
        if status != 200 {
            return Err(refused(status, &serde_json::from_slice(&body).unwrap_or_default(), &named));
        }
        let answered: Answered = serde_json::from_slice(&body)
            .map_err(|error| unclear(&format!("answer about {named} is not the one of GetTable")).caused_by(error))?;
        let location = answered.table.parameters.and_then(|mut all| all.remove("metadata_location"));
        location.ok_or_else(|| unclear(&format!("table {named} has no metadata_location: it is no Iceberg table")))
    }

    fn url(&self, region: &str) -> String {
        if let Some(endpoint) = &self.endpoint {
            return format!("{}/", endpoint.trim_end_matches('/'));
        }
        let suffix = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        format!("https://glue.{region}.{suffix}/")
    }
}

fn refused(status: u16, problem: &Problem, named: &str) -> EngineError {
    // `com.amazonaws.glue#EntityNotFoundException` in some services' answers.
    let code = problem.kind.rsplit('#').next().unwrap_or_default();
    let said: String = problem.message.chars().filter(|it| !it.is_control()).take(MAX_SAID).collect();
    if code == "EntityNotFoundException" {
        return EngineError::new(ErrorKind::NotFound, format!("Glue has no table {named}: {said}"));
    }
    match cause(Some(code), Some(status)) {
        Cause::Throttled => away("Glue is throttled (glue:GetTable)"),
        Cause::Away => away(format!("Glue failed ({status} {code})")),
        Cause::Denied | Cause::Missing | Cause::Refused => {
            let message = format!(
                "glue:GetTable on {named} was refused: allow it in the role that is used, and in Lake Formation where that governs the table"
            );
            EngineError::new(ErrorKind::Denied, format!("{message} ({code}: {said})"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_their_kinds() {
        let table = [
            (400, "EntityNotFoundException", ErrorKind::NotFound),
            (400, "com.amazonaws.glue#EntityNotFoundException", ErrorKind::NotFound),
            (400, "AccessDeniedException", ErrorKind::Denied),
            (400, "InvalidInputException", ErrorKind::Denied),
            (400, "GlueEncryptionException", ErrorKind::Denied),
            (400, "ThrottlingException", ErrorKind::Unavailable),
            (500, "InternalServiceException", ErrorKind::Unavailable),
            (502, "", ErrorKind::Unavailable),
        ];
        for (status, code, expected) in table {
            let problem = Problem { kind: code.to_owned(), message: "m".to_owned() };
            let error = refused(status, &problem, "a.b");
            assert_eq!(error.kind(), expected, "{code}: {error}");
            assert_eq!(error.retryable(), expected == ErrorKind::Unavailable);
        }
    }
}
