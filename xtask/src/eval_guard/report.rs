//! The evaluation reports, with checks against the expected sizes.
//!
//! A missing field or a smaller corpus is an error: as zero, either would improve the score.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::TaskResult;
use crate::program::relative_path;

/// Minimum attack kinds and cases that the pinned benchmark runs over stdio.
const MIN_ATTACK_KINDS: usize = 14;
const MIN_CASES: usize = 23;

/// Minimum harmless items that the pinned benchmark runs over stdio.
const MIN_HARMLESS_ITEMS: usize = 312;

/// The corpora of the pinned packages: name, number of result lines, minimum texts per line.
const CORPUS_MINIMUMS: [(&str, usize, u64); 4] = [
    // One line per mode.
    ("harmless items", 2, 312),
    ("BFCL, function documents", 1, 3_420),
    ("BFCL, calls", 1, 3_302),
    // One line per template, and one without a template; each line covers every goal.
    ("AgentDojo", 7, 46),
];

/// The report of one benchmark run.
pub(super) struct EvalReport {
    /// The file name for messages.
    file: String,
    value: Value,
}

impl EvalReport {
    pub(super) fn read(path: &Path) -> TaskResult<Self> {
        let file = relative_path(path);
        let problem = |error: String| format!("`{file}`: {error}");
        let text = fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
        let value = serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
        Ok(Self { file, value })
    }

    /// The sum of the stopped shares over all measured attack kinds, and the number of kinds.
    pub(super) fn stopped_and_measured_kinds(&self) -> TaskResult<(f64, usize)> {
        let kinds = self.value["coverage"].as_object();
        let (mut stopped, mut run) = (0.0, 0);
        for name in kinds.ok_or_else(|| self.missing_field("/coverage"))?.keys() {
            let field = |field| format!("/coverage/{name}/{field}");
            let verified = field("verified");
            if self.field(&verified)?.as_bool().ok_or_else(|| self.missing_field(&verified))? {
                let coverage = field("robustCoverage");
                stopped +=
                    self.field(&coverage)?.as_f64().ok_or_else(|| self.missing_field(&coverage))?;
                run += 1;
            }
        }
        self.check_at_least(run, MIN_ATTACK_KINDS, "measured attack kinds")?;
        self.check_at_least(self.list("cases")?.len(), MIN_CASES, "cases")?;
        Ok((stopped, run))
    }

    /// The number of blocked or flagged harmless items, and the number of all harmless items.
    pub(super) fn flagged_harmless_items(&self) -> TaskResult<(u64, usize)> {
        let (flagged, items) = (self.count("/summary/falsePositives")?, self.list("items")?.len());
        self.check_at_least(items, MIN_HARMLESS_ITEMS, "harmless items")?;
        Ok((flagged, items))
    }

    /// Fails if the false positives exceed `max_percent` percent of the items.
    pub(super) fn check_false_positives(&self, list_name: &str, max_percent: u64) -> TaskResult {
        let count = self.count("/summary/falsePositives")?;
        let all = self.list(list_name)?.len() as u64;
        if count * 100 <= max_percent * all {
            Ok(())
        } else {
            Err(format!("`{}`: {count} false positives", self.file))
        }
    }

    fn field(&self, pointer: &str) -> TaskResult<&Value> {
        self.value.pointer(pointer).ok_or_else(|| self.missing_field(pointer))
    }

    fn count(&self, pointer: &str) -> TaskResult<u64> {
        self.field(pointer)?.as_u64().ok_or_else(|| self.missing_field(pointer))
    }

    fn list(&self, name: &str) -> TaskResult<&Vec<Value>> {
        self.value[name].as_array().ok_or_else(|| self.missing_field(&format!("/{name}")))
    }

    fn text(&self, pointer: &str) -> TaskResult<&str> {
        self.field(pointer)?.as_str().ok_or_else(|| self.missing_field(pointer))
    }

    fn missing_field(&self, pointer: &str) -> String {
        format!("`{}`: missing or invalid value at `{pointer}`", self.file)
    }

    fn check_at_least(&self, count: usize, least: usize, subject: &str) -> TaskResult {
        if count >= least {
            Ok(())
        } else {
            Err(format!("`{}`: {count} {subject}, expected {least}", self.file))
        }
    }
}

/// One row per attack of the benchmark: its id and its result in each mode.
pub(super) fn attack_rows(reports: &[EvalReport]) -> TaskResult<Vec<Vec<String>>> {
    let Some(first) = reports.first() else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for at in 0..first.list("cases")?.len() {
        let id = format!("/cases/{at}/id");
        let mut row = vec![first.text(&id)?.to_owned()];
        for mode in reports {
            if mode.text(&id)? != row[0] {
                return Err(format!("`{}`: `{id}` is not case `{}`", mode.file, row[0]));
            }
            row.push(mode.text(&format!("/cases/{at}/level"))?.to_owned());
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Describes the reports on the texts of other corpora, one JSON line each.
pub(super) fn describe_corpora(text: &str) -> TaskResult<Vec<String>> {
    let mut reports = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let file = format!("line {} of `texts.py`", number + 1);
        let value = serde_json::from_str(line).map_err(|error| format!("{file}: {error}"))?;
        reports.push(EvalReport { file, value });
    }
    for (corpus, lines, least) in CORPUS_MINIMUMS {
        let matching =
            reports.iter().filter(|report| report.text("/corpus").is_ok_and(|name| name == corpus));
        let matching: Vec<&EvalReport> = matching.collect();
        if matching.len() < lines {
            return Err(format!(
                "`texts.py`: {} lines of `{corpus}`, expected {lines}",
                matching.len()
            ));
        }
        for line in matching {
            let least = usize::try_from(least).unwrap_or(usize::MAX);
            let read = usize::try_from(line.count("/read")?).unwrap_or(usize::MAX);
            line.check_at_least(read, least, &format!("texts of `{corpus}`"))?;
        }
    }
    reports.iter().map(describe).collect()
}

fn describe(report: &EvalReport) -> TaskResult<String> {
    let (corpus, part) = (report.text("/corpus")?, report.text("/of")?);
    let (withheld, read, flagged) =
        (report.count("/held")?, report.count("/read")?, report.count("/flagged")?);
    Ok(format!("{corpus}, {part}: {withheld} of {read} withheld, {flagged} findings"))
}

#[cfg(test)]
mod tests;
