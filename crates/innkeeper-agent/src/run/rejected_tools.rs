//! Tools that the model does not get: those that the provider rejected, and those above the number
//! that the provider takes.
//!
//! Without this, one tool with a schema that the provider does not take would make every request of
//! the run fail. Both cases are told to the user and stand in the errors of the run.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::{Run, RunConfig, ToolCallMode};
use crate::provider::{LlmError, ToolRejection};
use crate::tools::OfferedTools;

/// Maximum number of requests of a run that are sent again without rejected tools. OpenAI names one
/// tool per error.
const MAX_REJECTIONS: u32 = 8;

/// Maximum number of tools that a run leaves out because the provider rejected them. If there are
/// more, the tools are not what is wrong.
const MAX_REJECTED_TOOLS: usize = 64;

/// Maximum number of names in a text for the user.
const MAX_LISTED_NAMES: usize = 8;

/// Tools that the model does not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OmittedTools {
    /// The public names, in the order of the list of tools.
    pub tools: Vec<String>,
    /// Why the model does not get them.
    pub reason: String,
}

/// Formats the names and the reason for the user.
impl fmt::Display for OmittedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the model does not get ")?;
        for (at, tool) in self.tools.iter().take(MAX_LISTED_NAMES).enumerate() {
            write!(f, "{}`{tool}`", if at == 0 { "" } else { ", " })?;
        }
        match self.tools.len().saturating_sub(MAX_LISTED_NAMES) {
            0 => {}
            1 => f.write_str(" and 1 other tool")?,
            others => write!(f, " and {others} other tools")?,
        }
        write!(f, ": {}", self.reason)
    }
}

/// The tools that the requests of a run leave out.
#[derive(Debug, Default)]
pub(super) struct ToolOmissions {
    /// The public names of the tools that the provider rejected.
    rejected: HashSet<String>,
    /// Number of requests that were rejected because of their tools.
    rejections: u32,
    /// The number of tools that the provider takes, by its own error.
    learned_limit: Option<usize>,
    /// The tools above the limit that the user knows about.
    reported_surplus: HashSet<String>,
    /// What the caller has not taken.
    unreported: Vec<OmittedTools>,
    /// What the model has not been told about servers that became unavailable.
    pub(super) untold_losses: Vec<String>,
}

impl Run {
    /// Returns the tools that the caller has to tell the user about: those that the run has left out
    /// since the last call of this function.
    pub fn take_omitted_tools(&mut self) -> Vec<OmittedTools> {
        std::mem::take(&mut self.tools.omissions.unreported)
    }

    /// Offers these tools to the model, without those that the provider does not take.
    pub(super) fn offer_tools(&mut self, tools: OfferedTools) {
        let tools = tools.without(|name| self.tools.omissions.rejected.contains(name));
        let tools = match self.tool_limit() {
            Some(limit) if tools.available.len() > limit => self.without_surplus(tools, limit),
            Some(_) | None => tools,
        };
        self.config = Arc::new(RunConfig { tools, ..(*self.config).clone() });
    }

    /// Handles an error about the tools: sends them without strict mode, and then leaves out those
    /// that the error names or that are too many. Returns whether another request may succeed.
    pub(super) fn omit_rejected_tools(&mut self, error: &LlmError) -> bool {
        let Some(rejection) = error.tool_rejection() else { return false };
        if self.tools.omissions.rejections == MAX_REJECTIONS {
            return false;
        }
        let available = &self.config.tools.available;
        match rejection {
            ToolRejection::Strict | ToolRejection::Tools(_) if self.sends_strict_tools() => {
                self.config = Arc::new(RunConfig { plain_tools: true, ..(*self.config).clone() });
            }
            ToolRejection::Strict => return false,
            ToolRejection::Tools(names) => {
                let names =
                    available.iter().map(|tool| &tool.name).filter(|name| names.contains(name));
                let names: Vec<String> = names.cloned().collect();
                let all = names.len() + self.tools.omissions.rejected.len();
                if names.is_empty() || all > MAX_REJECTED_TOOLS {
                    return false;
                }
                self.tools.omissions.rejected.extend(names.iter().cloned());
                self.report_omission(names, format!("the provider rejects it: {}", error.message));
            }
            ToolRejection::TooMany { max_tools } => {
                if *max_tools >= available.len() {
                    return false;
                }
                self.tools.omissions.learned_limit = Some(*max_tools);
            }
        }
        self.tools.omissions.rejections += 1;
        self.offer_tools(self.config.tools.clone());
        true
    }

    /// Whether a tool that the provider rejects may be one whose schema it cannot enforce.
    fn sends_strict_tools(&self) -> bool {
        self.config.capabilities.tools.strict && !self.config.plain_tools
    }

    /// Returns the number of tools that a request may have.
    fn tool_limit(&self) -> Option<usize> {
        let limits = [self.tools.omissions.learned_limit, self.config.capabilities.tools.max];
        let limit = limits.into_iter().flatten().min();
        limit.filter(|_| self.tools.mode == ToolCallMode::Native)
    }

    /// Leaves out the tools above the limit, which is the last resort: an agent offers a search
    /// before, unless its settings forbid it.
    fn without_surplus(&mut self, tools: OfferedTools, limit: usize) -> OfferedTools {
        let names = tools.available.iter().skip(limit).map(|tool| tool.name.clone());
        let surplus: Vec<String> = names.collect();
        let names: HashSet<String> = surplus.iter().cloned().collect();
        if names != self.tools.omissions.reported_surplus {
            let reason = format!("the provider takes at most {limit} tools");
            self.report_omission(surplus, reason);
            self.tools.omissions.reported_surplus.clone_from(&names);
        }
        tools.without(|name| names.contains(name))
    }

    fn report_omission(&mut self, tools: Vec<String>, reason: String) {
        let omitted = OmittedTools { tools, reason };
        let tool = match omitted.tools.as_slice() {
            [tool] => Some(tool.clone()),
            _ => None,
        };
        self.record_error(tool, omitted.to_string());
        self.tools.omissions.unreported.push(omitted);
    }
}

#[cfg(test)]
mod tests;
