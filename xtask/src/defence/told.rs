//! What the bench and the texts of other corpora told, held against what there is to tell.
//!
//! A field that is not there and a corpus that has become smaller are errors: read as nothing, either
//! would be a better score.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::Chore;
use crate::program::relative;

/// Kinds of attack and cases of them that the pinned bench runs over stdio.
const KINDS: usize = 14;
const CASES: usize = 23;

/// Harmless items that the pinned bench runs over stdio.
const HARMLESS: usize = 312;

/// What the pinned packages have: a corpus, in how many lines it is told, and how much each reads.
const CORPORA: [(&str, usize, u64); 4] = [
    // One for each mode.
    ("harmless items", 2, 312),
    ("BFCL, function documents", 1, 3_420),
    ("BFCL, calls", 1, 3_302),
    // One for each template, and one without; each with every goal.
    ("AgentDojo", 7, 46),
];

/// The results of one run of the bench.
pub(super) struct Told {
    /// The file, for messages.
    file: String,
    value: Value,
}

impl Told {
    pub(super) fn read(path: &Path) -> Chore<Self> {
        let file = relative(path);
        let problem = |error: String| format!("`{file}`: {error}");
        let text = fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
        let value = serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
        Ok(Self { file, value })
    }

    /// How much of the kinds that were run was stopped, and how many they are.
    pub(super) fn measured(&self) -> Chore<(f64, usize)> {
        let kinds = self.value["coverage"].as_object();
        let (mut stopped, mut run) = (0.0, 0);
        for name in kinds.ok_or_else(|| self.lacks("/coverage"))?.keys() {
            let field = |field| format!("/coverage/{name}/{field}");
            let verified = field("verified");
            if self.find(&verified)?.as_bool().ok_or_else(|| self.lacks(&verified))? {
                let part = field("robustCoverage");
                stopped += self.find(&part)?.as_f64().ok_or_else(|| self.lacks(&part))?;
                run += 1;
            }
        }
        self.at_least(run, KINDS, "kinds of attack that were run")?;
        self.at_least(self.list("cases")?.len(), CASES, "cases")?;
        Ok((stopped, run))
    }

    /// How many harmless items were blocked or flagged, of how many.
    pub(super) fn harmless(&self) -> Chore<(u64, usize)> {
        let (flagged, items) = (self.count("/summary/falsePositives")?, self.list("items")?.len());
        self.at_least(items, HARMLESS, "harmless items")?;
        Ok((flagged, items))
    }

    /// Fails if more than so many of a hundred were false alarms.
    pub(super) fn false_alarms(&self, of: &str, bearable: u64) -> Chore {
        let count = self.count("/summary/falsePositives")?;
        let all = self.list(of)?.len() as u64;
        if count * 100 <= bearable * all {
            Ok(())
        } else {
            Err(format!("`{}`: {count} false alarms", self.file))
        }
    }

    fn find(&self, pointer: &str) -> Chore<&Value> {
        self.value.pointer(pointer).ok_or_else(|| self.lacks(pointer))
    }

    fn count(&self, pointer: &str) -> Chore<u64> {
        self.find(pointer)?.as_u64().ok_or_else(|| self.lacks(pointer))
    }

    fn list(&self, name: &str) -> Chore<&Vec<Value>> {
        self.value[name].as_array().ok_or_else(|| self.lacks(&format!("/{name}")))
    }

    fn text(&self, pointer: &str) -> Chore<&str> {
        self.find(pointer)?.as_str().ok_or_else(|| self.lacks(pointer))
    }

    fn lacks(&self, pointer: &str) -> String {
        format!("`{}`: nothing that can be used at `{pointer}`", self.file)
    }

    fn at_least(&self, count: usize, least: usize, what: &str) -> Chore {
        if count >= least {
            Ok(())
        } else {
            Err(format!("`{}`: {count} {what}, expected {least}", self.file))
        }
    }
}

/// A row for each attack of the bench: what it is, and what became of it in each mode.
pub(super) fn vectors(told: &[Told]) -> Chore<Vec<Vec<String>>> {
    let Some(first) = told.first() else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for at in 0..first.list("cases")?.len() {
        let id = format!("/cases/{at}/id");
        let mut row = vec![first.text(&id)?.to_owned()];
        for mode in told {
            if mode.text(&id)? != row[0] {
                return Err(format!("`{}`: another case than `{}` at `{id}`", mode.file, row[0]));
            }
            row.push(mode.text(&format!("/cases/{at}/level"))?.to_owned());
        }
        rows.push(row);
    }
    Ok(rows)
}

/// What is told of the texts of other corpora, one line of JSON for each, in words.
pub(super) fn corpora(text: &str) -> Chore<Vec<String>> {
    let mut told = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let file = format!("line {} of `texts.py`", number + 1);
        let value = serde_json::from_str(line).map_err(|error| format!("{file}: {error}"))?;
        told.push(Told { file, value });
    }
    for (corpus, lines, least) in CORPORA {
        let of = told.iter().filter(|told| told.text("/corpus").is_ok_and(|name| name == corpus));
        let of: Vec<&Told> = of.collect();
        if of.len() < lines {
            return Err(format!("`texts.py`: {} lines of `{corpus}`, expected {lines}", of.len()));
        }
        for line in of {
            let least = usize::try_from(least).unwrap_or(usize::MAX);
            let read = usize::try_from(line.count("/read")?).unwrap_or(usize::MAX);
            line.at_least(read, least, &format!("texts of `{corpus}`"))?;
        }
    }
    told.iter().map(words).collect()
}

fn words(told: &Told) -> Chore<String> {
    let (corpus, of) = (told.text("/corpus")?, told.text("/of")?);
    let (held, read, flagged) =
        (told.count("/held")?, told.count("/read")?, told.count("/flagged")?);
    Ok(format!("{corpus}, {of}: {held} of {read} held back, {flagged} findings"))
}

#[cfg(test)]
mod tests;
