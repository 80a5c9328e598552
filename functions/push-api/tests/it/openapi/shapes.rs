//! What each operation takes and answers. The match is exhaustive, so a new operation has to be
//! described before the tests compile.

use lakebell_push_api::routes::Operation;
use serde_json::{Value, json};

use super::parts::{
    Schemas, boolean, integer, list, moment, object, open_object, or_null, page, string, the, token_members,
};

/// Bodies and answers of an operation.
pub(super) struct Shape {
    /// What the body may be.
    pub(super) body: Option<Value>,
    /// Whether there must be one.
    pub(super) needs_body: bool,
    /// What the body may be sent as.
    pub(super) media: &'static [&'static str],
    /// The schema of each answer that has a body and is no error.
    pub(super) answers: Vec<(u16, Value)>,
    /// The golden file of the first answer.
    pub(super) example: Option<&'static str>,
    /// Further golden files that must fit.
    pub(super) more_examples: &'static [&'static str],
}

const JSON: &[&str] = &["application/json"];
const EVENTS: &[&str] = &["application/json", "application/cloudevents+json", "application/cloudevents-batch+json"];

fn answers(schema: Value, example: &'static str) -> Shape {
    Shape {
        body: None,
        needs_body: false,
        media: JSON,
        answers: vec![(200, schema)],
        example: Some(example),
        more_examples: &[],
    }
}

fn nothing() -> Shape {
    Shape { body: None, needs_body: false, media: JSON, answers: vec![], example: None, more_examples: &[] }
}

impl Shape {
    fn takes(self, body: Value) -> Self {
        Self { body: Some(body), needs_body: true, ..self }
    }

    fn may_take(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    fn also(mut self, status: u16) -> Self {
        let schema = self.answers[0].1.clone();
        self.answers.push((status, schema));
        self
    }

    fn instead(mut self, status: u16) -> Self {
        self.answers[0].0 = status;
        self
    }

    fn fits(self, more_examples: &'static [&'static str]) -> Self {
        Self { more_examples, ..self }
    }
}

/// The body of a verb: who does it.
fn by() -> Value {
    object(&[], &[("by", name_of_person())])
}

fn name_of_person() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 100})
}

fn switch() -> Value {
    object(&[("scope", string()), ("on", boolean())], &[("off", json!({"type": "object"}))])
}

fn set_switch() -> Value {
    object(&[("on", boolean())], &[("by", name_of_person())])
}

fn warehouse() -> Value {
    object(
        &[("location", string()), ("format", json!({"enum": ["auto", "paimon", "iceberg", "hudi", "delta"]}))],
        &[("catalog", string()), ("project", integer())],
    )
}

fn shown_once(carried: Value) -> Value {
    let (mut always, mut sometimes) = token_members();
    sometimes.extend([("token", string()), ("signingKey", string())]);
    if let Some((_, schema)) = always.iter_mut().find(|(name, _)| *name == "carried") {
        *schema = carried;
    }
    object(&always, &sometimes)
}

fn grant() -> Value {
    object(&[("assetKey", string()), ("project", integer())], &[("askedAt", moment())])
}

fn carried() -> Value {
    json!({"enum": ["header", "path", "principal"]})
}

fn looked_at() -> Value {
    list(&open_object(&[("kind", string()), ("outcome", string())], &[]))
}

