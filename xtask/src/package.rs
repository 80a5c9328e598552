//! The functions' zips.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::failure::{During, Failure, Outcome};
use crate::process;
use crate::progress::Progress;
use crate::venv;
use crate::workspace::Workspace;

/// The functions: packages and binaries of these names.
pub(crate) const FUNCTIONS: [&str; 4] =
    ["lakebell-commit-watcher", "lakebell-compensator", "lakebell-dispatcher", "lakebell-push-api"];

/// The function that needs optimisation over all crates at once to stay below the limit: 209 kB less, for a
/// minute more of linking.
const LARGE: &str = "lakebell-push-api";

/// A cold start pays for every byte, so a function may not grow beyond this.
const LARGEST: u64 = 5_000_000;

/// Build the functions with plain cargo for this machine, zip each as `bootstrap`, and return the folder of the zips.
pub(crate) fn package(workspace: &Workspace, progress: &Progress) -> Outcome<PathBuf> {
    progress.step("building the functions (release)", || {
        // The linker script is for the functions' own link alone, so that everything below them is built once.
        let script = format!("link-arg=-Wl,-T,{}", workspace.path("xtask/function.ld").display());
        // Functions that came out the same, of types that differ only by name, are kept once.
        let folding = "link-arg=-Wl,--icf=all";
        for function in FUNCTIONS {
            let mut cargo = workspace.cargo();
            cargo.args(["rustc", "--release", "--locked", "--package", function, "--bin", function]);
            cargo.args(["--", "-C", &script, "-C", folding]);
            if function == LARGE {
                cargo.args(["-C", "lto=fat"]);
            }
            process::run(&mut cargo)?;
        }
        Ok(())
    })?;
    let folder = workspace.target("lakebell");
    fs::create_dir_all(&folder).during(format!("make {}", folder.display()))?;
    let python = venv::python()?;
    let mut too_large = Vec::new();
    for function in FUNCTIONS {
        let binary = workspace.target("release").join(function);
        let zip = folder.join(format!("{function}.zip"));
        let script = workspace.path("localstack/zip_bootstrap.py");
        process::output(Command::new(&python).arg(script).arg(&binary).arg(&zip))?;
        let size =
            |path: &PathBuf| fs::metadata(path).map(|data| data.len()).during(format!("read {}", path.display()));
        let zipped = size(&zip)?;
        progress.say(&format!(
            "{}: {} kB ({} kB unzipped)",
            workspace.shown(&zip),
            zipped.div_ceil(1000),
            size(&binary)?.div_ceil(1000)
        ));
        if zipped > LARGEST {
            too_large.push(format!("{function} ({zipped} bytes)"));
        }
    }
    if too_large.is_empty() {
        return Ok(folder);
    }
    Err(Failure::new(format!(
        "larger than {LARGEST} bytes: {}; `cargo tree -e features` shows why",
        too_large.join(", ")
    )))
}
