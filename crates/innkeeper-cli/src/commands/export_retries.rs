//! `export-retries`: what models wrote wrong and then right, as pairs to learn from.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde_json::{Value, json};

use crate::args::ExportRetriesArgs;
use crate::exit::Failure;
use crate::output::Output;

/// The longest line that is read, in bytes: as long as an answer may be.
const LINE: u64 = 64 << 20;

/// Prints a pair for each attempt: what was asked, what was wrong, and what was right.
pub(crate) fn export_retries(args: &ExportRetriesArgs, output: &mut Output) -> Result<(), Failure> {
    let unread = |error| {
        let shown = args.file.display();
        Failure::usage(format!("`{shown}` cannot be read")).because(error)
    };
    let file = std::fs::File::open(&args.file).map_err(unread)?;
    let mut reader = BufReader::new(file);
    let mut all = Vec::new();
    for number in 1_usize.. {
        let mut line = Vec::new();
        std::io::Read::take(&mut reader, LINE).read_until(b'\n', &mut line).map_err(unread)?;
        if line.is_empty() {
            break;
        }
        for pair in pairs(&line).ok_or_else(|| wrong(&args.file, number))? {
            if output.is_json() {
                all.push(pair);
            } else {
                output.data(&pair.to_string())?;
            }
        }
    }
    if output.is_json() {
        output.value(&all)?;
    }
    Ok(())
}

fn wrong(file: &Path, line: usize) -> Failure {
    let text = format!("{}:{line}: not a line that `ask --retries` writes", file.display());
    Failure::usage(text)
}

/// The pairs of one line; `None` where it is not one of these lines.
fn pairs(line: &[u8]) -> Option<Vec<Value>> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Some(Vec::new());
    }
    let lesson: Value = serde_json::from_slice(line).ok()?;
    let corrected = lesson.get("corrected")?.as_str()?;
    let attempts = lesson.get("attempts")?.as_array()?;
    let pair = |attempt: &Value| {
        Some(json!({
            "model": lesson.get("model")?.as_str()?,
            "prompt": lesson.get("asked")?.as_str()?,
            "rejected": attempt.get("text")?.as_str()?,
            "problem": attempt.get("problem")?.as_str()?,
            "chosen": corrected,
        }))
    };
    attempts.iter().map(pair).collect()
}
