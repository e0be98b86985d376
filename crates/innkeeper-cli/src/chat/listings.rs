//! The texts of the commands that list something.

use std::path::Path;

use innkeeper_agent::safety::{ApprovalRule, ApprovalRules};
use innkeeper_agent::tools::HiddenServers;
use innkeeper_host::{Host, ServerState};
use serde_json::{Value, json};

use super::conversation_file;
use super::question::ChatApprover;
use super::session::TokenTotals;
use crate::output::escape_inline;
use crate::timestamp;

/// Maximum number of characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 100;

/// Maximum number of shown lines of a server's stderr.
const MAX_STDERR_LINES: usize = 3;

/// Lists the tools of all servers, or of one, with what happens to their calls.
pub(crate) fn tools(
    host: &Host,
    approver: &ChatApprover,
    hidden: &HiddenServers,
    server: &str,
) -> String {
    let catalog = host.catalog();
    let tools = catalog.tools().filter(|tool| server.is_empty() || tool.server == server);
    let lines = tools.map(|tool| {
        let view = &tool.definition.view;
        let mark = match approver.rule_for(&tool) {
            _ if hidden.contains(tool.server) => "hidden",
            Some(ApprovalRule::Allow) => "runs  ",
            Some(ApprovalRule::Deny) => "denied",
            None => "asks  ",
        };
        item_line(&format!("{mark}  {}", tool.public_name), view.description.as_deref())
    });
    or_none(&lines.collect::<Vec<_>>(), "no tools")
}

/// Lists the servers with their state, their latency and the end of their stderr.
pub(crate) fn servers(host: &Host, hidden: &HiddenServers) -> String {
    let metrics = host.metrics();
    let mut lines = Vec::new();
    for (name, status) in host.status() {
        let mut line = format!("{name}  {}", status.state.as_str());
        if let Some(reason) = &status.reason {
            line.push_str(&format!(": {reason}"));
        }
        if hidden.contains(&name) {
            line.push_str("  disabled in this conversation");
        }
        if let Some(metrics) = metrics.get(&name).filter(|metrics| metrics.request_count > 0) {
            line.push_str(&format!(
                "  {} calls, {} failed, p50 {:.0} ms, p95 {:.0} ms",
                metrics.request_count,
                metrics.error_count,
                metrics.latency.p50,
                metrics.latency.p95
            ));
        }
        if let Some(pid) = status.pid {
            line.push_str(&format!("  pid {pid}"));
        }
        lines.push(line);
        let stderr: Vec<&str> = status.stderr.lines().collect();
        let tail = stderr.iter().rev().take(MAX_STDERR_LINES).rev();
        lines.extend(tail.map(|line| format!("    {}", escape_inline(line))));
        lines.extend(status.start_hint.iter().map(|hint| format!("    hint: {hint}")));
    }
    or_none(&lines, "no servers")
}

/// Lists the prompts of all servers with their arguments.
pub(crate) fn prompts(host: &Host) -> String {
    let mut lines = Vec::new();
    for prompt in prompt_list(host) {
        let arguments = prompt.arguments.iter().map(|(name, is_required)| match is_required {
            true => format!(" {name}=…"),
            false => format!(" [{name}=…]"),
        });
        lines.push(format!("{}{}", prompt.public_name, arguments.collect::<String>()));
    }
    or_none(&lines, "no prompts")
}

/// A prompt with its public name, and its arguments, required or not.
pub(super) struct ListedPrompt {
    pub(super) public_name: String,
    pub(super) arguments: Vec<(String, bool)>,
}

/// Returns the prompts of all servers.
pub(super) fn prompt_list(host: &Host) -> Vec<ListedPrompt> {
    let catalog = host.catalog();
    let servers = catalog.servers();
    let prompts = servers.flat_map(|(server, entry)| {
        let prompts = entry.listing().map(|listing| &*listing.prompts).unwrap_or_default();
        prompts.iter().map(move |prompt| {
            let arguments = prompt.view.arguments.iter();
            let arguments = arguments.map(|argument| (argument.name.clone(), argument.required));
            let public_name = format!("{server}.{}", prompt.view.name);
            ListedPrompt { public_name, arguments: arguments.collect() }
        })
    });
    prompts.collect()
}

