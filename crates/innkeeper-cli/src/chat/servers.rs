//! The commands that change the servers of a conversation: `/disable`, `/enable` and `/reload`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use innkeeper_agent::tools::HiddenServers;
use innkeeper_host::config::ToolFilter;
use innkeeper_host::{
    Config, Environment, Host, ReloadError, ReloadOptions, ReloadReport, TrustDecisions,
    TrustPolicy,
};

use super::question::ChatApprover;
use crate::configuration::{ConfigSource, config_error};
use crate::exit::CliError;
use crate::output::escape_inline;
use crate::secret_mask::SecretMask;

/// Reads the configuration of a chat again.
#[derive(Clone, Debug)]
pub(crate) struct ServerReloader {
    pub(crate) source: ConfigSource,
    pub(crate) environment: Environment,
    /// Whether an entry with errors makes the whole configuration invalid.
    pub(crate) is_strict: bool,
    /// The value of `--timeout`.
    pub(crate) timeout: Option<Duration>,
    /// The file whose servers need the approval of the user.
    pub(crate) file_to_approve: Option<PathBuf>,
    /// The directory of the stored approvals.
    pub(crate) trust_directory: Option<PathBuf>,
    pub(crate) secret_mask: SecretMask,
}

impl ServerReloader {
    fn load(&self) -> Result<Config, CliError> {
        if self.source.files().is_empty() {
            return Err(reload_error(ReloadError::NoFiles));
        }
        let loaded = match self.is_strict {
            true => self.source.load(&self.environment),
            false => self.source.load_partial(&self.environment),
        };
        let mut config = loaded.map_err(|error| config_error(&error))?.with_optional_servers();
        if let Some(timeout) = self.timeout {
            config.servers.values_mut().for_each(|server| server.calls.timeout = timeout);
        }
        self.secret_mask.add_config(&config);
        Ok(config)
    }

    /// Returns the decision about added and changed servers: those of a file that was found need a
    /// stored approval.
    fn trust_policy(&self) -> TrustPolicy {
        let Some(file) = &self.file_to_approve else { return TrustPolicy::AllowAll };
        let directory = self.trust_directory.as_deref();
        let decisions = directory.and_then(|directory| TrustDecisions::open(directory, file).ok());
        TrustPolicy::from_fn(move |launch| {
            decisions
                .as_ref()
                .is_some_and(|decisions| decisions.undecided(vec![launch.clone()]).is_empty())
        })
    }

    /// Applies the present content of the files, and returns what changed.
    pub(crate) async fn reload(
        &self,
        host: &Host,
        approver: &ChatApprover,
    ) -> Result<String, CliError> {
        let config = self.load()?;
        let mut filters = approval_filters(&config, self.file_to_approve.is_none());
        let trust = Some(self.trust_policy());
        let options = ReloadOptions { config: Some(config), apply_changes: true, trust };
        let report = host.reload_with(options).await.map_err(reload_error)?;
        for server in &report.not_trusted {
            filters.remove(&**server);
        }
        approver.update_filters(filters);
        Ok(report_text(&report))
    }
}

/// Returns the rules of the configuration for approvals. A file that the program found in a directory
/// approves no call: the user trusts its launches only.
pub(crate) fn approval_filters(config: &Config, may_approve: bool) -> HashMap<String, ToolFilter> {
    let filters = config.servers.iter().map(|(name, server)| {
        let mut filter = server.tools.clone();
        if !may_approve {
            filter.remove_approvals();
        }
        (name.clone(), filter)
    });
    filters.collect()
}

fn reload_error(error: ReloadError) -> CliError {
    match error {
        ReloadError::Config(error) => config_error(&error),
        ReloadError::NoFiles => CliError::usage("the chat has no configuration file to read again"),
        ReloadError::Shutdown => CliError::failure(error.to_string()),
    }
}

fn report_text(report: &ReloadReport) -> String {
    if report.is_empty() {
        return "the configuration has no changes".to_owned();
    }
    let added = report.added.iter().map(|server| format!("added {server}"));
    let removed = report.removed.iter().map(|server| format!("removed {server}"));
    let changed = report
        .changed
        .iter()
        .map(|change| format!("changed {}: {}", change.server, change.keys.join(", ")));
    let failed = report
        .failed
        .iter()
        .map(|failure| format!("{} failed: {}", failure.server, failure.reason));
    let untrusted = report.not_trusted.iter().map(|server| {
        format!("{server} is not trusted: run `innkeeper tools --trust` to decide, then /reload")
    });
    let invalid = report.invalid.iter().map(|server| format!("the entry of {server} has errors"));
    let host_keys =
        report.host_keys.iter().map(|key| format!("`host.{key}` applies after a new start"));
    let lines = added.chain(removed).chain(changed).chain(failed).chain(untrusted).chain(invalid);
    lines
        .chain(host_keys)
        .map(|line| escape_inline(&line).into_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Hides a server from the model, or shows the server again. Returns what is now.
pub(crate) fn set_hidden(
    host: &Host,
    hidden: &HiddenServers,
    server: &str,
    is_hidden: bool,
) -> Result<String, CliError> {
    if server.is_empty() {
        let command = if is_hidden { "disable" } else { "enable" };
        return Err(CliError::usage(format!("usage: /{command} SERVER")));
    }
    if !host.status().contains_key(server) {
        return Err(CliError::usage(format!("no server `{}`", escape_inline(server))));
    }
    Ok(match (is_hidden, is_hidden && hidden.hide(server), !is_hidden && hidden.show(server)) {
        (true, true, _) => format!(
            "{server} is disabled in this conversation: the model gets none of its tools, prompts \
             and resources; the server keeps running"
        ),
        (true, false, _) => format!("{server} is already disabled"),
        (false, _, true) => format!("{server} is enabled"),
        (false, _, false) => format!("{server} is not disabled"),
    })
}

/// Returns an error if all these servers are hidden.
fn check_visible(hidden: &HiddenServers, servers: &[&str]) -> Result<(), CliError> {
    match servers {
        [server, ..] if servers.iter().all(|server| hidden.contains(server)) => {
            Err(CliError::usage(format!("the server `{server}` is disabled"))
                .with_hint(format!("type /enable {server}")))
        }
        _ => Ok(()),
    }
}

/// Returns an error if a prompt belongs to a hidden server.
pub(crate) fn check_prompt(
    host: &Host,
    hidden: &HiddenServers,
    prompt: &str,
) -> Result<(), CliError> {
    let status = host.status();
    let split = innkeeper_host::split_name(prompt, |name| status.contains_key(name));
    check_visible(hidden, &split.map(|(server, _)| server).into_iter().collect::<Vec<_>>())
}

/// Returns an error if a resource belongs to hidden servers only.
pub(crate) fn check_resource(
    host: &Host,
    hidden: &HiddenServers,
    uri: &str,
) -> Result<(), CliError> {
    check_visible(hidden, &host.catalog().resource_servers(uri))
}
