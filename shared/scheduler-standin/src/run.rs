//! "Running" a workflow by a command line.

use std::process::Stdio;

use crate::world::Instance;

/// How much of the outputs is kept.
const LOG_KEPT: usize = 4096;

/// How a command line ended.
pub(crate) struct Ended {
    pub(crate) exit_code: Option<i32>,
    pub(crate) log: String,
}

/// Runs a command line with the instance's parameters as environment variables: the name in upper
/// case with everything else than letters, digits and `_` as `_`, and `LAKEBELL_INSTANCE_ID` and
/// `SYSTEM_BIZ_DATE`.
pub(crate) async fn run(command: &[String], working_dir: Option<&str>, instance: &Instance) -> Ended {
    let Some((program, arguments)) = command.split_first() else {
        return Ended { exit_code: None, log: "the definition has no command line".to_owned() };
    };
    let mut process = tokio::process::Command::new(program);
    process.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    process.env("LAKEBELL_INSTANCE_ID", instance.id.to_string());
    process.env("SYSTEM_BIZ_DATE", instance.business_date());
    for (name, value) in &instance.params {
        if !name.is_empty() && !value.contains('\0') {
            process.env(variable(name), value);
        }
    }
    if let Some(folder) = working_dir {
        process.current_dir(folder);
    }
    match process.output().await {
        Ok(output) => Ended { exit_code: output.status.code(), log: tail(&[output.stdout, output.stderr].concat()) },
        Err(error) => Ended { exit_code: None, log: format!("cannot run `{program}`: {error}") },
    }
}

fn variable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LOG_KEPT)..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_names_become_variable_names() {
        assert_eq!(variable("lakebell_trigger_key"), "LAKEBELL_TRIGGER_KEY");
        assert_eq!(variable("a.b-c=d"), "A_B_C_D");
    }
}
