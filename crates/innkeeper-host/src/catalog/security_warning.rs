//! Security warnings: hidden text and confusable tool names.
//!
//! A warning excludes nothing because both cases can be harmless. A user who has reviewed a
//! definition can pin it.

use std::sync::Arc;

use innkeeper_config::name;
use innkeeper_protocol::view::Tool;

use crate::connection::listing::Definition;
use crate::text::{ConfusableNames, has_hidden_characters, hidden_characters};

/// Maximum number of warnings per server and kind. A person does not read more.
pub(crate) const MAX_WARNINGS: usize = 32;

const HIDDEN_CHARACTERS: &str = "contains hidden characters";

/// A sign of possible deception. The strings come from a server: escape them for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SecurityWarning {
    /// The name of the server.
    pub server: Arc<str>,
    /// The tool, by the server's own name.
    pub tool: Option<Box<str>>,
    /// The prompt by the server's own name, or the resource or template by its URI. Without a tool
    /// and an item, the warning is about the server's instructions.
    pub item: Option<Box<str>>,
    /// The reason: `contains hidden characters`, or the name that the tool's name resembles.
    pub reason: String,
}

/// Returns warnings for hidden text in the tools and instructions of one server.
pub(crate) fn hidden_text_warnings(
    server: &Arc<str>,
    tools: &[Definition<Tool>],
    instructions: Option<&str>,
) -> Vec<SecurityWarning> {
    let instructions =
        instructions.filter(|text| !hidden_characters(text).is_empty()).map(|_| None);
    let tools = tools.iter().filter(|tool| has_hidden_characters(&tool.raw));
    let tools = tools.map(|tool| Some(tool.view.name.as_str().into()));
    let warnings = instructions.into_iter().chain(tools).map(|tool| SecurityWarning {
        server: server.clone(),
        tool,
        item: None,
        reason: HIDDEN_CHARACTERS.to_owned(),
    });
    warnings.take(MAX_WARNINGS).collect()
}

/// Returns warnings for tool names that resemble tool names of earlier servers.
pub(crate) fn similar_name_warnings<'t>(
    servers: impl Iterator<Item = (&'t Arc<str>, impl Iterator<Item = &'t str> + Clone)>,
) -> Vec<SecurityWarning> {
    let mut warnings = Vec::new();
    let mut names = ConfusableNames::default();
    let servers: Vec<_> = servers.collect();
    if servers.len() < 2 {
        return warnings;
    }
    for (index, (server, tools)) in servers.into_iter().enumerate() {
        if index > 0 {
            warnings.extend(
                tools
                    .clone()
                    .filter_map(|tool| {
                        let (other, its) = names.find(server, tool)?;
                        let reason =
                            format!("its name looks like `{}`", name::public_name(other, its));
                        Some(SecurityWarning {
                            server: server.clone(),
                            tool: Some(tool.into()),
                            item: None,
                            reason,
                        })
                    })
                    .take(MAX_WARNINGS),
            );
        }
        tools.for_each(|tool| names.add(server, tool));
    }
    warnings
}