/// A body that an operation takes, for people and for tools that begin with one.
pub(super) fn sample(operation: Operation) -> Option<Value> {
    let file = match operation {
        Operation::RegisterAsset => "register-asset",
        Operation::PushEvents | Operation::PushEventsByPath => "push-batch",
        Operation::DeclareDependencies | Operation::ReplaySpec => "declare-target",
        Operation::PauseTarget | Operation::ResumeTarget | Operation::ResetTarget | Operation::AcceptRewrite => {
            "pause-target"
        }
        Operation::RedriveTrigger | Operation::SkipTrigger => "redrive-trigger",
        Operation::FireTarget => "fire-target",
        Operation::PassOver => "pass-over",
        Operation::AskSensor => "ask-sensor",
        Operation::DecideTrigger => "decide-trigger",
        Operation::PutConnection => "put-connection",
        Operation::PutWarehouse => "put-warehouse",
        Operation::SetProjectSwitch | Operation::SetGlobalSwitch => return Some(json!({"on": true, "by": "ana"})),
        Operation::CreateToken => return Some(json!({"name": "flink prod", "rights": ["evidence"]})),
        Operation::RotateToken => return Some(json!({"overlapHours": 24})),
        Operation::GiveGrant => return Some(json!({"assetKey": "paimon://ods_db/orders", "project": 8})),
        _ => return None,
    };
    let path = crate::support::workspace().join("events/push-api").join(format!("{file}.json"));
    let event: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    Some(serde_json::from_str(event["body"].as_str().unwrap()).unwrap())
}

/// A document in the form of its writer: docs/writers.md names the forms.
fn any_object() -> Value {
    json!({"type": "object"})
}

fn aliases() -> Value {
    object(&[("asset", string()), ("aliases", list(&the("AliasOfAsset")))], &[])
}

