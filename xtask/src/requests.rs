//! Requests that schemathesis makes up from `schema/openapi.json`, sent to the deployed API: no answer may be a failure of
//! the server, and each must be one that the document tells of.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::failure::{During, Outcome};
use crate::local::Local;
use crate::process;
use crate::venv::Venv;
use crate::workspace::Workspace;

/// What is checked of each answer. That wrong input is refused is left to the tests of the API: the document cannot tell
/// everything that is wrong about a key or a condition.
const CHECKS: [&str; 7] = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
];
/// Made-up requests for each operation, beside the examples and the systematic ones.
const EXAMPLES: &str = "4";
/// Operations that are left out: the switch of everything would be felt by whatever runs beside this, a path with a made-up token is
/// refused whatever is sent, and draining looks for messages for a second at least, each time.
const LEFT_OUT: [&str; 3] = ["setGlobalSwitch", "pushEventsByPath", "drainDeadLetters"];

/// The environment with schemathesis.
pub(crate) fn environment(workspace: &Workspace) -> Outcome<Venv> {
    Venv::ensure(workspace, "venv-schemathesis", "localstack/requirements-schemathesis.txt")
}

/// Sends the requests: the same ones each time.
pub(crate) fn send(workspace: &Workspace, venv: &Venv, local: &Local) -> Outcome {
    let document = without_keys(workspace)?;
    let mut command = Command::new(venv.program("schemathesis"));
    command.arg("run").arg(document);
    command.args(["--url", &local.api_url, "--header", &format!("Authorization: Bearer {}", local.api_token)]);
    command.args(["--checks", &CHECKS.join(","), "--phases", "examples,coverage,fuzzing"]);
    command.args(["--max-examples", EXAMPLES, "--generation-deterministic", "--no-shrink"]);
    // One worker: with more, hypothesis parses sources side by side, which CPython 3.11 cannot.
    command.args(["--workers", "1", "--suppress-health-check", "all"]);
    command.args(["--request-timeout", "31", "--warnings", "off", "--no-color"]);
    for operation in LEFT_OUT {
        command.args(["--exclude-operation-id", operation]);
    }
    process::run(command.current_dir(workspace.state("")))
}

/// The document without idempotency keys: all but the first request under a key would only be told that it was used.
fn without_keys(workspace: &Workspace) -> Outcome<PathBuf> {
    let text = fs::read_to_string(workspace.path("schema/openapi.json")).during("read schema/openapi.json")?;
    let mut document: Value = serde_json::from_str(&text).during("read schema/openapi.json")?;
    for methods in document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut()) {
        for operation in methods.as_object_mut().into_iter().flat_map(|methods| methods.values_mut()) {
            if let Some(parameters) = operation["parameters"].as_array_mut() {
                parameters.retain(|parameter| parameter["$ref"] != "#/components/parameters/IdempotencyKey");
            }
        }
    }
    let path = workspace.state("openapi.json");
    fs::write(&path, document.to_string()).during(format!("write {}", path.display()))?;
    Ok(path)
}
