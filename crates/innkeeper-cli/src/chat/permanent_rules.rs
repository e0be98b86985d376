//! The rules of a person that outlive a conversation, and the command `/rules`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use innkeeper_agent::safety::{PermanentRuleError, PermanentRules, ToolFingerprint};
use innkeeper_host::{CatalogTool, Host};
use serde_json::value::RawValue;

use super::listings;
use super::question::ChatApprover;
use crate::exit::CliError;
use crate::output::escape_inline;

/// Usage of the command that removes a rule.
const REMOVE_USAGE: &str = "usage: /rules remove SERVER.TOOL";

/// Why a conversation stores no rule.
pub(crate) const NO_CONFIGURATION: &str =
    "a rule for later conversations needs a configuration file";
const NO_STORE: &str = "`--no-store` stores no rule for later conversations";
const NO_FINGERPRINT: &str =
    "the tool has changed, or its definition is too long for a rule for later conversations";

/// A tool by its server and its own name, with its present definition.
#[derive(Clone, Debug)]
pub(crate) struct ToolIdentity {
    server: String,
    tool: String,
    /// `None` if the definition that the person sees is not the present one.
    fingerprint: Option<ToolFingerprint>,
}

impl ToolIdentity {
    /// Identifies a tool with the definition that the model or the person sees.
    pub(crate) fn new(host: &Host, listed: &CatalogTool<'_>, definition: &RawValue) -> Self {
        let server = listed.server.to_owned();
        let tool = listed.definition.view.name.clone();
        let fingerprint = ToolFingerprint::from_pins(&host.pins(), &server, &tool, definition);
        Self { server, tool, fingerprint }
    }
}

#[derive(Debug, Default)]
pub(crate) struct RuleStore {
    /// `None` without a configuration file, or without a directory.
    rules: Option<Mutex<PermanentRules>>,
    /// Whether the person wants nothing stored: earlier rules apply, and no rule is added.
    takes_no_rules: bool,
}

impl RuleStore {
    /// Opens the rules for the configuration files of a conversation.
    pub(crate) fn open(
        directory: Option<&Path>,
        files: &[PathBuf],
        takes_no_rules: bool,
    ) -> Result<Self, CliError> {
        let Some(directory) = directory.filter(|_| !files.is_empty()) else {
            return Ok(Self::default());
        };
        let rules = PermanentRules::open(directory, files)?;
        Ok(Self { rules: Some(Mutex::new(rules)), takes_no_rules })
    }

    fn lock(&self) -> Option<MutexGuard<'_, PermanentRules>> {
        Some(self.rules.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether there is a rule for a tool, with the present or an earlier definition.
    pub(crate) fn has_rule(&self, listed: &CatalogTool<'_>) -> bool {
        let tool = &listed.definition.view.name;
        self.lock().is_some_and(|rules| rules.has_rule(listed.server, tool))
    }

    /// Returns whether the calls of a tool run without a question.
    pub(crate) fn allows(&self, identity: &ToolIdentity) -> bool {
        let ToolIdentity { server, tool, fingerprint } = identity;
        let found = self.lock().zip(fingerprint.as_ref());
        found.is_some_and(|(rules, fingerprint)| rules.allows(server, tool, fingerprint))
    }

    /// Returns why no rule for a tool can be added; `None` if a rule can be added.
    pub(crate) fn obstacle(&self, identity: &ToolIdentity) -> Option<&'static str> {
        match (&self.rules, &identity.fingerprint) {
            (None, _) => Some(NO_CONFIGURATION),
            (Some(_), _) if self.takes_no_rules => Some(NO_STORE),
            (Some(_), None) => Some(NO_FINGERPRINT),
            (Some(_), Some(_)) => None,
        }
    }

    /// Adds a rule for a tool with the definition that the person sees.
    pub(crate) fn add(&self, identity: &ToolIdentity) -> Result<(), CliError> {
        if let Some(obstacle) = self.obstacle(identity) {
            return Err(CliError::usage(obstacle));
        }
        let ToolIdentity { server, tool, fingerprint } = identity;
        match self.lock().zip(fingerprint.clone()) {
            Some((mut rules, found)) => Ok(rules.add(server, tool, found)?),
            None => Err(CliError::usage(NO_CONFIGURATION)),
        }
    }

