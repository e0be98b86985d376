//! Applies a changed configuration to a running gateway: after SIGHUP, and after a change of its files.
//!
//! Servers that all clients share are added, removed and restarted; the others keep their processes.
//! Private servers and the settings of the gateway itself take effect at the next start, and the user
//! is told so.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_gateway::Gateway;
use innkeeper_host::config::{ConfigWatcher, Share};
use innkeeper_host::{Config, Environment, Host, ReloadError, ReloadOptions, ReloadReport};
use serde_json::json;
use tokio::sync::{SetOnce, mpsc};

use super::hangup::Hangups;
use super::share_without_replicas;
use crate::attach::AttachListener;
use crate::cli::ServeArgs;
use crate::configuration::{ConfigSource, configuration_digest, select_source};
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::hosting::{failed_servers, ready_servers};
use crate::output::{Output, Style};
use crate::secret_mask::SecretMask;
use crate::trust;

/// Why the configuration is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Signal,
    File,
}

/// A configuration in the form of the command.
struct Loaded {
    config: Config,
    /// The name of the socket for other commands with the same files.
    digest: Option<String>,
}

/// Reads the configuration in the form of the command.
struct ConfigLoader {
    source: ConfigSource,
    environment: Environment,
    timeout: Option<Duration>,
    is_strict: bool,
    /// The only server of `--server`.
    server: Option<String>,
    has_replicas: bool,
}

/// What a reload needs of the command.
pub(super) struct Reloading {
    loader: ConfigLoader,
    on_stdio: bool,
    /// The file whose servers need the approval of the user.
    file_to_approve: Option<PathBuf>,
    watcher: Option<ConfigWatcher>,
    hangups: Hangups,
    mask: SecretMask,
    /// The configuration in effect, with all servers.
    current: Config,
    /// Why the configuration was not read the last time.
    reported_problems: Vec<String>,
    /// The digest of the socket for other commands, and where its listener goes; `None` without one.
    attach: Option<(String, mpsc::Sender<Option<AttachListener>>)>,
}

impl ConfigLoader {
    /// # Errors
    ///
    /// Returns the problems of the configuration.
    fn load(&self) -> Result<Loaded, Vec<String>> {
        let loaded = match self.is_strict {
            true => self.source.load(&self.environment),
            false => self.source.load_partial(&self.environment),
        };
        let mut config =
            loaded.map_err(|error| error.0.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        if let Some(server) = &self.server {
            config = config.select(&[server.as_str()]).map_err(|error| vec![error.to_string()])?;
        }
        if let Some(timeout) = self.timeout {
            config.servers.values_mut().for_each(|server| server.calls.timeout = timeout);
        }
        // The digest of other commands with the same files.
        let digest = configuration_digest(&self.source, &config);
        if !self.has_replicas {
            share_without_replicas(&mut config);
        }
        Ok(Loaded { config, digest })
    }
}

impl Reloading {
    /// Prepares reloads. From now on, SIGHUP does not end the process.
    pub(super) fn new(
        context: &mut CommandContext,
        config: &Config,
        file_to_approve: Option<&Path>,
        args: &ServeArgs,
        has_replicas: bool,
    ) -> Result<Self, CliError> {
        let source = select_source(context)?;
        let hangups = Hangups::listen()
            .map_err(|error| CliError::failure("cannot listen for SIGHUP").with_source(error))?;
        let watcher = match args.no_watch || source.files().is_empty() {
            true => None,
            false => match ConfigWatcher::new(config) {
                Ok(watcher) => Some(watcher),
                Err(error) => {
                    let text = format!("the configuration is not watched: {error}");
                    context.output.labelled_status(Style::Note, "note", &text)?;
                    None
                }
            },
        };
        Ok(Self {
            loader: ConfigLoader {
                source,
                environment: context.environment.clone(),
                timeout: context.global.timeout,
                is_strict: context.global.strict,
                server: args.stdio.server.clone(),
                has_replicas,
            },
            on_stdio: args.stdio.on_stdio,
            file_to_approve: file_to_approve.map(ToOwned::to_owned),
            watcher,
            hangups,
            mask: context.output.secret_mask().clone(),
            current: config.clone(),
            reported_problems: Vec::new(),
            attach: None,
        })
    }

    /// Replaces the socket for other commands after each reload, because its name is a digest of the
    /// configuration.
    pub(super) fn set_attach(
        &mut self,
        digest: String,
        listeners: mpsc::Sender<Option<AttachListener>>,
    ) {
        self.attach = Some((digest, listeners));
    }

    /// Reloads until `stop` is set. The end of the terminal sets `stop`.
    pub(super) async fn run(
        mut self,
        gateway: &Gateway,
        host: &Host,
        stop: &SetOnce<()>,
        output: &mut Output,
    ) -> io::Result<()> {
        loop {
            let Self { watcher, hangups, .. } = &mut self;
            let watched = async {
                match watcher {
                    Some(watcher) => watcher.changed().await,
                    None => std::future::pending().await,
                }
            };
            let cause = tokio::select! {
                biased;
                _ = stop.wait() => return Ok(()),
                () = hangups.next() => Cause::Signal,
                () = watched => Cause::File,
            };
            if cause == Cause::Signal && self.hangups.has_lost_terminal() {
                tracing::info!("the terminal closed");
                // A signal may have set it.
                stop.set(()).ok();
                return Ok(());
            }
            tokio::select! {
                biased;
                _ = stop.wait() => return Ok(()),
                applied = self.apply(gateway, host, cause, output) => applied?,
            }
        }
    }

