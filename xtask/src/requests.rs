//! Requests that schemathesis makes up from `schema/openapi.json`, sent to the deployed API: no answer may be a failure of
//! the server, and each must be one that the document tells of.

use std::process::Command;

use crate::failure::Outcome;
use crate::local::Local;
use crate::process;
use crate::venv::Venv;
use crate::workspace::Workspace;

/// What is checked of each answer. That wrong input is refused is left to the tests of the API: the document cannot tell
/// everything that is wrong about a key or a condition.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method,allow_header_conformance";
/// One seed, so that a failure in CI is one at the desk.
const SEED: &str = "20260115";
/// Made-up requests for each operation, beside the examples and the systematic ones.
const EXAMPLES: &str = "6";

/// The environment with schemathesis.
pub(crate) fn environment(workspace: &Workspace) -> Outcome<Venv> {
    Venv::ensure(workspace, "venv-schemathesis", "localstack/requirements-schemathesis.txt")
}

/// Sends the requests.
pub(crate) fn send(workspace: &Workspace, venv: &Venv, local: &Local) -> Outcome {
    let mut command = Command::new(venv.program("schemathesis"));
    command.arg("run").arg(workspace.path("schema/openapi.json"));
    command.args(["--url", &local.api_url, "--header", &format!("Authorization: Bearer {}", local.api_token)]);
    command.args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing"]);
    command.args(["--seed", SEED, "--max-examples", EXAMPLES, "--generation-deterministic"]);
    command.args(["--generation-database", "none", "--suppress-health-check", "all", "--no-shrink"]);
    command.args(["--workers", "4", "--request-timeout", "31", "--warnings", "off", "--no-color"]);
    // Switching everything off, or the emulator's secrets away, would be felt by whatever runs beside it.
    command.args(["--exclude-operation-id", "setGlobalSwitch"]);
    process::run(command.current_dir(workspace.state("")))
}
