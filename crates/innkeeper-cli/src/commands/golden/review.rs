//! `golden review`: marks a golden as good or wrong, and shows its marks.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::author::author;
use super::files;
use crate::cli::{MarkArg, ReviewArgs};
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::output::{Output, Style, escape_inline};
use crate::timestamp::format_second_rfc3339;
use crate::{atomic_file, input_file};

/// Ending of the file with the marks of a golden.
const REVIEW_ENDING: &str = "review.json";

/// Maximum size of a file with marks: thousands of them.
const MAX_REVIEW_BYTES: u64 = 1 << 20;

/// A mark of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Review {
    pub(super) mark: Mark,
    pub(super) note: Option<String>,
    pub(super) who: String,
    pub(super) when: String,
    /// The hash of the marked file.
    pub(super) golden_sha256: String,
}

/// What a person thinks of a recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mark {
    Good,
    Wrong,
    Unsure,
}

impl From<MarkArg> for Mark {
    fn from(mark: MarkArg) -> Self {
        match mark {
            MarkArg::Good => Self::Good,
            MarkArg::Wrong => Self::Wrong,
            MarkArg::Unsure => Self::Unsure,
        }
    }
}

impl Mark {
    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Wrong => "wrong",
            Self::Unsure => "unsure",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Good => Style::Good,
            Self::Wrong => Style::Error,
            Self::Unsure => Style::Note,
        }
    }
}

impl Review {
    pub(super) fn to_line(&self) -> String {
        let Self { mark, note, who, when, .. } = self;
        let note = note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        format!("{} on {when} by {who}{note}", mark.as_str())
    }
}

pub(super) fn run(context: &mut CommandContext, args: ReviewArgs) -> Result<(), CliError> {
    let file = files::read(&args.file)?;
    let hash = sha256(&file.text);
    let mut reviews = read_reviews(&file.path)?;
    let Some(mark) = args.mark else {
        return print(&mut context.output, &file.name(), &reviews, &hash);
    };
    let review = Review {
        mark: mark.into(),
        note: args.note,
        who: author(args.who.as_deref(), &context.environment)?,
        when: format_second_rfc3339(SystemTime::now()),
        golden_sha256: hash,
    };
    reviews.push(review.clone());
    let path = review_path(&file.path);
    write_reviews(&path, &reviews)?;
    let output = &mut context.output;
    if output.is_json() {
        output.print_json(&json!({"file": path.display().to_string(), "review": review}))?;
        return Ok(());
    }
    Ok(output.status(&format!("marked as {} in `{}`", review.mark.as_str(), path.display()))?)
}

/// Returns the file with the marks of a golden.
fn review_path(golden: &Path) -> PathBuf {
    golden.with_extension(REVIEW_ENDING)
}

/// Reads the marks of a golden; none if there is no file.
///
/// # Errors
///
/// The file is unreadable or has something else.
pub(super) fn read_reviews(golden: &Path) -> Result<Vec<Review>, CliError> {
    let path = review_path(golden);
    let text = match input_file::read_regular(&path, MAX_REVIEW_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let message = format!("cannot read `{}`", path.display());
            return Err(CliError::usage(message).with_source(error));
        }
    };
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("`{}` has no marks of `golden review`", path.display());
        CliError::usage(message)
            .with_source(error)
            .with_hint("repair the file, or move it away and mark the golden again")
    })
}

fn write_reviews(path: &Path, reviews: &[Review]) -> Result<(), CliError> {
    let mut text = serde_json::to_string_pretty(reviews)
        .map_err(|error| CliError::cannot_write(path, error))?;
    text.push('\n');
    if text.len() as u64 > MAX_REVIEW_BYTES {
        let message = format!("`{}` is full", path.display());
        return Err(CliError::failure(message).with_hint("move the file away to start a new one"));
    }
    atomic_file::write_private(path, &text).map_err(|error| CliError::cannot_write(path, error))
}

fn print(
    output: &mut Output,
    name: &str,
    reviews: &[Review],
    present_hash: &str,
) -> Result<(), CliError> {
    let is_current = |review: &Review| review.golden_sha256 == present_hash;
    if output.is_json() {
        let list: Vec<_> = reviews
            .iter()
            .map(|review| json!({"review": review, "is_current": is_current(review)}))
            .collect();
        return Ok(output.print_json(&json!({"file": name, "reviews": list}))?);
    }
    for review in reviews {
        let line = review.to_line();
        let rest = escape_inline(line.strip_prefix(review.mark.as_str()).unwrap_or(&line));
        let mark = output.paint(review.mark.style(), review.mark.as_str());
        let changed = if is_current(review) { "" } else { " (the golden has changed since)" };
        output.print_message(&format!("{mark}{rest}{changed}"))?;
    }
    if reviews.is_empty() {
        let text = format!("nobody has marked `{name}`; use `--mark good|wrong|unsure`");
        output.status(&text)?;
    }
    Ok(())
}

fn sha256(text: &str) -> String {
    format!("{:x}", Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::captured_output;

    fn review(mark: Mark, note: Option<&str>, hash: &str) -> Review {
        Review {
            mark,
            note: note.map(str::to_owned),
            who: "ada".to_owned(),
            when: "2026-11-29T05:40:00Z".to_owned(),
            golden_sha256: hash.to_owned(),
        }
    }

    #[test]
    fn a_mark_says_if_the_golden_has_changed_since() {
        let reviews =
            [review(Mark::Wrong, Some("two\u{1b} calls"), "old"), review(Mark::Good, None, "new")];
        let (mut output, out, _) = captured_output(false, false);
        print(&mut output, "a.json", &reviews, "new").unwrap();
        insta::assert_snapshot!(out.text(), @r"
        wrong on 2026-11-29T05:40:00Z by ada: two\u{1b} calls (the golden has changed since)
        good on 2026-11-29T05:40:00Z by ada
        ");
        let (mut output, out, err) = captured_output(false, false);
        print(&mut output, "a.json", &[], "new").unwrap();
        assert_eq!(out.text(), "");
        assert!(err.text().starts_with("nobody has marked `a.json`"), "{}", err.text());
    }

    #[test]
    fn marks_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let golden = dir.path().join("a.b.json");
        assert_eq!(read_reviews(&golden).unwrap(), []);
        let reviews = [review(Mark::Unsure, Some("?"), "h")];
        let path = review_path(&golden);
        assert_eq!(path, dir.path().join("a.b.review.json"));
        write_reviews(&path, &reviews).unwrap();
        assert_eq!(read_reviews(&golden).unwrap(), reviews);
        std::fs::write(&path, r#"[{"mark": "great"}]"#).unwrap();
        let error = read_reviews(&golden).unwrap_err().to_line();
        assert!(error.contains("has no marks of `golden review`"), "{error}");
    }
}
