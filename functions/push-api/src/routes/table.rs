//! Every route, one row each: method, path, what it does, the right that it needs, and what it answers.

use lakebell_domain::access::Right;

use super::{Needs, Operation, Route};

const READ: Needs = Needs::Right(Right::Read);
const EVIDENCE: Needs = Needs::Right(Right::Evidence);
const DECLARE: Needs = Needs::Right(Right::Declare);
const OPERATE: Needs = Needs::Right(Right::Operate);
const SENSOR: Needs = Needs::Right(Right::Sensor);
const WRITER: Needs = Needs::Writer(Right::Evidence);
const ADMIN: Needs = Needs::Right(Right::Admin);

const PAGE: &[&str] = &["limit", "after"];

const fn get(template: &'static str, operation: Operation, needs: Needs, summary: &'static str) -> Route {
    Route::new("GET", template, operation, needs, summary)
}

const fn post(template: &'static str, operation: Operation, needs: Needs, summary: &'static str) -> Route {
    Route::new("POST", template, operation, needs, summary)
}

const fn put(template: &'static str, operation: Operation, needs: Needs, summary: &'static str) -> Route {
    Route::new("PUT", template, operation, needs, summary)
}

const fn delete(template: &'static str, operation: Operation, needs: Needs, summary: &'static str) -> Route {
    Route::new("DELETE", template, operation, needs, summary).answers(&[204])
}

