//! `export-retries`: prints failed and corrected calls as training pairs.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::ExportRetriesArgs;
use crate::exit::CliError;
use crate::output::Output;

/// Maximum number of bytes in a line; equals the limit of one model response.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Prints one pair per failed attempt: prompt, rejected reply and accepted reply.
pub(crate) fn export_retries(
    args: &ExportRetriesArgs,
    output: &mut Output,
) -> Result<(), CliError> {
    let file = std::fs::File::open(&args.file)
        .map_err(|error| CliError::cannot_read(&args.file, error))?;
    let mut reader = BufReader::new(file);
    let mut all = Vec::new();
    for number in 1_usize.. {
        let mut line = Vec::new();
        std::io::Read::take(&mut reader, MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(|error| CliError::cannot_read(&args.file, error))?;
        if line.is_empty() {
            break;
        }
        for pair in training_pairs(&line).ok_or_else(|| invalid_line_error(&args.file, number))? {
            if output.is_json() {
                all.push(pair);
            } else {
                output.print_data(&pair.to_string())?;
            }
        }
    }
    if output.is_json() {
        output.print_json(&all)?;
    }
    Ok(())
}

fn invalid_line_error(file: &Path, line: usize) -> CliError {
    let text = format!("`{}:{line}` is not a line of `ask --retries`", file.display());
    CliError::usage(text)
}

/// Returns the pairs of one line; `None` if `ask --retries` did not write the line.
fn training_pairs(line: &[u8]) -> Option<Vec<Value>> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Some(Vec::new());
    }
    let lesson: Value = serde_json::from_slice(line).ok()?;
    let corrected = lesson.get("corrected")?.as_str()?;
    let attempts = lesson.get("attempts")?.as_array()?;
    attempts
        .iter()
        .map(|attempt| {
            Some(json!({
                "model": lesson.get("model")?.as_str()?,
                "prompt": lesson.get("asked")?.as_str()?,
                "rejected": attempt.get("text")?.as_str()?,
                "problem": attempt.get("problem")?.as_str()?,
                "chosen": corrected,
            }))
        })
        .collect()
}
