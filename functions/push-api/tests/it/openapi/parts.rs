//! Parameters, and the schemas that several operations share.

use lakebell_domain::access::Rights;
use lakebell_domain::asset::{Format, WrittenKey};
use lakebell_domain::event::EventKind;
use lakebell_domain::reason::Verdict;
use lakebell_domain::target::{DependencyRecord, TargetSpec};
use lakebell_engine::ErrorKind;
use lakebell_engine::assets::AssetSpec;
use lakebell_push_api::Code;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::events;

/// Schemas of the code's own types, and those of answers.
pub(super) struct Schemas(SchemaGenerator);

impl Schemas {
    pub(super) fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        Self(settings.into_generator())
    }

    fn of<T: JsonSchema>(&mut self) -> Value {
        self.0.subschema_for::<T>().to_value()
    }

    pub(super) fn asset_spec(&mut self) -> Value {
        self.of::<AssetSpec<WrittenKey>>()
    }

    pub(super) fn target_spec(&mut self) -> Value {
        self.of::<TargetSpec>()
    }

    pub(super) fn record(&mut self) -> Value {
        self.of::<DependencyRecord>()
    }

    pub(super) fn rights(&mut self) -> Value {
        self.of::<Rights>()
    }

    /// Everything under `components.schemas`.
    pub(super) fn finish(mut self) -> Value {
        for add in [Self::asset_spec, Self::target_spec, Self::record, Self::rights] {
            add(&mut self);
        }
        let mut all: Map<String, Value> = self.0.take_definitions(true);
        for (name, schema) in shared() {
            assert!(all.insert(name.to_owned(), schema).is_none(), "two schemas are named {name}");
        }
        Value::Object(all)
    }
}