/// Lists the resources and the resource templates of all servers.
pub(crate) fn resources(host: &Host) -> String {
    let catalog = host.catalog();
    let mut lines = Vec::new();
    for (_, entry) in catalog.servers() {
        let Some(listing) = entry.listing() else { continue };
        let resources = listing.resources.iter();
        lines.extend(resources.map(|it| item_line(&it.view.uri, Some(&it.view.name))));
        let templates = listing.resource_templates.iter();
        lines.extend(templates.map(|it| item_line(&it.view.uri_template, Some(&it.view.name))));
    }
    or_none(&lines, "no resources")
}

pub(crate) fn rules(rules: &ApprovalRules) -> String {
    let tools = rules.tools().map(|(tool, rule)| format!("{tool} {}", effect(rule)));
    let servers =
        rules.servers().map(|(name, rule)| format!("each tool of {name} {}", effect(rule)));
    let default = "`tools.approve`, `tools.approveArguments` and `tools.ask` of the configuration decide about other tools; \
                   without them, read-only tools run and all other tools ask"
        .to_owned();
    tools.chain(servers).chain([default]).collect::<Vec<_>>().join("\n")
}

fn effect(rule: ApprovalRule) -> &'static str {
    match rule {
        ApprovalRule::Allow => "runs without a question",
        ApprovalRule::Deny => "does not run",
    }
}

/// Describes the tokens and the cost of a conversation, as the providers report them.
pub(crate) fn tokens(totals: TokenTotals) -> String {
    let usage = totals.usage;
    if usage.total_tokens() == 0 {
        return "the provider reports no tokens".to_owned();
    }
    let gaps = if totals.has_gaps { " or more: some responses report none" } else { "" };
    let cost = usage.cost.map(|cost| {
        let gaps = if totals.has_cost_gaps { " or more: some responses report none" } else { "" };
        format!("\ncost {cost} in the unit of the provider{gaps}")
    });
    let share = totals.context.zip(totals.context_percent());
    let share = share.map(|(context, percent)| format!(", {percent} % of {context} tokens"));
    let last = totals.last.map(|tokens| {
        let share = share.unwrap_or_default();
        format!("\nthe last request with its response: {tokens} tokens{share}")
    });
    format!(
        "{} tokens to the model ({} cached), {} tokens of the model ({} reasoning){gaps}{}{}",
        usage.prompt_tokens,
        usage.cached_tokens,
        usage.completion_tokens,
        usage.reasoning_tokens,
        last.unwrap_or_default(),
        cost.unwrap_or_default()
    )
}

pub(crate) fn conversations(directory: &Path) -> String {
    let stored = conversation_file::list(directory);
    let lines = stored.iter().map(|stored| {
        format!("{}  {} messages  {}", stored.id, stored.messages, escape_inline(&stored.title))
    });
    or_none(&lines.collect::<Vec<_>>(), "no stored conversations")
}

/// Returns the number of servers that accept calls, and of all servers.
pub(crate) fn server_counts(host: &Host) -> (usize, usize) {
    let status = host.status();
    let ready = status.values().filter(|status| status.state == ServerState::Ready).count();
    (ready, status.len())
}

fn item_line(name: &str, description: Option<&str>) -> String {
    let words = description.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let description: String = words.chars().take(MAX_DESCRIPTION_CHARS).collect();
    format!("{}  {}", escape_inline(name), escape_inline(&description)).trim_end().to_owned()
}

fn or_none(lines: &[String], none: &str) -> String {
    if lines.is_empty() { none.to_owned() } else { lines.join("\n") }
}

/// Returns the stored conversations for `--json`.
pub(crate) fn conversations_json(directory: &Path) -> Value {
    let stored = conversation_file::list(directory).into_iter().map(|stored| {
        json!({
            "id": stored.id,
            "title": stored.title,
            "messages": stored.messages,
            "modified": timestamp::format_rfc3339(stored.modified),
        })
    });
    json!({ "conversations": stored.collect::<Vec<_>>() })
}
