//! `log-stats`: what the log of a chat says of each tool.

use innkeeper_agent::chat::record::{LogAnalyzer, ToolStats};
use serde_json::json;

use crate::args::LogStatsArgs;
use crate::exit::Failure;
use crate::output::{Output, Table, Tone};

/// Reads the log and prints one row a tool.
pub(crate) fn log_stats(args: &LogStatsArgs, output: &mut Output) -> Result<(), Failure> {
    let log = LogAnalyzer::from_file(&args.file).map_err(|error| {
        let message = format!("`{}` cannot be read", args.file.display());
        Failure::usage(message).because(error.source)
    })?;
    let unreadable = log.unreadable();
    if unreadable > 0 {
        let text = format!("{unreadable} lines are none of a chat's log and are left out");
        output.label(Tone::Note, "warning", &text)?;
    }
    let stats = log.tool_execution_stats();
    if output.is_json() {
        let told = json!({"tools": stats, "lines": log.lines(), "unreadableLines": unreadable});
        return Ok(output.value(&told)?);
    }
    let mut table = Table::new(["tool", "calls", "errors", "cached", "mean ms", "max ms"]);
    for (tool, stats) in stats {
        table.row(row(tool, stats));
    }
    Ok(output.table(&table)?)
}

fn row(tool: &str, stats: &ToolStats) -> [String; 6] {
    let time = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
    [
        tool.to_owned(),
        stats.calls.to_string(),
        stats.errors.to_string(),
        stats.cached.to_string(),
        time(stats.mean_ms),
        time(stats.max_ms),
    ]
}
