//! Tools that a run loses because their server became unavailable.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_host::Catalog;

/// Maximum number of tools that a message to the model names for one server.
const MAX_NAMED_TOOLS: usize = 30;

/// A tool that cannot be called now, because its server is unavailable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnavailableTool {
    /// The name of the tool, as the model saw it.
    pub name: String,
    /// The name of the server.
    pub server: Arc<str>,
    /// Why the server is unavailable.
    pub reason: Arc<str>,
}

/// Returns the tools of the unavailable servers of a catalog, by their public names.
pub(super) fn unavailable_tools(catalog: &Catalog) -> Vec<UnavailableTool> {
    let tools = catalog.unavailable_tools().map(|tool| UnavailableTool {
        name: tool.public_name.to_owned(),
        server: tool.server.into(),
        reason: tool.reason.to_string().into(),
    });
    tools.collect()
}

/// Returns a message for each server of these tools.
pub(crate) fn describe_losses<'t>(
    tools: impl IntoIterator<Item = &'t UnavailableTool>,
) -> Vec<String> {
    let mut by_server: BTreeMap<&str, Vec<&UnavailableTool>> = BTreeMap::new();
    for tool in tools {
        by_server.entry(&tool.server).or_default().push(tool);
    }
    by_server.into_values().map(|tools| describe_loss(&tools)).collect()
}

fn describe_loss(tools: &[&UnavailableTool]) -> String {
    let Some(UnavailableTool { server, reason, .. }) = tools.first() else { return String::new() };
    let mut names: Vec<String> =
        tools.iter().take(MAX_NAMED_TOOLS).map(|tool| format!("`{}`", tool.name)).collect();
    match tools.len().saturating_sub(MAX_NAMED_TOOLS) {
        0 => {}
        others => names.push(format!("{others} more")),
    }
    format!(
        "The server `{server}` is unavailable: {reason}. Its tools cannot be called now: {}.",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(server: &str, count: usize) -> Vec<UnavailableTool> {
        (0..count)
            .map(|at| UnavailableTool {
                name: format!("{server}.t{at}"),
                server: server.into(),
                reason: "process ended".into(),
            })
            .collect()
    }

    #[test]
    fn each_lost_server_is_named_with_its_reason_and_tools() {
        let all = [tools("a", 2), tools("b", MAX_NAMED_TOOLS), tools("c", MAX_NAMED_TOOLS + 1)];
        let [a, b, c] = &describe_losses(all.iter().flatten())[..] else { panic!("three servers") };
        let expected = "The server `a` is unavailable: process ended. Its tools cannot be called \
                        now: `a.t0`, `a.t1`.";
        assert_eq!(a, expected);
        assert!(b.contains("`b.t29`.") && !b.contains("more"), "{b}");
        assert!(c.contains("`c.t29`, 1 more."), "{c}");
    }
}
