//! Reads such a log again: how often each tool was run, and how long it took.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Kind, Line};

/// The longest line that is read, in bytes; those that are written have a few kibibytes.
pub const LINE: usize = 64 << 10;

/// How many durations are kept, the last ones.
pub const TIMELINE: usize = 10_000;

/// How many tools are told apart; those that come later are counted as unreadable lines.
const TOOLS: usize = 10_000;

/// A log that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the log `{}` cannot be read", path.display())]
pub struct AnalyseError {
    /// The file as it was named.
    pub path: PathBuf,
    /// Why.
    pub source: std::io::Error,
}

/// What a log says of one tool. Durations are in milliseconds, and there only if they were recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ToolStats {
    /// How often it was run.
    pub calls: u64,
    /// How often it had no answer or reported a failure.
    pub errors: u64,
    /// How often the answer was one from before.
    pub cached: u64,
    /// How long it took on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<f64>,
    /// How long it took at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<f64>,
    #[serde(skip)]
    timed: u64,
    #[serde(skip)]
    total_ms: f64,
}

/// How long something took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// When it had come to its end, in milliseconds since 1970.
    pub timestamp: u64,
    /// What it was.
    pub event_type: Kind,
    /// The tool, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
}

/// What a log says.
#[derive(Clone, Debug, Default)]
pub struct LogAnalyzer {
    tools: BTreeMap<String, ToolStats>,
    timeline: std::collections::VecDeque<Moment>,
    lines: u64,
    unreadable: u64,
}

impl LogAnalyzer {
    /// Reads a log line by line. Lines that are none of a log are counted and left out.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, AnalyseError> {
        let path = path.as_ref();
        let failed = |source| AnalyseError { path: path.to_owned(), source };
        let mut file = BufReader::new(File::open(path).map_err(failed)?);
        let mut all = Self::default();
        let mut line = Vec::new();
        while next_line(&mut file, &mut line).map_err(failed)? {
            match serde_json::from_slice::<Line>(&line) {
                Ok(line) => all.add(&line),
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(_) => all.unreadable += 1,
            }
        }
        Ok(all)
    }

    /// What was run, by the name of the tool.
    pub fn tool_execution_stats(&self) -> &BTreeMap<String, ToolStats> {
        &self.tools
    }

    /// What took how long, in the order of the log; the last [`TIMELINE`] of it.
    pub fn performance_timeline(&self) -> impl Iterator<Item = &Moment> {
        self.timeline.iter()
    }

    /// How many lines could be read.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// How many lines could not.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    fn add(&mut self, line: &Line) {
        self.lines += 1;
        let tool = line.details.get("tool").and_then(serde_json::Value::as_str);
        if let (Some(tool), Kind::ToolExecutionComplete | Kind::ToolExecutionError) =
            (tool, line.event_type)
        {
            if !self.tools.contains_key(tool) && self.tools.len() == TOOLS {
                self.unreadable += 1;
                return;
            }
            let cached = line.details.get("cached") == Some(&serde_json::Value::Bool(true));
            let failed = line.event_type == Kind::ToolExecutionError;
            let stats = self.tools.entry(tool.to_owned()).or_default();
            stats.add(failed, cached, line.duration_ms);
        }
        if let Some(duration_ms) = line.duration_ms {
            if self.timeline.len() == TIMELINE {
                self.timeline.pop_front();
            }
            let (timestamp, event_type) = (line.timestamp, line.event_type);
            let tool = tool.map(str::to_owned);
            self.timeline.push_back(Moment { timestamp, event_type, tool, duration_ms });
        }
    }
}

impl ToolStats {
    fn add(&mut self, failed: bool, cached: bool, took: Option<f64>) {
        self.calls += 1;
        self.errors += u64::from(failed);
        self.cached += u64::from(cached);
        if let Some(took) = took {
            self.timed += 1;
            self.total_ms += took;
            self.mean_ms = Some(self.total_ms / self.timed as f64);
            self.max_ms = Some(self.max_ms.map_or(took, |most| most.max(took)));
        }
    }
}

/// Reads up to the next line end; of a line that is too long, the beginning.
fn next_line(file: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let read = file.by_ref().take(LINE as u64).read_until(b'\n', line)?;
    if read == LINE && !line.ends_with(b"\n") {
        file.skip_until(b'\n')?;
    }
    Ok(read > 0)
}
