//! Reads an event log and counts tool executions and their durations.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{LogEntry, LogEventKind};

/// Maximum number of bytes in a line; written lines have a few KiB.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// Number of the latest durations that are retained.
pub const MAX_TIMELINE_ENTRIES: usize = 10_000;

/// Maximum number of distinct tools; lines of further tools are counted as unreadable.
const MAX_TOOLS: usize = 10_000;

/// A log that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read log `{}`", path.display())]
pub struct LogReadError {
    /// The path as given.
    pub path: PathBuf,
    /// The cause.
    pub source: std::io::Error,
}

/// The counts of one tool. Durations are in milliseconds, and present only if they were logged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ToolStats {
    /// The number of calls.
    pub calls: u64,
    /// The number of calls without a result or with a reported failure.
    pub errors: u64,
    /// The number of calls with a cached result.
    pub cached: u64,
    /// The mean duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<f64>,
    /// The longest duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<f64>,
    #[serde(skip)]
    timed_calls: u64,
    #[serde(skip)]
    total_ms: f64,
}

/// The duration of one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineEntry {
    /// The time of the end, in milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// The type of the event.
    pub event_type: LogEventKind,
    /// The tool, if the event belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The duration in milliseconds.
    pub duration_ms: f64,
}

/// The counts of an event log, of at most 10,000 tools.
#[derive(Clone, Debug, Default)]
pub struct LogAnalyzer {
    tools: BTreeMap<String, ToolStats>,
    timeline: std::collections::VecDeque<TimelineEntry>,
    lines: u64,
    unreadable_lines: u64,
}

impl LogAnalyzer {
    /// Reads a log line by line. Lines that are not log entries are counted and skipped.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, LogReadError> {
        let path = path.as_ref();
        let to_error = |source| LogReadError { path: path.to_owned(), source };
        let mut file = BufReader::new(File::open(path).map_err(to_error)?);
        let mut all = Self::default();
        let mut line = Vec::new();
        while next_line(&mut file, &mut line).map_err(to_error)? {
            match serde_json::from_slice::<LogEntry>(&line) {
                Ok(line) => all.add(&line),
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(_) => all.unreadable_lines += 1,
            }
        }
        Ok(all)
    }

    /// Returns the counts by the name of the tool.
    pub fn tool_execution_stats(&self) -> &BTreeMap<String, ToolStats> {
        &self.tools
    }

    /// Returns the last [`MAX_TIMELINE_ENTRIES`] durations, in the order of the log.
    pub fn performance_timeline(&self) -> impl Iterator<Item = &TimelineEntry> {
        self.timeline.iter()
    }

    /// Returns the number of readable lines.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the number of unreadable lines.
    pub fn unreadable(&self) -> u64 {
        self.unreadable_lines
    }

    fn add(&mut self, line: &LogEntry) {
        self.lines += 1;
        let tool = line.details.get("tool").and_then(serde_json::Value::as_str);
        if let (
            Some(tool),
            LogEventKind::ToolExecutionComplete | LogEventKind::ToolExecutionError,
        ) = (tool, line.event_type)
        {
            if !self.tools.contains_key(tool) && self.tools.len() == MAX_TOOLS {
                self.unreadable_lines += 1;
                return;
            }
            let cached = line.details.get("cached") == Some(&serde_json::Value::Bool(true));
            let is_error = line.event_type == LogEventKind::ToolExecutionError;
            let stats = self.tools.entry(tool.to_owned()).or_default();
            stats.add(is_error, cached, line.duration_ms);
        }
        if let Some(duration_ms) = line.duration_ms {
            if self.timeline.len() == MAX_TIMELINE_ENTRIES {
                self.timeline.pop_front();
            }
            let timestamp = line.timestamp;
            let event_type = line.event_type;
            let tool = tool.map(str::to_owned);
            self.timeline.push_back(TimelineEntry { timestamp, event_type, tool, duration_ms });
        }
    }
}

impl ToolStats {
    fn add(&mut self, is_error: bool, cached: bool, took: Option<f64>) {
        self.calls += 1;
        self.errors += u64::from(is_error);
        self.cached += u64::from(cached);
        if let Some(took) = took {
            self.timed_calls += 1;
            self.total_ms += took;
            self.mean_ms = Some(self.total_ms / self.timed_calls as f64);
            self.max_ms = Some(self.max_ms.map_or(took, |max| max.max(took)));
        }
    }
}

/// Reads up to the next line end; only the beginning of a line that is too long.
fn next_line(file: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let read = file.by_ref().take(MAX_LINE_BYTES as u64).read_until(b'\n', line)?;
    if read == MAX_LINE_BYTES && !line.ends_with(b"\n") {
        file.skip_until(b'\n')?;
    }
    Ok(read > 0)
}
