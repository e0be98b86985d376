//! `golden from-trace`: turns the traces of runs into goldens.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use innkeeper_agent::golden::{Golden, MAX_FILE_BYTES, Origin, Replay, replay};
use serde_json::json;

use super::judge::judge;
use super::plural;
use super::replay::failure_text;
use crate::atomic_file;
use crate::cli::FromTraceArgs;
use crate::error_chain::error_chain;
use crate::exit::{CliError, CliExitCode};
use crate::output::{Output, Style};

/// Maximum number of characters of a file name that come from the name of a test.
const MAX_NAME_CHARS: usize = 100;

/// Maximum number of goldens with the same name.
const MAX_SAME_NAMES: usize = 100_000;

#[derive(Debug)]
struct TraceLine<'f> {
    file: &'f Path,
    number: usize,
}

impl TraceLine<'_> {
    fn place(&self) -> String {
        format!("{}:{}", self.file.display(), self.number)
    }
}

/// The goldens that were written, and the lines that gave none.
#[derive(Debug, Default)]
struct Written {
    goldens: Vec<(String, PathBuf)>,
    failures: Vec<(String, String)>,
}

pub(super) async fn run(args: &FromTraceArgs, output: &mut Output) -> Result<(), CliError> {
    let mut written = Written::default();
    for file in &args.files {
        convert_file(file, args, &mut written, output).await?;
    }
    if output.is_json() {
        let Written { goldens, failures } = &written;
        let goldens = goldens
            .iter()
            .map(|(line, path)| json!({"line": line, "file": path.display().to_string()}));
        let failures =
            failures.iter().map(|(line, reason)| json!({"line": line, "reason": reason}));
        let report = json!({
            "goldens": goldens.collect::<Vec<_>>(),
            "failures": failures.collect::<Vec<_>>(),
        });
        output.print_json(&report)?;
    }
    let good = written.goldens.len();
    let bad = written.failures.len();
    if good + bad == 0 {
        let message = "the files have no traces".to_owned();
        return Err(CliError::failure(message).with_hint("name a file with one trace on each line"));
    }
    if !output.is_json() {
        output.status(&format!("{good} golden{} written, {bad} failed", plural(good)))?;
    }
    match bad {
        0 => Ok(()),
        _ => Err(CliError::without_message(CliExitCode::Failed)),
    }
}

async fn convert_file(
    file: &Path,
    args: &FromTraceArgs,
    written: &mut Written,
    output: &mut Output,
) -> Result<(), CliError> {
    let opened = File::open(file).map_err(|error| CliError::cannot_read(file, error))?;
    let mut reader = BufReader::new(opened);
    for number in 1_usize.. {
        let text = read_line(&mut reader).map_err(|error| CliError::cannot_read(file, error))?;
        let Some(text) = text else { break };
        if text.trim_ascii().is_empty() {
            continue;
        }
        let line = TraceLine { file, number };
        match trace_golden(&text).await {
            Ok(golden) => {
                let path = write_golden(&golden, &args.out)?;
                if !output.is_json() {
                    output.print_data(&path.display().to_string())?;
                }
                written.goldens.push((line.place(), path));
            }
            Err(reason) => {
                let message = format!("`{}`: {reason}", line.place());
                output.labelled_status(Style::Error, "failed", &message)?;
                written.failures.push((line.place(), reason));
            }
        }
    }
    Ok(())
}

/// Reads the next line without its end; a line beyond the limit is cut there and fails as JSON.
fn read_line(reader: &mut BufReader<File>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.by_ref().take(MAX_FILE_BYTES as u64 + 1).read_until(b'\n', &mut line)?;
    if line.len() > MAX_FILE_BYTES && !line.ends_with(b"\n") {
        // The rest of the line is no line of its own.
        reader.skip_until(b'\n')?;
    }
    Ok((!line.is_empty()).then_some(line))
}

/// Returns the golden of a trace that replays with the same result, or why there is none.
async fn trace_golden(text: &[u8]) -> Result<Golden, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let golden = Golden::from_json(text).map_err(|error| {
        error_chain(&error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
    })?;
    if golden.origin != Origin::Trace {
        return Err(format!("its origin is `{}`, not `trace`", golden.origin.as_str()));
    }
    let replayed = replay(&golden).await.and_then(Replay::require_complete);
    let replayed = replayed.map_err(|error| failure_text(&error))?;
    let judgement = judge(&golden, &replayed.golden, None);
    match judgement.passed {
        true => Ok(golden),
        false => Err(format!("it replays with another result: {}", judgement.report)),
    }
}

/// Writes a golden to a new file, whose name has a number if the name is taken.
fn write_golden(golden: &Golden, dir: &Path) -> Result<PathBuf, CliError> {
    fs::create_dir_all(dir).map_err(|error| CliError::cannot_write(dir, error))?;
    let text = golden.to_json().map_err(|error| CliError::cannot_write(dir, error))?;
    let stem = file_stem(&golden.test_name);
    for number in 1..=MAX_SAME_NAMES {
        let path = match number {
            1 => dir.join(format!("{stem}.json")),
            _ => dir.join(format!("{stem}-{number}.json")),
        };
        match atomic_file::create_private(&path, &text) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(CliError::cannot_write(&path, error)),
        }
    }
    let message = format!("`{}` has {MAX_SAME_NAMES} goldens `{stem}`", dir.display());
    Err(CliError::failure(message).with_hint("use `--out DIR` for another directory"))
}

/// Returns the name of a test as the name of a file: letters, digits, `_` and `-`.
fn file_stem(test_name: &str) -> String {
    let characters =
        test_name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' });
    let stem: String = characters.take(MAX_NAME_CHARS).collect();
    match stem.trim_matches('-') {
        "" => "trace".to_owned(),
        stem => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::sample;
    use super::*;

    #[test]
    fn the_name_of_a_test_becomes_a_safe_file_name() {
        for (name, stem) in [
            ("find_a_note", "find_a_note"),
            ("../../etc/passwd", "etc-passwd"),
            ("a.review", "a-review"),
            ("\u{1b}[2J", "2J"),
            ("世界", "trace"),
            ("", "trace"),
        ] {
            assert_eq!(file_stem(name), stem);
        }
        assert_eq!(file_stem(&"x".repeat(5_000)).len(), MAX_NAME_CHARS);
    }

    #[test]
    fn a_taken_name_gets_a_number() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("new/traces");
        let names: Vec<PathBuf> = (0..3).map(|_| write_golden(&sample(), &out).unwrap()).collect();
        let expected = ["find_a_note.json", "find_a_note-2.json", "find_a_note-3.json"];
        assert_eq!(names, expected.map(|name| out.join(name)));
    }

    #[tokio::test]
    async fn a_line_that_is_no_trace_says_why() {
        let recorded = serde_json::to_string(&sample()).unwrap();
        let reason = trace_golden(recorded.as_bytes()).await.unwrap_err();
        assert_eq!(reason, "its origin is `recorded`, not `trace`");
        let reason = trace_golden(b"{\"version\": 9}").await.unwrap_err();
        assert!(reason.contains("has version 9"), "{reason}");
    }
}
