//! What a run did, in one or two sentences.

use crate::agent::RunResult;

/// Maximum number of tools that the summary names.
const MAX_NAMED_TOOLS: usize = 6;

#[derive(Debug)]
struct ToolCount<'r> {
    tool: &'r str,
    calls: usize,
    failed: usize,
}

/// Returns a summary such as `The model finished after 3 responses; 2 of 3 tool calls succeeded. It
/// called `files.list` once and `files.read` twice (1 failed).`
pub(super) fn summary(report: &RunResult) -> String {
    if report.stats.responses == 0 {
        return "No response of the model was received, and no tool was called.".to_owned();
    }
    let end = if report.is_completed() { "finished" } else { "did not finish" };
    let responses = plural(report.stats.responses as usize, "response");
    let all = report.tool_calls.len();
    if all == 0 {
        return format!("The model {end} after {responses}; no tool was called.");
    }
    let succeeded = report.tool_calls.iter().filter(|record| record.outcome.success).count();
    let calls = plural(all, "tool call");
    let tools = join(named_tools(report));
    format!(
        "The model {end} after {responses}; {succeeded} of {calls} succeeded. It called {tools}."
    )
}

fn plural(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// Returns the tools with the numbers of their calls, in the order of their first calls.
fn named_tools(report: &RunResult) -> Vec<String> {
    let mut counts: Vec<ToolCount<'_>> = Vec::new();
    for record in &report.tool_calls {
        let at = counts.iter().position(|count| count.tool == record.tool).unwrap_or_else(|| {
            counts.push(ToolCount { tool: &record.tool, calls: 0, failed: 0 });
            counts.len() - 1
        });
        counts[at].calls += 1;
        counts[at].failed += usize::from(!record.outcome.success);
    }
    let mut names: Vec<String> = counts.iter().take(MAX_NAMED_TOOLS).map(describe).collect();
    if let Some(others) = counts.len().checked_sub(MAX_NAMED_TOOLS).filter(|others| *others > 0) {
        names.push(plural(others, "other tool"));
    }
    names
}

fn describe(count: &ToolCount<'_>) -> String {
    let times = match count.calls {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        calls => format!("{calls} times"),
    };
    let name = match count.tool {
        "" => "a tool without a name".to_owned(),
        tool => format!("`{tool}`"),
    };
    match count.failed {
        0 => format!("{name} {times}"),
        failed if failed == count.calls => format!("{name} {times} (failed)"),
        failed => format!("{name} {times} ({failed} failed)"),
    }
}

/// Joins parts of a list in a sentence.
fn join(mut parts: Vec<String>) -> String {
    let Some(last) = parts.pop() else { return String::new() };
    match parts.len() {
        0 => last,
        1 => format!("{} and {last}", parts[0]),
        _ => format!("{}, and {last}", parts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_has_the_number_of_its_calls_and_failures() {
        let text = |tool, calls, failed| describe(&ToolCount { tool, calls, failed });
        assert_eq!(text("fs.read", 1, 0), "`fs.read` once");
        assert_eq!(text("fs.read", 2, 1), "`fs.read` twice (1 failed)");
        assert_eq!(text("fs.read", 3, 3), "`fs.read` 3 times (failed)");
        assert_eq!(text("", 1, 1), "a tool without a name once (failed)");
    }

    #[test]
    fn parts_of_a_list_are_joined_as_in_a_sentence() {
        let joined = |parts: &[&str]| join(parts.iter().map(|part| (*part).to_owned()).collect());
        assert_eq!(joined(&["a"]), "a");
        assert_eq!(joined(&["a", "b"]), "a and b");
        assert_eq!(joined(&["a", "b", "c"]), "a, b, and c");
    }
}
