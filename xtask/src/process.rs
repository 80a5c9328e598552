//! Running programs, and servers that outlive this command.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{During, Failure, Outcome};

/// How long a server may take to stop by itself.
const GRACE: Duration = Duration::from_secs(5);

/// Run a program to its end, its output going where ours goes.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = command.status().during(format!("start {}", name(command)))?;
    succeeded(command, status, "")
}

/// Run a program and return what it printed; its errors are shown only if it fails.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output = command.stdin(Stdio::null()).output().during(format!("start {}", name(command)))?;
    succeeded(command, output.status, &String::from_utf8_lossy(&output.stderr))?;
    String::from_utf8(output.stdout).during(format!("read what {} printed", name(command)))
}

fn name(command: &Command) -> String {
    Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn succeeded(command: &Command, status: ExitStatus, printed: &str) -> Outcome {
    if status.success() {
        return Ok(());
    }
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    let separator = if printed.is_empty() { "" } else { "\n" };
    let line = format!("`{} {}` ended with {status}", name(command), arguments.join(" "));
    Err(Failure::new(format!("{line}{separator}{}", printed.trim_end())))
}

/// A server in a process group of its own. Its pid is in a file, so that a later command can stop it.
#[derive(Debug)]
pub(crate) struct Server {
    /// For messages.
    pub(crate) name: &'static str,
    /// What its command line holds, which tells it from a program that got the same pid later.
    pub(crate) mark: &'static str,
    /// The folder of its pid file and log.
    pub(crate) folder: PathBuf,
}

impl Server {
    fn pid_file(&self) -> PathBuf {
        self.folder.join(format!("{}.pid", self.name))
    }

    /// Where it prints to.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.name))
    }

    /// What it has printed.
    pub(crate) fn printed(&self) -> String {
        fs::read(self.log()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Start it in the background, and return its pid.
    pub(crate) fn start(&self, command: &mut Command) -> Outcome<u32> {
        fs::create_dir_all(&self.folder).during(format!("make {}", self.folder.display()))?;
        let log = File::create(self.log()).during(format!("write {}", self.log().display()))?;
        let errors = log.try_clone().during("share the log")?;
        command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
        let mut child = command.spawn().during(format!("start {}", self.name))?;
        let pid = child.id();
        fs::write(self.pid_file(), pid.to_string()).during(format!("write {}", self.pid_file().display()))?;
        // For a moment after the start the command line may read as empty.
        let begun = Instant::now();
        while self.pid().is_none() && matches!(child.try_wait(), Ok(None)) && begun.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(pid)
    }

    /// Wait until `ready` gives something. Ends early if the server does.
    pub(crate) fn wait<T>(&self, limit: Duration, mut ready: impl FnMut() -> Option<T>) -> Outcome<T> {
        let begun = Instant::now();
        loop {
            if let Some(value) = ready() {
                return Ok(value);
            }
            let complaint = if self.pid().is_none() {
                "ended at once"
            } else if begun.elapsed() > limit {
                "does not answer"
            } else {
                thread::sleep(Duration::from_millis(25));
                continue;
            };
            let printed = self.printed();
            let last: Vec<_> = printed.lines().rev().take(15).collect();
            let last: Vec<_> = last.into_iter().rev().collect();
            return Err(Failure::new(format!("{} {complaint}; it printed:\n{}", self.name, last.join("\n"))));
        }
    }

    /// Its pid, while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        let pid = fs::read_to_string(self.pid_file()).ok()?.trim().parse().ok()?;
        command_line(pid)?.contains(self.mark).then_some(pid)
    }

    /// Stop it and all that it started. Says whether it was running.
    pub(crate) fn stop(&self) -> Outcome<bool> {
        let Some(pid) = self.pid() else {
            let _ = fs::remove_file(self.pid_file());
            return Ok(false);
        };
        signal("TERM", pid)?;
        let begun = Instant::now();
        while self.pid().is_some() {
            if begun.elapsed() > GRACE {
                signal("KILL", pid)?;
            }
            if begun.elapsed() > 2 * GRACE {
                return Err(Failure::new(format!("{} (pid {pid}) does not end; `kill -9 {pid}` by hand", self.name)));
            }
            thread::sleep(Duration::from_millis(25));
        }
        // What it started may outlive it by a moment; the group is ours alone.
        let _ = signal("KILL", pid);
        fs::remove_file(self.pid_file()).during(format!("remove {}", self.pid_file().display()))?;
        Ok(true)
    }
}

/// Signal a process group. The shell's own `kill` is everywhere; a program of that name is not.
fn signal(signal: &str, group: u32) -> Outcome {
    output(Command::new("sh").args(["-c", &format!("kill -{signal} -{group}")])).map(|_| ())
}

fn command_line(pid: u32) -> Option<String> {
    if Path::new("/proc/self").exists() {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        return Some(String::from_utf8_lossy(&line).replace('\0', " "));
    }
    output(Command::new("ps").args(["-o", "command=", "-p", &pid.to_string()])).ok()
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs;
    use std::process::{self, Command};
    use std::time::{Duration, Instant};

    use super::{GRACE, Server, command_line, output};

    fn server(test: &str) -> Server {
        let folder = env::temp_dir().join(format!("lakebell-xtask-{test}-{}", process::id()));
        Server { name: "server", mark: "sleep 321", folder }
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_server_is_stopped_with_all_that_it_started() {
        let server = server("stop");
        let pid = server.start(&mut shell("sleep 321 & echo $!; wait")).unwrap();
        assert_eq!(server.pid(), Some(pid));
        let sleeps = |pid: u32| command_line(pid).is_some_and(|line| line.contains("sleep 321"));
        let started = || server.printed().split_once('\n')?.0.parse().ok().filter(|child| sleeps(*child));
        let child = server.wait(Duration::from_secs(10), started).unwrap();
        assert!(server.stop().unwrap());
        assert_eq!(server.pid(), None);
        // A kill takes effect a moment after it is sent.
        let begun = Instant::now();
        while sleeps(child) {
            assert!(begun.elapsed() < GRACE, "{child} outlives its server");
        }
        assert!(!server.stop().unwrap(), "a second stop has nothing to do");
        fs::remove_dir_all(&server.folder).unwrap();
    }

    #[test]
    fn a_program_that_got_the_pid_later_is_left_alone() {
        let server = server("other");
        fs::create_dir_all(&server.folder).unwrap();
        fs::write(server.pid_file(), process::id().to_string()).unwrap();
        assert_eq!(server.pid(), None);
        assert!(!server.stop().unwrap());
        fs::remove_dir_all(&server.folder).unwrap();
    }

    #[test]
    fn a_server_that_ends_early_is_reported_with_what_it_printed() {
        let server = server("early");
        server.start(&mut shell("echo port is taken; exit 3; sleep 321")).unwrap();
        let failure = server.wait(Duration::from_secs(10), || None::<()>).unwrap_err().to_string();
        assert!(failure.contains("ended at once") && failure.contains("port is taken"), "{failure}");
        fs::remove_dir_all(&server.folder).unwrap();
    }

    #[test]
    fn a_failed_program_is_reported_with_its_errors() {
        let failure = output(&mut shell("echo why >&2; exit 4")).unwrap_err().to_string();
        assert!(failure.contains("exit status: 4") && failure.contains("why"), "{failure}");
    }
}