    /// Removes the rule for a tool, by the name of `/rules`. Returns whether there was one.
    fn remove(&self, name: &str) -> Result<bool, PermanentRuleError> {
        let Some(mut rules) = self.lock() else { return Ok(false) };
        let found = rules.iter().find(|(server, tool, _)| format!("{server}.{tool}") == name);
        let Some((server, tool)) =
            found.map(|(server, tool, _)| (server.to_owned(), tool.to_owned()))
        else {
            return Ok(false);
        };
        rules.remove(&server, &tool)
    }

    /// Returns the tools with a rule, as `SERVER.TOOL`, and whether the rule applies to the present
    /// definition.
    fn names(&self, host: &Host) -> Vec<(String, bool)> {
        let Some(rules) = self.lock() else { return Vec::new() };
        let catalog = host.catalog();
        let pins = host.pins();
        let rules = rules.iter().map(|(server, tool, stored)| {
            let mut listed = catalog.tools().filter(|listed| listed.server == server);
            let listed = listed.find(|listed| *listed.definition.view.name == *tool);
            let found = listed.and_then(|listed| {
                ToolFingerprint::from_pins(&pins, server, tool, &listed.definition.raw)
            });
            (format!("{server}.{tool}"), found.as_ref() == Some(stored))
        });
        rules.collect()
    }
}

impl From<PermanentRuleError> for CliError {
    fn from(error: PermanentRuleError) -> Self {
        let failure = Self::usage(error.to_string());
        match error {
            PermanentRuleError::MissingConfiguration { source, .. }
            | PermanentRuleError::ReadFailed { source, .. }
            | PermanentRuleError::WriteFailed { source, .. } => failure.with_source(source),
            PermanentRuleError::Damaged { .. } => {
                failure.with_hint("remove the file to forget its rules: all calls ask again")
            }
            PermanentRuleError::UnsupportedVersion { .. } => {
                failure.with_hint("install a newer `innkeeper` to read the file")
            }
            PermanentRuleError::Full { .. } => {
                failure.with_hint("`/rules` lists the rules, and `/rules remove` removes one")
            }
        }
    }
}

/// Lists the permanent rules, one a line.
fn permanent_lines(approver: &ChatApprover) -> Vec<String> {
    let names = approver.permanent_rules().names(approver.host());
    let lines = names.into_iter().map(|(name, applies)| {
        let meaning = match applies {
            true => "runs without a question, also in later conversations",
            false => "asks: its rule is for a definition that the server does not have now",
        };
        format!("{} {meaning}", escape_inline(&name))
    });
    lines.collect()
}

/// Runs `/rules`: without an argument, lists the rules; with `remove SERVER.TOOL`, removes the
/// rules for a tool.
pub(crate) fn run_command(approver: &ChatApprover, argument: &str) -> Result<String, CliError> {
    if argument.is_empty() {
        let rules = listings::rules(&approver.rules());
        return Ok(permanent_lines(approver)
            .into_iter()
            .chain([rules])
            .collect::<Vec<_>>()
            .join("\n"));
    }
    let Some(("remove", name)) = argument.split_once(char::is_whitespace) else {
        return Err(CliError::usage(REMOVE_USAGE));
    };
    let name = name.trim();
    let is_of_conversation = approver.remove_rule(name);
    let is_permanent = approver.permanent_rules().remove(name)?;
    match is_of_conversation || is_permanent {
        true => Ok(format!("removed the rule for {}", escape_inline(name))),
        false => Err(CliError::usage(format!("no rule for `{}`", escape_inline(name)))),
    }
}

/// Returns the names of the tools with a rule.
pub(crate) fn tools_with_rules(approver: &ChatApprover) -> Vec<String> {
    let permanent = approver.permanent_rules().names(approver.host());
    let permanent = permanent.into_iter().map(|(name, _)| name);
    let rules = approver.rules();
    let of_conversation = rules.tools().map(|(tool, _)| tool.to_owned());
    permanent.chain(of_conversation).collect::<BTreeSet<_>>().into_iter().collect()
}