/// Every route. One whose path names a project (`{p}`) takes tokens of that project and of the
/// deployment, one whose path does not takes those of the deployment only.
pub const ROUTES: &[Route] = &[
    post("/projects/{p}/assets", Operation::RegisterAsset, DECLARE, "Register an asset").answers(&[200, 201]),
    get("/projects/{p}/assets", Operation::ListAssets, READ, "List assets")
        .query(&["format", "prefix", "limit", "after"]),
    get("/projects/{p}/assets/{assetKey}/state", Operation::ReadAssetState, READ, "Read an asset's state"),
    delete("/projects/{p}/assets/{assetKey}", Operation::DeleteAsset, DECLARE, "Deregister an asset"),
    post("/projects/{p}/assets/{assetKey}/observe", Operation::ObserveAsset, OPERATE, "Look at the whole table now"),
    post("/projects/{p}/assets/{assetKey}/accept-rewrite", Operation::AcceptRewrite, OPERATE, "Accept a held rewrite"),
    get(
        "/projects/{p}/assets/{assetKey}/withdrawn",
        Operation::ReadWithdrawn,
        READ,
        "Which triggers took versions that a held rewrite withdrew",
    ),
    get(
        "/projects/{p}/assets/{assetKey}/lineage",
        Operation::ReadLineage,
        READ,
        "What a table is made from, and what is made from it",
    )
    .query(&["direction", "steps"]),
    get(
        "/projects/{p}/unregistered-assets",
        Operation::ListUnregisteredAssets,
        READ,
        "List tables seen and not registered",
    )
    .query(&["format", "limit", "after"]),
    post("/projects/{p}/asset-events", Operation::PushEvents, EVIDENCE, "Push one event or a batch")
        .answers(&[200, 202]),
    get("/projects/{p}/asset-events", Operation::ListEvents, READ, "List an asset's events")
        .query(&["assetKey", "kind", "outcome", "limit", "after"]),
    get("/projects/{p}/asset-events/{eventId}", Operation::ReadOutcome, READ, "What became of a pushed event")
        .query(&["source"]),
    get("/projects/{p}/quarantine", Operation::ReadQuarantine, READ, "What was answered and led to nothing")
        .query(PAGE),
    get("/projects/{p}/assets/{assetKey}/aliases", Operation::ListAliases, READ, "List the names of an asset"),
    post("/projects/{p}/assets/{assetKey}/aliases", Operation::ConfirmAlias, DECLARE, "Confirm a name of an asset"),
    // After those below it: a key that came decoded takes every segment.
    get("/projects/{p}/assets/{assetKey}", Operation::ReadAsset, READ, "Read an asset"),
    post("/projects/{p}/quality/{tool}", Operation::PushQuality, EVIDENCE, "Push what dbt, gx or soda found")
        .answers(&[202]),
    post("/api/v1/lineage", Operation::PushLineage, WRITER, "Push an event of OpenLineage").answers(&[201]),
    post("/api/v1/lineage/batch", Operation::PushLineageBatch, WRITER, "Push events of OpenLineage"),
    post("/api/v1/hudi/commit", Operation::HudiCommit, WRITER, "A commit, by Hudi's callback"),
    post("/api/v1/iceberg/metrics", Operation::IcebergMetrics, WRITER, "A commit, by an Iceberg metrics report"),
    post(
        "/w/{token}/paimon/partition-done",
        Operation::PaimonPartitionDone,
        Needs::PathToken(Right::Evidence),
        "A done partition, by Paimon's http-report",
    ),
    post(
        "/w/{token}/hudi/commit",
        Operation::HudiCommitByPath,
        Needs::PathToken(Right::Evidence),
        "A commit, by Hudi's callback, with the token in the path",
    ),
    post(
        "/w/{token}/iceberg/metrics",
        Operation::IcebergMetricsByPath,
        Needs::PathToken(Right::Evidence),
        "A commit, by an Iceberg metrics report, with the token in the path",
    ),
    post("/projects/{p}/asset-dependencies", Operation::DeclareDependencies, DECLARE, "Declare a target")
        .answers(&[200, 201]),
    get("/projects/{p}/asset-dependencies", Operation::ListDependencies, READ, "List targets with their verdicts")
        .query(&["workflow", "verdict", "limit", "after"]),
    get(
        "/projects/{p}/asset-dependencies/{target}",
        Operation::ExplainDependencies,
        READ,
        "Why a target has or has not started",
    ),
    delete("/projects/{p}/asset-dependencies/{target}", Operation::DeleteDependencies, DECLARE, "Undeclare a target"),
    post("/projects/{p}/asset-dependencies/{target}/pause", Operation::PauseTarget, OPERATE, "Pause a target"),
    post("/projects/{p}/asset-dependencies/{target}/resume", Operation::ResumeTarget, OPERATE, "Resume a target"),
    post("/projects/{p}/asset-dependencies/{target}/fire", Operation::FireTarget, OPERATE, "Start a target now"),
    post("/projects/{p}/asset-dependencies/{target}/reset", Operation::ResetTarget, OPERATE, "Begin a target anew"),
    post(
        "/projects/{p}/asset-dependencies/{target}/pass-over",
        Operation::PassOver,
        OPERATE,
        "Count what is there as taken",
    ),
    get(
        "/projects/{p}/asset-dependencies/{target}/replay",
        Operation::ReplayTarget,
        READ,
        "When a target would have started",
    ),
    post("/projects/{p}/replay", Operation::ReplaySpec, READ, "When an undeclared target would have started"),
    get("/projects/{p}/switch", Operation::ReadProjectSwitch, READ, "Whether a project may start anything"),
    put("/projects/{p}/switch", Operation::SetProjectSwitch, OPERATE, "Switch all starting of a project off or on"),
    get("/switch", Operation::ReadGlobalSwitch, READ, "Whether anything may start"),
    put("/switch", Operation::SetGlobalSwitch, ADMIN, "Switch all starting off or on"),
    post(
        "/projects/{p}/asset-dependencies/{target}/sensor",
        Operation::AskSensor,
        SENSOR,
        "Ask, as a waiting task, whether it may go on",
    ),
    get("/projects/{p}/asset-trigger-history", Operation::ListTriggers, READ, "List triggers")
        .query(&["workflow", "target", "status", "limit", "after"]),
    get("/projects/{p}/asset-trigger-history/{triggerKey}", Operation::ReadTrigger, READ, "Read a trigger"),
    get(
        "/projects/{p}/asset-trigger-history/{triggerKey}/extras",
        Operation::ReadExtras,
        READ,
        "What writers attached to what a trigger took",
    )
    .query(PAGE),
    post(
        "/projects/{p}/asset-trigger-history/{triggerKey}/redrive",
        Operation::RedriveTrigger,
        OPERATE,
        "Start a failed trigger anew",
    ),
    post(
        "/projects/{p}/asset-trigger-history/{triggerKey}/skip",
        Operation::SkipTrigger,
        OPERATE,
        "Skip a queued or waiting trigger",
    ),
    post(
        "/projects/{p}/asset-trigger-history/{triggerKey}/decide",
        Operation::DecideTrigger,
        OPERATE,
        "Decide a held trigger",
    ),
    post("/projects/{p}/audits", Operation::AskAudit, READ, "Ask for an audit").answers(&[202]),
    get("/projects/{p}/audits/{auditId}", Operation::ReadAudit, READ, "Read an audit"),
    get("/doctor", Operation::Examine, READ, "How the deployment is"),
    get("/dead-letters", Operation::ListDeadLetters, READ, "How many messages nobody tries any more"),
    post("/dead-letters/{queue}/drain", Operation::DrainDeadLetters, OPERATE, "Put such messages back"),
    put("/connections/{name}", Operation::PutConnection, ADMIN, "Declare a connection"),
    get("/connections", Operation::ListConnections, READ, "List connections").query(PAGE),
    delete("/connections/{name}", Operation::DeleteConnection, ADMIN, "Forget a connection"),
    put("/warehouses", Operation::PutWarehouse, ADMIN, "Declare a warehouse and register its tables"),
    get("/warehouses", Operation::ListWarehouses, READ, "List warehouses").query(PAGE),
    delete("/warehouses", Operation::DeleteWarehouse, ADMIN, "Forget a warehouse").query(&["location"]),
    post("/projects/{p}/tokens", Operation::CreateToken, ADMIN, "Make a token of a project").answers(&[201]),
    get("/projects/{p}/tokens", Operation::ListTokens, ADMIN, "List the tokens of a project").query(PAGE),
    post("/projects/{p}/tokens/{tokenId}/rotate", Operation::RotateToken, ADMIN, "Give a project's token a new secret"),
    delete("/projects/{p}/tokens/{tokenId}", Operation::RevokeToken, ADMIN, "Revoke a project's token"),
    post("/tokens", Operation::CreateToken, ADMIN, "Make a token of the deployment").answers(&[201]),
    get("/tokens", Operation::ListTokens, ADMIN, "List all tokens").query(PAGE),
    post("/tokens/{tokenId}/rotate", Operation::RotateToken, ADMIN, "Give a token a new secret"),
    delete("/tokens/{tokenId}", Operation::RevokeToken, ADMIN, "Revoke a token"),
    get(
        "/projects/{p}/grants",
        Operation::ListGrants,
        ADMIN,
        "List grants of a project's assets, and requests for them",
    )
    .query(PAGE),
    put("/projects/{p}/grants", Operation::GiveGrant, ADMIN, "Let another project read an asset and depend on it"),
    delete("/projects/{p}/grants", Operation::TakeBackGrant, ADMIN, "Take a grant back, or refuse a request")
        .query(&["assetKey", "project"]),
    get("/openapi.json", Operation::ReadOpenApi, Needs::AnyToken, "Read the OpenAPI document of this API"),
    post(
        "/w/{token}/asset-events",
        Operation::PushEventsByPath,
        Needs::PathToken(Right::Evidence),
        "Push events with the token in the path",
    )
    .answers(&[200, 202]),
];
