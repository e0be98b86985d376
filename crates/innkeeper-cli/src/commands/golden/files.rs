//! Finds and reads the files of goldens.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::vec;

use innkeeper_agent::golden::{Golden, MAX_FILE_BYTES, MAX_RULES_BYTES, Rules};
use serde::de::IgnoredAny;

use super::plural;
use crate::exit::CliError;
use crate::input_file;
use crate::output::Output;

/// Maximum depth of directories below the named one.
const MAX_DIR_DEPTH: usize = 32;

/// Endings of files beside a golden that belong to it.
const COMPANION_ENDINGS: [&str; 2] = [".rules.json", ".review.json"];

/// Members that only goldens have: a file with one of them is a golden, also if others are missing.
const MARKING_MEMBERS: [&str; 3] = ["test_name", "golden_output", "provider_responses"];

#[derive(Debug)]
pub(in crate::commands) struct GoldenFile {
    /// The path, as the user wrote it or its directory.
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(in crate::commands) golden: Golden,
}

impl GoldenFile {
    /// Returns the path as text.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Reads the rules next to the golden, in `NAME.rules.json`; `None` without such a file.
    ///
    /// # Errors
    ///
    /// The file is unreadable or has no valid rules, or the golden has rules of its own.
    pub(in crate::commands) fn rules(&self) -> Result<Option<Rules>, CliError> {
        let path = self.path.with_extension("rules.json");
        let text = match input_file::read_regular(&path, MAX_RULES_BYTES as u64) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&path, error)),
        };
        let name = path.display();
        if self.golden.rules.is_some() {
            return Err(CliError::usage(format!("`{name}`: the golden has rules of its own"))
                .with_hint("keep one of them"));
        }
        Rules::from_json(text.as_bytes()).map(Some).map_err(|error| {
            CliError::usage(format!("`{name}` has no valid rules")).with_source(error)
        })
    }
}

/// The goldens of files and directories, read one after the other.
#[derive(Debug)]
pub(super) struct GoldenFiles {
    paths: vec::IntoIter<FoundPath>,
    skipped: usize,
}

/// A path that may be a golden.
#[derive(Debug)]
struct FoundPath {
    path: PathBuf,
    /// Whether the user named the file itself.
    is_named: bool,
}

impl GoldenFiles {
    /// Finds the goldens of files and directories; those of a directory are sorted.
    ///
    /// # Errors
    ///
    /// A path does not exist, or a directory is unreadable.
    pub(super) fn find(paths: &[PathBuf]) -> Result<Self, CliError> {
        let mut found = Vec::new();
        for path in paths {
            if fs::metadata(path).map_err(|error| unreadable(path, error))?.is_dir() {
                let first = found.len();
                search(path, 0, &mut found)?;
                found[first..].sort_by(|one, other| one.path.cmp(&other.path));
            } else {
                found.push(FoundPath { path: path.clone(), is_named: true });
            }
        }
        Ok(Self { paths: found.into_iter(), skipped: 0 })
    }

    /// Says how many files were no goldens.
    pub(super) fn report_skipped(&self, output: &mut Output) -> Result<(), CliError> {
        let count = self.skipped;
        if count == 0 {
            return Ok(());
        }
        let verb = if count == 1 { "is no golden" } else { "are no goldens" };
        Ok(output.status(&format!("skipped {count} file{} that {verb}", plural(count)))?)
    }
}

impl Iterator for GoldenFiles {
    type Item = Result<GoldenFile, CliError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let FoundPath { path, is_named } = self.paths.next()?;
            let text = match read_text(&path) {
                Ok(text) => text,
                Err(error) => return Some(Err(error)),
            };
            if !is_named && is_other_json(&text) {
                self.skipped += 1;
                continue;
            }
            return Some(parse(path, text));
        }
    }
}

/// Reads one golden.
///
/// # Errors
///
/// The file is unreadable or no golden.
pub(in crate::commands) fn read(path: &Path) -> Result<GoldenFile, CliError> {
    parse(path.to_owned(), read_text(path)?)
}

fn read_text(path: &Path) -> Result<String, CliError> {
    input_file::read_regular(path, MAX_FILE_BYTES as u64).map_err(|error| unreadable(path, error))
}

fn parse(path: PathBuf, text: String) -> Result<GoldenFile, CliError> {
    match Golden::from_json(&text) {
        Ok(golden) => Ok(GoldenFile { path, text, golden }),
        Err(error) => {
            let failure = CliError::usage(format!("`{}` is no golden", path.display()));
            Err(failure.with_source(error).with_hint("name a file that a recording wrote"))
        }
    }
}

fn unreadable(path: &Path, error: io::Error) -> CliError {
    let failure = CliError::usage(format!("cannot read `{}`", path.display()));
    let failure = match error.kind() {
        io::ErrorKind::NotFound => {
            failure.with_hint("name the file of a golden, or the directory of your goldens")
        }
        _ => failure,
    };
    failure.with_source(error)
}

/// Adds the files of a directory that end with `.json`. Links to directories are not followed.
fn search(dir: &Path, depth: usize, found: &mut Vec<FoundPath>) -> Result<(), CliError> {
    if depth > MAX_DIR_DEPTH {
        let message = format!("`{}` is more than {MAX_DIR_DEPTH} directories deep", dir.display());
        return Err(CliError::usage(message));
    }
    for entry in fs::read_dir(dir).map_err(|error| unreadable(dir, error))? {
        let entry = entry.map_err(|error| unreadable(dir, error))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| unreadable(&path, error))?;
        if kind.is_dir() {
            search(&path, depth + 1, found)?;
        } else if is_candidate(&path) && fs::metadata(&path).is_ok_and(|target| target.is_file()) {
            found.push(FoundPath { path, is_named: false });
        }
    }
    Ok(())
}

/// Returns whether a file may be a golden by its name.
fn is_candidate(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".json") && !COMPANION_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns whether a text is JSON of another kind.
fn is_other_json(text: &str) -> bool {
    match serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text) {
        Ok(members) => !MARKING_MEMBERS.iter().any(|member| members.contains_key(*member)),
        Err(error) => error.is_data(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::captured_output;

    #[test]
    fn a_directory_gives_its_goldens_in_order_and_counts_other_json() {
        let dir = tempfile::tempdir().unwrap();
        let golden = super::super::samples::sample().to_json().unwrap();
        fs::create_dir_all(dir.path().join("a/shared")).unwrap();
        for (name, text) in [
            ("b.json", golden.as_str()),
            ("a/c.json", &golden),
            ("a/c.rules.json", "not read"),
            ("a/c.review.json", "not read"),
            ("a/notes.txt", "not read"),
            ("a/shared/tool_schema_definitions.json", r#"{"tools": []}"#),
            ("list.json", "[1, 2]"),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let mut files = GoldenFiles::find(&[dir.path().to_owned()]).unwrap();
        let names: Vec<PathBuf> = files.by_ref().map(|file| file.unwrap().path).collect();
        assert_eq!(names, [dir.path().join("a/c.json"), dir.path().join("b.json")]);
        let (mut output, _, err) = captured_output(false, false);
        files.report_skipped(&mut output).unwrap();
        assert_eq!(err.text(), "skipped 2 files that are no goldens\n");
    }

    #[test]
    fn broken_json_in_a_directory_is_not_skipped() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.json"), "{\"version\": 1,").unwrap();
        let file = GoldenFiles::find(&[dir.path().to_owned()]).unwrap().next().unwrap();
        assert!(file.unwrap_err().to_line().contains("a.json` is no golden"));
    }
}