/// What an operation takes and answers.
#[allow(clippy::too_many_lines)] // one arm for each operation
pub(super) fn shape(operation: Operation, schemas: &mut Schemas) -> Shape {
    let asset = [
        ("id", string()),
        ("key", string()),
        ("location", string()),
        ("settings", the("AssetSettings")),
        ("state", the("AssetState")),
    ];
    match operation {
        Operation::RegisterAsset => {
            answers(object(&[&asset[..], &[("isNew", boolean())]].concat(), &[]), "asset-registered-again")
                .also(201)
                .takes(schemas.asset_spec())
                .fits(&["asset-registered", "asset-registered-unreadable"])
        }
        Operation::ListAssets => {
            let item = open_object(
                &[
                    ("id", string()),
                    ("key", string()),
                    ("project", integer()),
                    ("location", string()),
                    ("settings", the("AssetSettings")),
                ],
                &[],
            );
            answers(page(&item), "assets")
        }
        Operation::ReadAsset => {
            let shown = object(
                &[
                    ("id", string()),
                    ("key", string()),
                    ("project", integer()),
                    ("location", string()),
                    ("registeredAt", moment()),
                    ("rev", integer()),
                    ("settings", the("AssetSettings")),
                    ("table", or_null(json!({"type": "object"}))),
                    ("trouble", or_null(json!({"type": "object"}))),
                ],
                &[],
            );
            answers(shown, "asset")
        }
        Operation::ReadAssetState => {
            let more = [("project", integer()), ("registeredAt", moment()), ("rev", integer())];
            answers(open_object(&[&asset[..], &more].concat(), &[]), "asset-state").fits(&["evidence-state"])
        }
        Operation::ObserveAsset => {
            answers(object(&[("outcomes", looked_at()), ("state", the("AssetState"))], &[]), "asset-observed")
        }
        Operation::AcceptRewrite => {
            answers(object(&[("state", the("AssetState")), ("withdrawn", the("Withdrawn"))], &[]), "rewrite-accepted")
                .may_take(by())
        }
        Operation::ReadWithdrawn => answers(the("Withdrawn"), "withdrawn"),
        Operation::ReadLineage => {
            let edge = open_object(&[("from", string()), ("to", string()), ("steps", integer())], &[]);
            let shown = open_object(
                &[
                    ("asset", string()),
                    ("edges", list(&edge)),
                    ("targets", list(&json!({"type": "object"}))),
                    ("isCut", boolean()),
                ],
                &[],
            );
            answers(shown, "lineage")
        }
        Operation::ListUnregisteredAssets => {
            let item = object(
                &[
                    ("location", string()),
                    ("format", string()),
                    ("firstSeen", moment()),
                    ("object", string()),
                    ("reason", string()),
                ],
                &[("project", integer())],
            );
            answers(page(&item), "unregistered-assets")
        }
        Operation::PushEvents | Operation::PushEventsByPath => {
            let batch = json!({"type": "array", "items": the("CloudEvent"), "maxItems": 500});
            let body = json!({"anyOf": [the("CloudEvent"), batch]});
            let results = object(&[("items", list(&the("PushedEvent")))], &[]);
            Shape {
                body: Some(body),
                needs_body: true,
                media: EVENTS,
                answers: vec![(200, results), (202, the("PushedEvent"))],
                example: Some("events-accepted"),
                more_examples: &["event-accepted"],
            }
        }
        Operation::ReadOutcome => answers(the("OutcomeOfEvent"), "outcome-unknown").fits(&["outcome-stored"]),
        Operation::ReadQuarantine => answers(page(&the("OutcomeOfEvent")), "quarantine"),
        Operation::ListAliases => answers(aliases(), "openlineage-aliases"),
        Operation::ConfirmAlias => {
            let body = object(
                &[("path", json!({"type": "array", "items": string(), "minItems": 1, "maxItems": 8}))],
                &[("catalog", string())],
            );
            answers(aliases(), "alias-confirmed").takes(body)
        }
        Operation::PushLineage => answers(the("PushedEvent"), "openlineage").instead(201).takes(any_object()),
        Operation::PushLineageBatch => {
            let failed = object(&[("index", integer()), ("reason", string()), ("retriable", boolean())], &[]);
            let summary = object(&[("received", integer()), ("successful", integer()), ("failed", integer())], &[]);
            let answer = object(
                &[
                    ("status", json!({"enum": ["success", "partial_success", "failure"]})),
                    ("summary", summary),
                    ("failed_events", list(&failed)),
                    ("items", list(&the("PushedEvent"))),
                ],
                &[],
            );
            let body = json!({"type": "array", "items": any_object(), "maxItems": 500});
            answers(answer, "openlineage-batch").takes(body)
        }
        Operation::PushQuality => answers(the("PushedEvent"), "quality").instead(202).takes(any_object()),
        Operation::PaimonPartitionDone
        | Operation::HudiCommit
        | Operation::HudiCommitByPath
        | Operation::IcebergMetrics
        | Operation::IcebergMetricsByPath => {
            let success = object(&[("result", json!({"const": "SUCCESS"}))], &[]);
            answers(success, "hook-success").takes(any_object())
        }
        Operation::ListEvents => {
            let item = open_object(
                &[
                    ("assetKey", string()),
                    ("kind", string()),
                    ("outcome", string()),
                    ("recordedAt", moment()),
                    ("source", string()),
                    ("token", string()),
                    ("trace", string()),
                ],
                &[("reason", string())],
            );
            answers(page(&item), "events").fits(&["evidence-events"])
        }
        Operation::DeclareDependencies => {
            let records = json!({"type": "array", "items": schemas.record(), "minItems": 1, "maxItems": 1_000});
            let body = json!({"anyOf": [schemas.target_spec(), schemas.record(), records]});
            let all = object(&[("items", list(&the("DeclaredTarget")))], &[]);
            answers(json!({"anyOf": [the("DeclaredTarget"), all]}), "target-declared-again")
                .also(201)
                .takes(body)
                .fits(&["target-declared", "records-declared", "target-declared-with-warnings"])
        }
        Operation::ListDependencies => answers(page(&the("ExplainedTarget")), "targets"),
        Operation::ExplainDependencies => answers(page(&the("ExplainedTarget")), "target-explained")
            .fits(&["target-explained-with-warnings", "records-explained"]),
        Operation::PauseTarget => answers(the("OperatedTarget"), "target-paused").may_take(by()),
        Operation::ResumeTarget => answers(the("OperatedTarget"), "target-resumed").may_take(by()),
        Operation::ResetTarget => answers(the("OperatedTarget"), "target-reset").may_take(by()),
        Operation::PassOver => answers(the("OperatedTarget"), "target-passed-over")
            .may_take(object(&[], &[("assetKey", string()), ("by", name_of_person())])),
        Operation::FireTarget => {
            let id = json!({"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"});
            answers(the("Trigger"), "target-fired").takes(object(&[("requestId", id)], &[("by", name_of_person())]))
        }
        Operation::ReplayTarget => answers(the("Replayed"), "target-replayed"),
        Operation::ReplaySpec => answers(the("Replayed"), "target-replayed").takes(schemas.target_spec()),
        Operation::ReadProjectSwitch | Operation::ReadGlobalSwitch => answers(switch(), "switch-on"),
        Operation::SetProjectSwitch | Operation::SetGlobalSwitch => answers(switch(), "switch-off").takes(set_switch()),
        Operation::AskSensor => {
            // DolphinScheduler sends every value as text.
            let value = || json!({"type": ["integer", "string", "null"]});
            let names = ["workflowInstanceId", "token", "taskDefinitionCode", "run", "waitSeconds"];
            let body = object(&[], &names.map(|name| (name, value())));
            let ready = object(
                &[
                    ("sensor", json!({"const": "READY"})),
                    ("target", string()),
                    ("triggerKey", string()),
                    ("recorded", boolean()),
                    ("parameters", json!({"type": "object"})),
                ],
                &[],
            );
            let not_yet = object(
                &[
                    ("sensor", json!({"enum": ["WAITING", "TIMED_OUT"]})),
                    ("target", string()),
                    ("verdict", string()),
                    ("reason", or_null(json!({"type": "object"}))),
                    ("timedOut", or_null(moment())),
                    ("mode", json!({"enum": ["live", "shadow"]})),
                ],
                &[],
            );
            answers(json!({"anyOf": [ready, not_yet]}), "sensor-ready").takes(body).fits(&[
                "sensor-recorded",
                "sensor-waiting",
                "sensor-timed-out",
            ])
        }
        Operation::ListTriggers => answers(page(&the("Trigger")), "triggers"),
        Operation::ReadTrigger => answers(the("Trigger"), "trigger"),
        Operation::ReadExtras => {
            let item = object(
                &[("assetKey", string()), ("kind", string()), ("ordinal", integer()), ("recordedAt", moment())],
                &[("snapshotId", string()), ("rows", integer()), ("extra", json!({"type": "object"}))],
            );
            let shown = object(
                &[
                    ("extraInstances", list(&integer())),
                    ("items", list(&item)),
                    ("next", json!({"type": ["string", "null"]})),
                ],
                &[],
            );
            answers(shown, "trigger-extras")
        }
        Operation::RedriveTrigger => answers(the("MovedTrigger"), "trigger-redriven").may_take(by()),
        Operation::SkipTrigger => answers(the("MovedTrigger"), "trigger-skipped").may_take(by()),
        Operation::DecideTrigger => {
            let body = object(
                &[("decision", json!({"enum": ["started", "absent", "failed"]}))],
                &[("instance", json!({"type": ["integer", "null"], "minimum": 1})), ("by", name_of_person())],
            );
            answers(the("MovedTrigger"), "trigger-decided").takes(body)
        }
        Operation::AskAudit => {
            answers(audit(), "audit-asked").instead(202).may_take(object(&[], &[("since", moment())]))
        }
        Operation::ReadAudit => answers(audit(), "audit-done"),
        Operation::Examine => {
            let check = object(
                &[
                    ("check", string()),
                    ("status", json!({"enum": ["ok", "warning", "bad", "pending"]})),
                    ("detail", string()),
                ],
                &[("subject", string()), ("todo", string())],
            );
            answers(object(&[("version", string()), ("checks", list(&check))], &[]), "doctor")
        }
        Operation::ListDeadLetters => {
            let lying = object(&[("queue", dead_queue()), ("messages", json!({"type": "integer", "minimum": 0}))], &[]);
            answers(object(&[("items", list(&lying))], &[]), "dead-letters")
        }
        Operation::DrainDeadLetters => {
            let put_back = json!({"type": "integer", "minimum": 0, "maximum": 1_000});
            let fields = [("queue", dead_queue()), ("putBack", put_back), ("isEmpty", boolean())];
            answers(object(&fields, &[]), "dead-letters-drained")
        }
        Operation::PutConnection => {
            let body = object(
                &[("url", json!({"type": "string", "pattern": "^https?://"})), ("tokenSecret", string())],
                &[("version", json!({"enum": ["auto", "3.1", "3.2", "3.3"]})), ("user", string())],
            );
            answers(the("Connection"), "connection").takes(body)
        }
        Operation::ListConnections => answers(page(&the("Connection")), "connections"),
        Operation::PutWarehouse => {
            let refused = object(&[("location", string()), ("reason", string())], &[]);
            let found =
                object(&[("registered", list(&string())), ("known", integer()), ("refused", list(&refused))], &[]);
            answers(found, "warehouse-discovered").takes(warehouse())
        }
        Operation::ListWarehouses => answers(page(&warehouse()), "warehouses"),
        Operation::CreateToken => {
            let life = json!({"type": "integer", "minimum": 1, "maximum": 730, "default": 90});
            let name = json!({"type": "string", "minLength": 1, "maxLength": 100});
            let body = object(
                &[("name", name), ("rights", schemas.rights())],
                &[("carried", carried()), ("principal", string()), ("lifeDays", life), ("signed", boolean())],
            );
            answers(shown_once(carried()), "token-made").instead(201).takes(body).fits(&["token-of-principal"])
        }
        Operation::RotateToken => {
            let overlap = json!({"type": "integer", "minimum": 0, "maximum": 720, "default": 24});
            answers(shown_once(json!({"enum": ["header", "path"]})), "token-rotated")
                .may_take(object(&[], &[("overlapHours", overlap)]))
        }
        Operation::ListTokens => answers(page(&the("Token")), "tokens"),
        Operation::ListGrants => answers(page(&grant()), "grants-given").fits(&["grants-asked"]),
        Operation::GiveGrant => answers(grant(), "grant-given")
            .takes(object(&[("assetKey", string()), ("project", json!({"type": "integer", "minimum": 1}))], &[])),
        Operation::ReadOpenApi => {
            let document = open_object(
                &[("openapi", string()), ("paths", json!({"type": "object"}))],
                &[("info", or_null(json!({"type": "object"})))],
            );
            Shape { example: None, ..answers(document, "") }
        }
        Operation::DeleteAsset
        | Operation::DeleteDependencies
        | Operation::DeleteConnection
        | Operation::DeleteWarehouse
        | Operation::TakeBackGrant
        | Operation::RevokeToken => nothing(),
    }
}

fn dead_queue() -> Value {
    json!({"enum": ["hints", "evaluate", "dispatch"]})
}

fn audit() -> Value {
    let finding = object(
        &[("kind", json!({"enum": ["rule", "extra", "missing", "unknown"]})), ("detail", string())],
        &[("trigger", string()), ("instance", integer())],
    );
    let not_compared = object(&[("connection", string()), ("workflow", string()), ("why", string())], &[]);
    let result = object(
        &[
            ("isClean", boolean()),
            ("triggers", integer()),
            ("instances", integer()),
            ("findings", list(&finding)),
            ("moreFindings", integer()),
            ("notCompared", list(&not_compared)),
        ],
        &[("onlySince", moment())],
    );
    object(
        &[("id", string()), ("project", integer()), ("since", moment()), ("askedAt", moment())],
        &[("result", result)],
    )
}