    async fn apply(
        &mut self,
        gateway: &Gateway,
        host: &Host,
        cause: Cause,
        output: &mut Output,
    ) -> io::Result<()> {
        let Loaded { config, digest } = match self.loader.load() {
            Ok(loaded) => loaded,
            Err(problems) => {
                // A signal often follows the change of a file.
                if cause == Cause::Signal || problems != self.reported_problems {
                    for problem in &problems {
                        let text = format!("configuration not reloaded: {problem}");
                        output.labelled_status(Style::Note, "warning", &text)?;
                    }
                }
                self.reported_problems = problems;
                return Ok(());
            }
        };
        self.reported_problems.clear();
        let file = self.file_to_approve.as_deref();
        let trust = file.map(|file| trust::stored_policy(&self.loader.environment, file));
        self.mask.add_config(&config);
        let shared = match self.on_stdio {
            true => config.clone(),
            false => config.shared_by(Share::Process),
        };
        gateway.reload(&config);
        let options = ReloadOptions {
            config: Some(shared.with_optional_servers()),
            apply_changes: true,
            trust,
        };
        match host.reload_with(options).await {
            Ok(report) => {
                self.print_changes(host, &config, &report, cause, output)?;
                self.current = config;
                self.renew_socket(digest).await;
            }
            Err(ReloadError::Shutdown) => {}
            Err(error) => {
                gateway.reload(&self.current);
                let text = format!("configuration not reloaded: {error}");
                output.labelled_status(Style::Note, "warning", &text)?;
            }
        }
        Ok(())
    }

    /// Says what a reload changed, and what waits for the next start.
    fn print_changes(
        &self,
        host: &Host,
        config: &Config,
        report: &ReloadReport,
        cause: Cause,
        output: &mut Output,
    ) -> io::Result<()> {
        let changes = [
            ("added", list_names(&report.added)),
            ("removed", list_names(&report.removed)),
            ("changed", list_names(report.changed.iter().map(|change| &change.server))),
        ];
        let changes = changes.iter().filter(|(_, names)| !names.is_empty());
        let changes: Vec<_> = changes.map(|(what, names)| format!("{what} {names}")).collect();
        if !changes.is_empty() {
            let count = ready_servers(host);
            output.status(&format!("reloaded: {}; {count} ready", changes.join(", ")))?;
        } else if cause == Cause::Signal {
            output.status("reloaded: no server has changed")?;
        }
        for failed in failed_servers(host) {
            if report.failed.iter().any(|failure| failure.server == failed.name) {
                output.labelled_status(Style::Strong, &failed.name, &failed.reason)?;
            }
        }
        for name in &report.not_trusted {
            let text = format!("server `{name}` is not trusted, so it keeps its earlier settings");
            output.labelled_status(Style::Note, "warning", &text)?;
            let hint = "start `innkeeper serve` again in a terminal to approve it";
            output.labelled_status(Style::Hint, "    hint", hint)?;
        }
        for what in self.waiting(config, report) {
            let text = format!("changes of {what} take effect when `innkeeper serve` starts again");
            output.labelled_status(Style::Note, "note", &text)?;
        }
        Ok(())
    }

    /// Returns what a reload does not change.
    fn waiting(&self, config: &Config, report: &ReloadReport) -> Vec<String> {
        let mut waiting = Vec::new();
        if json!(self.current.serve) != json!(config.serve) {
            waiting.push("`serve`".to_owned());
        }
        waiting.extend(report.host_keys.iter().map(|key| format!("`host.{key}`")));
        let before = &self.current.servers;
        let mut names: Vec<&String> = before.keys().chain(config.servers.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names.into_iter().filter(|_| !self.on_stdio) {
            let both = [before.get(name), config.servers.get(name)];
            let is_private =
                both.iter().flatten().any(|server| server.lifecycle.share != Share::Process);
            if is_private && json!(both[0]) != json!(both[1]) {
                waiting.push(format!("the server `{name}`, which has `share`,"));
            }
        }
        waiting
    }

    /// Other commands with the changed configuration find the gateway again.
    async fn renew_socket(&mut self, loaded: Option<String>) {
        let Some((digest, listeners)) = &mut self.attach else { return };
        let Some(loaded) = loaded.filter(|loaded| loaded != digest) else { return };
        *digest = loaded;
        let listener = match AttachListener::bind(&self.loader.environment, digest).await {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!(%error, "other commands cannot use these servers");
                None
            }
        };
        // The receiver ends with the gateway.
        listeners.send(listener).await.ok();
    }
}

fn list_names<'n>(names: impl IntoIterator<Item = &'n Arc<str>>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