/// A reference to a shared schema.
pub(super) fn the(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// An object of these members and no other.
pub(super) fn object(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let mut schema = open_object(required, optional);
    schema["additionalProperties"] = json!(false);
    schema
}

/// An object of these members at least.
pub(super) fn open_object(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let properties: Map<String, Value> =
        required.iter().chain(optional).map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    json!({"type": "object", "required": names, "properties": properties})
}

/// What is known of a started workflow.
fn followed() -> Value {
    let states = ["UNSEEN", "RUNNING", "SUSPENDED", "SUCCESS", "FAILURE", "STOPPED", "GONE", "LOST"];
    object(
        &[("state", json!({ "enum": states })), ("since", moment()), ("runs", integer())],
        &[("toldAt", moment()), ("startedAt", moment()), ("endedAt", moment()), ("dueAt", moment())],
    )
}

/// A page of a list.
pub(super) fn page(item: &Value) -> Value {
    object(&[("items", json!({"type": "array", "items": item})), ("next", json!({"type": ["string", "null"]}))], &[])
}

pub(super) fn list(item: &Value) -> Value {
    json!({"type": "array", "items": item})
}

pub(super) fn string() -> Value {
    json!({"type": "string"})
}

pub(super) fn integer() -> Value {
    json!({"type": "integer"})
}

pub(super) fn boolean() -> Value {
    json!({"type": "boolean"})
}

pub(super) fn moment() -> Value {
    json!({"type": "string", "format": "date-time"})
}

pub(super) fn or_null(mut schema: Value) -> Value {
    match schema.get("type").cloned() {
        Some(kind) => {
            schema["type"] = json!([kind, "null"]);
            schema
        }
        None => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

#[allow(clippy::too_many_lines)] // a list of schemas, one after the other
fn shared() -> Vec<(&'static str, Value)> {
    let codes: Vec<&str> = ErrorKind::ALL.into_iter().map(Code::Engine).chain(Code::OWN).map(Code::as_str).collect();
    let problem = object(
        &[
            ("type", json!({"type": "string", "format": "uri"})),
            ("title", string()),
            ("status", integer()),
            ("code", json!({"enum": codes})),
            ("detail", string()),
            ("traceId", string()),
        ],
        &[("field", string()), ("hint", string()), ("limit", integer())],
    );
    let pushed = object(
        &[("eventId", json!({"type": ["string", "null"]})), ("status", json!({"enum": ["stored", "refused"]}))],
        &[
            ("receipt", json!({"type": "string", "pattern": "^[0-9a-f]{32}$"})),
            ("reason", string()),
            ("code", json!({"enum": codes})),
            ("field", string()),
            ("hint", string()),
            ("retryable", boolean()),
        ],
    );
    let outcome = object(
        &[
            ("receipt", string()),
            ("eventId", string()),
            ("source", string()),
            ("receivedAt", moment()),
            ("status", json!({"enum": ["stored", "settled", "quarantined"]})),
            (
                "outcomes",
                list(&object(
                    &[("about", string()), ("outcome", string())],
                    &[("kind", string()), ("reason", string())],
                )),
            ),
        ],
        &[("reason", string()), ("body", string())],
    );
    let alias = object(
        &[
            ("catalog", string()),
            ("path", list(&string())),
            ("isVerified", boolean()),
            ("by", string()),
            ("firstSeen", moment()),
            ("lastSeen", moment()),
        ],
        &[("confirmedBy", string())],
    );
    let state = open_object(
        &[("epoch", integer()), ("schema", json!({"type": "object"})), ("quality", json!({"type": "object"}))],
        &[("table", json!({"type": ["object", "null"]})), ("data", json!({"type": ["object", "null"]}))],
    );
    let settings = object(
        &[],
        &[("bindVerdict", string()), ("schemaApproval", string()), ("watermarkFrom", string()), ("trust", string())],
    );
    let evaluation = open_object(
        &[
            ("target", string()),
            ("verdict", json!({"type": "string", "pattern": "^[A-Z_]+$"})),
            ("rule", string()),
            ("groups", list(&json!({"type": "object"}))),
        ],
        &[("reason", open_object(&[("code", string()), ("unblock", string())], &[]))],
    );
    let trigger = open_object(
        &[
            ("key", json!({"type": "string", "pattern": "^[0-9a-f]{32}$"})),
            ("target", string()),
            ("triggerStatus", json!({"enum": ["TRIGGERING", "UNKNOWN", "SUCCESS", "FAILED", "SKIPPED"]})),
            ("status", json!({"type": "object"})),
            ("claimedAt", moment()),
            ("ranges", list(&open_object(&[("asset", string()), ("key", string())], &[]))),
            ("parameters", json!({"type": "object", "additionalProperties": {"type": "string"}})),
            ("log", list(&open_object(&[("arrow", json!(true)), ("at", moment())], &[]))),
        ],
        &[("followed", followed())],
    );
    let explained_required = [
        ("target", string()),
        ("name", string()),
        ("definition", json!({"type": "object"})),
        ("rule", string()),
        ("evaluation", the("Evaluation")),
    ];
    let warnings = ("warnings", list(&string()));
    let start = open_object(
        &[("trigger", string()), ("claimedAt", moment())],
        &[("instance", json!({"type": ["integer", "null"]})), ("followed", or_null(followed()))],
    );
    let optional = [warnings.clone(), ("lastStart", start)];
    let explained = object(&explained_required, &optional);
    let claimed = ("claimed", or_null(string()));
    let operated = object(&[&explained_required[..], std::slice::from_ref(&claimed)].concat(), &optional);
    let declared = object(
        &[
            ("target", string()),
            ("name", string()),
            ("changed", boolean()),
            ("rule", string()),
            ("evaluation", or_null(the("Evaluation"))),
            claimed.clone(),
            warnings.clone(),
        ],
        &[],
    );
    let moved =
        json!({"allOf": [the("Trigger"), open_object(&[("evaluation", or_null(the("Evaluation"))), claimed], &[])]});
    let token = token_members();
    let token = object(&token.0, &token.1);
    vec![
        ("Problem", problem),
        ("CloudEvent", events::event(&the("EventData"))),
        ("EventData", events::data()),
        ("PushedEvent", pushed),
        ("OutcomeOfEvent", outcome),
        ("AliasOfAsset", alias),
        ("AssetState", state),
        ("AssetSettings", settings),
        ("Evaluation", evaluation),
        ("Trigger", trigger),
        ("MovedTrigger", moved),
        ("ExplainedTarget", explained),
        ("OperatedTarget", operated),
        ("DeclaredTarget", declared),
        ("Token", token),
        (
            "Withdrawn",
            object(
                &[
                    ("hold", json!({"type": ["object", "null"]})),
                    ("triggers", list(&json!({"type": "object"}))),
                    ("ofOthers", integer()),
                    ("isComplete", boolean()),
                ],
                &[],
            ),
        ),
        (
            "Connection",
            object(
                &[("name", string()), ("url", string()), ("version", string()), ("tokenSecret", string())],
                &[("user", string())],
            ),
        ),
        (
            "Replayed",
            object(
                &[("starts", list(&json!({"type": "object"}))), ("events", integer()), ("isCut", boolean())],
                &[("since", or_null(moment())), ("evaluation", or_null(the("Evaluation")))],
            ),
        ),
    ]
}

type Members = Vec<(&'static str, Value)>;

/// What is shown of a token: always, and sometimes.
pub(super) fn token_members() -> (Members, Members) {
    let always = vec![
        ("id", json!({"type": "string", "pattern": "^[0-9a-f]{16}$"})),
        ("name", string()),
        ("project", or_null(integer())),
        ("rights", json!({"type": "array", "items": the("Right")})),
        ("carried", json!({"enum": ["header", "path", "principal"]})),
        ("signed", boolean()),
        ("standing", json!({"enum": ["good", "expired", "revoked"]})),
        ("createdAt", moment()),
        ("createdBy", string()),
        ("expiresAt", moment()),
    ];
    let sometimes = vec![("principal", string()), ("revokedAt", moment()), ("previousUntil", moment())];
    (always, sometimes)
}

pub(super) fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key", "in": "header", "required": false,
        "description": "The same call under the same key is carried out once, within 24 hours.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
        "example": "8f14e45f-ceea-467f-a5d4-0c1bd1a1c0de",
    })
}

/// A parameter of a path.
///
/// Panics for one that is not described: a new one has to be.
pub(super) fn in_path(name: &str) -> Value {
    let (description, schema, example) = match name {
        "p" => (
            "Code of the DolphinScheduler project",
            json!({"type": "integer", "format": "int64", "minimum": 1}),
            json!(7),
        ),
        "assetKey" => (
            "Key of the asset, percent-encoded once",
            json!({"type": "string", "minLength": 1, "maxLength": 512}),
            json!("paimon://ods_db/orders"),
        ),
        "target" => (
            "Name of the target, or where targets are read or undeclared the code of a workflow",
            json!({"type": "string", "minLength": 1, "maxLength": 64}),
            json!("dwd"),
        ),
        "triggerKey" => (
            "Key of the trigger",
            json!({"type": "string", "pattern": "^[0-9a-f]{1,64}$"}),
            json!("0123456789abcdef0123456789abcdef"),
        ),
        "tokenId" => (
            "Public part of the token",
            json!({"type": "string", "pattern": "^[0-9a-f]{1,16}$"}),
            json!("0123456789abcdef"),
        ),
        "auditId" => (
            "Id of the audit",
            json!({"type": "string", "pattern": "^[0-9a-f]{1,32}$"}),
            json!("0123456789abcdef0123456789abcdef"),
        ),
        "name" => {
            ("Name of the connection", json!({"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$"}), json!("default"))
        }
        "token" => (
            "A token that is made for paths",
            json!({"type": "string", "pattern": "^lakebell_[0-9a-f]{16}_[0-9a-f]{64}$"}),
            json!("lakebell_<id>_<secret>"),
        ),
        "eventId" => {
            ("Id of the event", json!({"type": "string", "minLength": 1, "maxLength": 255}), json!("01JHQ3X0Z4"))
        }
        "queue" => {
            ("Queue that the messages came from", json!({"enum": ["hints", "evaluate", "dispatch"]}), json!("dispatch"))
        }
        "tool" => ("Tool whose result it is", json!({"enum": ["dbt", "gx", "soda"]}), json!("dbt")),
        other => panic!("describe the parameter {other} of paths"),
    };
    json!({"name": name, "in": "path", "required": true, "description": description, "schema": schema, "example": example})
}

/// A parameter of a query.
///
/// Panics for one that is not described: a new one has to be.
pub(super) fn in_query(name: &str) -> Value {
    let text = || json!({"type": "string"});
    let (description, schema) = match name {
        "limit" => ("Most items of the page", json!({"type": "integer", "minimum": 1, "maximum": 200, "default": 50})),
        "after" => ("`next` of the page before", text()),
        "assetKey" => ("Key of the asset", text()),
        "format" => ("Only of this format", json!({"enum": Format::ALL.map(Format::as_str)})),
        "prefix" => ("Only those whose key begins like this, as in paimon://ods_db/", text()),
        "kind" => ("Only events of this kind", json!({"enum": EventKind::ALL.map(EventKind::as_str)})),
        "outcome" => (
            "Only events with this outcome",
            json!({"enum": ["advanced", "maintenance", "duplicate", "superseded", "ignored"]}),
        ),
        "verdict" => ("Only targets with this verdict", json!({"enum": Verdict::ALL.map(Verdict::as_str)})),
        "workflow" => ("Code or name of the workflow", text()),
        "target" => ("Name of the target", text()),
        "status" => (
            "Only triggers with this status",
            json!({"enum": ["TRIGGERING", "UNKNOWN", "SUCCESS", "FAILED", "SKIPPED"]}),
        ),
        "location" => ("Location of the warehouse, as in s3://lake/warehouse", text()),
        "direction" => ("Which way to look", json!({"enum": ["upstream", "downstream", "both"], "default": "both"})),
        "steps" => {
            ("How many steps away at most", json!({"type": "integer", "minimum": 1, "maximum": 8, "default": 8}))
        }
        "source" => ("Source of the event, where it is named by its own id", text()),
        "project" => ("Code of another project", json!({"type": "integer", "minimum": 1})),
        other => panic!("describe the parameter {other} of queries"),
    };
    let required = matches!(name, "location" | "assetKey");
    json!({"name": name, "in": "query", "required": required, "description": description, "schema": schema})
}
