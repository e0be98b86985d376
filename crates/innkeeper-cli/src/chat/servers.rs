//! The servers of a conversation: `/disable`, `/enable`, `/reload`, and what a message takes from them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::content::Content;
use innkeeper_agent::tools::HiddenServers;
use innkeeper_agent::{ToolOutput, tool_output};
use innkeeper_host::config::ToolFilter;
use innkeeper_host::{
    CallOptions, Config, Environment, Host, ReloadError, ReloadOptions, ReloadReport,
    TrustDecisions, TrustPolicy,
};
use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

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

#[derive(Clone)]
pub(crate) struct ChatServers {
    pub(crate) host: Host,
    /// The servers that the person disabled for this conversation.
    pub(crate) hidden: HiddenServers,
    reloader: Option<Arc<ServerReloader>>,
}

impl ChatServers {
    pub(crate) fn new(host: Host) -> Self {
        Self { host, hidden: HiddenServers::default(), reloader: None }
    }

    /// Reads the configuration with this reloader.
    pub(crate) fn set_reloader(&mut self, reloader: ServerReloader) {
        self.reloader = Some(Arc::new(reloader));
    }

    /// Applies the present configuration to the servers, and returns what changed.
    pub(crate) async fn reload(self, approver: Arc<ChatApprover>) -> Result<String, CliError> {
        match self.reloader {
            Some(reloader) => reloader.reload(&self.host, &approver).await,
            None => Err(CliError::usage("the chat has no configuration to read again")),
        }
    }

    /// Disables a server for this conversation, or enables the server again. Returns what is now.
    pub(crate) fn set_hidden(&self, server: &str, is_hidden: bool) -> Result<String, CliError> {
        if server.is_empty() {
            let command = if is_hidden { "disable" } else { "enable" };
            return Err(CliError::usage(format!("usage: /{command} SERVER")));
        }
        if !self.host.status().contains_key(server) {
            return Err(CliError::usage(format!("no server `{}`", escape_inline(server))));
        }
        let has_changed = match is_hidden {
            true => self.hidden.hide(server),
            false => self.hidden.show(server),
        };
        Ok(match (is_hidden, has_changed) {
            (true, true) => format!(
                "{server} is disabled in this conversation: the model gets none of its tools, \
                 prompts and resources; the server keeps running"
            ),
            (true, false) => format!("{server} is already disabled"),
            (false, true) => format!("{server} is enabled"),
            (false, false) => format!("{server} is not disabled"),
        })
    }

    /// Reads a resource as content for the next message.
    pub(crate) async fn read_resource(self, uri: String) -> Result<Content, CliError> {
        self.check_visible(&self.host.catalog().resource_servers(&uri))?;
        let result = self
            .host
            .read_resource(&uri, None, CallOptions::default())
            .await
            .map_err(|error| CliError::failure(error.to_string()))?;
        let contents = skim::elements(skim::member(result.get(), "contents").unwrap_or("[]"));
        to_content(
            contents.map(|resource| format!(r#"{{"type":"resource","resource":{resource}}}"#)),
        )
    }

    /// Gets a prompt of a server as the content of a message.
    pub(crate) async fn get_prompt(
        self,
        name: String,
        arguments: Map<String, Value>,
    ) -> Result<Content, CliError> {
        let status = self.host.status();
        let split = innkeeper_host::split_name(&name, |server| status.contains_key(server));
        self.check_visible(&split.map(|(server, _)| server).into_iter().collect::<Vec<_>>())?;
        let result = self
            .host
            .get_prompt(&name, &arguments, CallOptions::default())
            .await
            .map_err(|error| CliError::failure(error.to_string()))?;
        let messages = skim::elements(skim::member(result.get(), "messages").unwrap_or("[]"));
        to_content(messages.flat_map(|message| {
            // A message of the user contains no message of the model, so that a line says who speaks.
            let is_of_model = skim::member(message, "role") == Some("\"assistant\"");
            let line = is_of_model.then(|| r#"{"type":"text","text":"[assistant]"}"#.to_owned());
            line.into_iter().chain(skim::member(message, "content").map(str::to_owned))
        }))
    }

    /// Returns an error if all these servers are hidden.
    fn check_visible(&self, servers: &[&str]) -> Result<(), CliError> {
        match servers {
            [server, ..] if servers.iter().all(|server| self.hidden.contains(server)) => {
                Err(CliError::usage(format!("the server `{server}` is disabled"))
                    .with_hint(format!("type /enable {server}")))
            }
            _ => Ok(()),
        }
    }
}

/// Converts content blocks of MCP, as for the result of a tool.
fn to_content(blocks: impl Iterator<Item = String>) -> Result<Content, CliError> {
    let blocks: Vec<String> = blocks.collect();
    if blocks.is_empty() {
        return Err(CliError::failure("the server sent no content"));
    }
    let result = RawValue::from_string(format!(r#"{{"content":[{}]}}"#, blocks.join(",")));
    let result = result.map_err(|error| CliError::failure(error.to_string()))?;
    Ok(tool_output::to_content(&ToolOutput::new(result, false)))
}
