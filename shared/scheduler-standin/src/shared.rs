//! The one state behind all calls, and the work that goes on behind them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::run;
use crate::world::{Delay, World};

/// What every handler holds.
pub(crate) type App = Arc<Shared>;

/// State, its change signal, and the tasks that stop with the server.
pub(crate) struct Shared {
    world: Mutex<World>,
    changed: watch::Sender<u64>,
    tasks: Mutex<JoinSet<()>>,
    pub(crate) token: String,
}

impl Shared {
    pub(crate) fn new(world: World, token: String) -> App {
        Arc::new(Self {
            world: Mutex::new(world),
            changed: watch::Sender::new(0),
            tasks: Mutex::new(JoinSet::new()),
            token,
        })
    }

    /// Reads the state.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        look(&lock(&self.world))
    }

    /// Changes the state and tells those who wait for a change.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let result = change(&mut lock(&self.world));
        self.changed.send_modify(|generation| *generation += 1);
        result
    }

    /// A receiver that wakes at every change.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Runs something until it ends or the server stops.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Ends everything that [`Self::spawn`] began.
    pub(crate) fn stop(&self) {
        lock(&self.tasks).abort_all();
    }

    /// Consumes a command when the settings say so.
    pub(crate) fn schedule(self: &Arc<Self>, command: i64) {
        match self.read(|world| world.settings.consume) {
            Delay::AfterMs(0) => self.consume(command),
            Delay::AfterMs(ms) => {
                let app = Arc::clone(self);
                self.spawn(async move {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    app.consume(command);
                });
            }
            Delay::Word(_) => {}
        }
    }

    /// Consumes a command now, if a master is alive, and lets its instances run.
    pub(crate) fn consume(self: &Arc<Self>, command: i64) {
        for instance in self.change(|world| world.consume(command)) {
            self.begin(instance);
        }
    }

    /// Lets an instance run: its command line if it has one, else until the settings end it.
    pub(crate) fn begin(self: &Arc<Self>, id: i64) {
        let (instance, definition, finish) = self.read(|world| {
            let instance = world.instances.get(&id).cloned();
            let definition = instance.as_ref().and_then(|found| world.definitions.get(&found.definition).cloned());
            (instance, definition, world.settings.finish)
        });
        let Some(instance) = instance else { return };
        let app = Arc::clone(self);
        if let Some(definition) = definition.filter(|definition| !definition.command.is_empty()) {
            self.spawn(async move {
                let ended = run::run(&definition.command, definition.working_dir.as_deref(), &instance).await;
                app.change(|world| {
                    let Some(found) = world.instances.get_mut(&id) else { return };
                    found.exit_code = ended.exit_code;
                    found.log = ended.log;
                    if !found.has_ended() && found.run_times == instance.run_times {
                        world.set_state(id, if ended.exit_code == Some(0) { "SUCCESS" } else { "FAILURE" });
                    }
                });
            });
            return;
        }
        match finish {
            Delay::AfterMs(0) => self.finish(id, instance.run_times),
            Delay::AfterMs(ms) => self.spawn(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                app.finish(id, instance.run_times);
            }),
            Delay::Word(_) => {}
        }
    }

    fn finish(&self, id: i64, run_times: u32) {
        self.change(|world| {
            let still_runs =
                world.instances.get(&id).is_some_and(|found| !found.has_ended() && found.run_times == run_times);
            if still_runs {
                world.set_state(id, "SUCCESS");
            }
        });
    }

    /// Takes up what a state file left: commands wait again, instances that ran have failed.
    pub(crate) fn resume(self: &Arc<Self>) {
        let commands = self.change(|world| {
            let ran: Vec<i64> = world
                .instances
                .values()
                .filter(|found| !found.has_ended() && found.command_param.is_some())
                .map(|found| found.id)
                .collect();
            for id in ran {
                world.set_state(id, "FAILURE");
            }
            world.commands.iter().map(|command| command.id).collect::<Vec<_>>()
        });
        for command in commands {
            self.schedule(command);
        }
    }

    /// Keeps a file with the newest state, replaced as a whole after each burst of changes.
    pub(crate) fn keep_file(self: &Arc<Self>, file: PathBuf) {
        let app = Arc::clone(self);
        let mut changes = self.watch();
        self.spawn(async move {
            loop {
                if let Err(error) = app.write(&file) {
                    eprintln!("cannot write the state file: {error}");
                }
                if changes.changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn write(&self, file: &Path) -> std::io::Result<()> {
        let text = self.read(serde_json::to_vec_pretty)?;
        let temporary = file.with_extension("tmp");
        std::fs::write(&temporary, text)?;
        std::fs::rename(&temporary, file)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
