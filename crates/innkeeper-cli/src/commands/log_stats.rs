//! `log-stats`: prints the number and the duration of the calls in a chat log, per tool.

use innkeeper_agent::chat::event_log::{LogAnalyzer, ToolStats};
use serde_json::json;

use crate::cli::LogStatsArgs;
use crate::exit::CliError;
use crate::output::{Output, Style, Table};

/// Reads the log and prints one row per tool.
pub(crate) fn log_stats(args: &LogStatsArgs, output: &mut Output) -> Result<(), CliError> {
    let log = LogAnalyzer::from_file(&args.file).map_err(|error| {
        let message = format!("cannot read `{}`", args.file.display());
        CliError::usage(message).with_source(error.source)
    })?;
    let unreadable = log.unreadable();
    if unreadable > 0 {
        let text = format!("ignored {unreadable} lines that are not chat log entries");
        output.labelled_status(Style::Note, "warning", &text)?;
    }
    let stats = log.tool_execution_stats();
    if output.is_json() {
        let report = json!({"tools": stats, "lines": log.lines(), "unreadableLines": unreadable});
        return Ok(output.print_json(&report)?);
    }
    let mut table = Table::new(["tool", "calls", "errors", "cached", "mean ms", "max ms"]);
    for (tool, stats) in stats {
        table.add_row(row(tool, stats));
    }
    Ok(output.print_table(&table)?)
}

fn row(tool: &str, stats: &ToolStats) -> [String; 6] {
    [
        tool.to_owned(),
        stats.calls.to_string(),
        stats.errors.to_string(),
        stats.cached.to_string(),
        show_ms(stats.mean_ms),
        show_ms(stats.max_ms),
    ]
}

fn show_ms(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))
}
