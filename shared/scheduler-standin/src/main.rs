//! `lakebell-scheduler-standin`: a stand-in for DolphinScheduler's API, for tests and the local
//! demo. It is not DolphinScheduler.
//!
//! Prints its base URL as the first line and runs until it is interrupted or terminated.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use lakebell_scheduler_standin::{Config, Delay, Profile, Settings, Standin};

/// A stand-in for DolphinScheduler's REST API (not DolphinScheduler), on 127.0.0.1 only.
#[derive(Debug, Parser)]
#[command(name = "lakebell-scheduler-standin", version)]
struct Arguments {
    /// TCP port; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The release to stand in for: 3.1, 3.2, 3.3, 3.3-dev or 3.4.
    #[arg(long, default_value_t = Profile::V3_3)]
    profile: Profile,
    /// The value of the `token` header that calls must carry.
    #[arg(long, env = "LAKEBELL_STANDIN_TOKEN", hide_env_values = true)]
    token: String,
    /// A JSON file that keeps the state over restarts.
    #[arg(long)]
    state_file: Option<PathBuf>,
    /// Milliseconds from an accepted start to its instance (from 3.3 on: to its parameters).
    #[arg(long, default_value_t = 200)]
    consume_ms: u64,
    /// Milliseconds that an instance without a command line runs.
    #[arg(long, default_value_t = 200)]
    finish_ms: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("error: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprint!(": {cause}");
                source = cause.source();
            }
            eprintln!();
            ExitCode::FAILURE
        }
    }
}

async fn serve(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let settings = Settings {
        consume: Delay::AfterMs(arguments.consume_ms),
        finish: Delay::AfterMs(arguments.finish_ms),
        ..Settings::default()
    };
    let running = Standin::start(Config {
        profile: arguments.profile,
        token: arguments.token,
        port: arguments.port,
        state_file: arguments.state_file,
        settings,
    })
    .await?;
    println!("{}", running.base_url());
    // Whoever started this may read one line and close the pipe, so the rest goes elsewhere and may fail.
    let notice = format!("stand-in for DolphinScheduler {} (not DolphinScheduler)", arguments.profile);
    let _ = writeln!(std::io::stderr(), "{notice}, control routes at {}", running.control_url());
    interrupted().await?;
    running.stop();
    Ok(())
}

#[cfg(unix)]
async fn interrupted() -> std::io::Result<()> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result,
        _ = terminated.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn interrupted() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
