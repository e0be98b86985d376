//! Options for the endpoints of servers: their processes and connectors.

use std::path::PathBuf;
use std::sync::Arc;

use innkeeper_config::Environment;
use innkeeper_process::Supervisor;
use innkeeper_process::ledger::Ledger;

use super::HostBuilder;
use crate::server::connector::Connectors;
use crate::server::endpoint_opener::{EndpointOpener, SystemOpener};
use crate::tasks;
use crate::text::display_safe;

/// How the host opens the endpoints of its servers.
#[derive(Debug, Default)]
pub(crate) struct EndpointOptions {
    pub(super) supervisor: Option<Supervisor>,
    ledger: Option<PathBuf>,
    environment: Option<Environment>,
    /// Files and directories that no sandbox may write.
    protected: Vec<PathBuf>,
    pub(super) connectors: Connectors,
    /// Default: the processes and the network of the system.
    pub(crate) opener: Option<Arc<dyn EndpointOpener>>,
}

impl EndpointOptions {
    /// Returns the supervisor, and what starts the servers.
    pub(super) async fn open(self) -> (Supervisor, Arc<dyn EndpointOpener>) {
        let ledger = match self.ledger {
            Some(directory) => open_ledger(directory).await,
            None => None,
        };
        let supervisor = self.supervisor.unwrap_or_else(Supervisor::available);
        let opener = self
            .opener
            .unwrap_or_else(|| Arc::new(SystemOpener { supervisor: supervisor.clone(), ledger }));
        (supervisor, opener)
    }
}

impl HostBuilder {
    /// Returns the environment that servers inherit from.
    pub(super) fn inherited_environment(&self) -> &Environment {
        self.endpoints.environment.as_ref().unwrap_or(&self.config.environment)
    }

    /// Sets the supervisor of the process trees. Default: [`Supervisor::available`], the program
    /// that the library contains. On systems where the library contains none, `innkeeper-shim` in
    /// the directory of the running program if the file exists, else process groups, which daemons
    /// of a server can leave.
    #[must_use]
    pub fn supervisor(mut self, supervisor: Supervisor) -> Self {
        self.endpoints.supervisor = Some(supervisor);
        self
    }

    /// Sets the directory of the ledger of running servers. The next host with the same directory
    /// terminates the processes that a killed host left. Default: no ledger.
    #[must_use]
    pub fn ledger(mut self, directory: impl Into<PathBuf>) -> Self {
        self.endpoints.ledger = Some(directory.into());
        self
    }

    /// Names files and directories of the application that no sandbox may write, whether they exist or
    /// not: a server whose `write` contains one of them, or a part of one, does not start. The files of the
    /// configuration, the lock, the [ledger](Self::ledger) and the [tokens](Self::token_directory) are
    /// protected without a call. Default: no others.
    #[must_use]
    pub fn protect(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.endpoints.protected.extend(paths);
        self
    }

    /// Returns all files and directories that no sandbox may write, but for the configuration's own.
    pub(super) fn protected(&self) -> Vec<PathBuf> {
        let own = self.endpoints.ledger.iter().chain(&self.sign_in.token_directory);
        self.endpoints.protected.iter().chain(own).cloned().collect()
    }

    /// Sets the environment that servers inherit from. Default: the environment that the
    /// configuration was loaded with.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.endpoints.environment = Some(environment);
        self
    }
}

/// Opens the ledger. Without a ledger, the host cannot sweep after a crash, but can start.
async fn open_ledger(directory: PathBuf) -> Option<Ledger> {
    let at = directory.clone();
    // The panic hook reports a panic.
    match tasks::run_blocking(move || Ledger::open(&at)).await? {
        Ok((ledger, swept)) => {
            if swept.killed > 0 {
                tracing::warn!(ended = swept.killed, "processes of a killed host terminated");
            }
            Some(ledger)
        }
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            let directory = display_safe(&directory.to_string_lossy()).into_owned();
            let said = "cannot open the ledger of running servers";
            tracing::error!(severity = "critical", error, directory, "{said}");
            None
        }
    }
}
