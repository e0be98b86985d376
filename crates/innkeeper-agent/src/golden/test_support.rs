//! For tests of applications: reads and writes a golden, and compares a replay with it.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use innkeeper_golden::{Golden, MAX_FILE_BYTES, ReadError, Rules, RulesError, compare};

use super::replay::Replay;

/// Why a golden cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file is unreadable.
    #[error("cannot read `{path}`")]
    Io {
        /// The path.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The file is no golden.
    #[error("`{path}` is no golden")]
    Golden {
        /// The path.
        path: String,
        /// The cause.
        source: ReadError,
    },
    /// The rules next to the golden are invalid.
    #[error("invalid rules in `{path}`")]
    Rules {
        /// The path.
        path: String,
        /// The cause.
        source: RulesError,
    },
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Reads a golden, with the rules in `NAME.rules.json` next to it in place of its own. Blocks while it
/// reads.
///
/// # Errors
///
/// A file is unreadable or invalid.
///
/// # Examples
///
/// ```no_run
/// use innkeeper_agent::golden::{assert_matches_golden, load_golden, replay};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let golden = load_golden("tests/goldens/tables.json")?;
/// let replayed = replay(&golden).await?;
/// assert_matches_golden(&replayed, &golden);
/// # Ok(()) }
/// ```
pub fn load_golden(path: impl AsRef<Path>) -> Result<Golden, LoadError> {
    let path = path.as_ref();
    let text = read_text(path).map_err(|source| LoadError::Io { path: shown(path), source })?;
    let golden = Golden::from_json(&text)
        .map_err(|source| LoadError::Golden { path: shown(path), source })?;
    let rules_path = path.with_extension("rules.json");
    let rules = match read_text(&rules_path) {
        Ok(rules) => rules,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(golden),
        Err(source) => return Err(LoadError::Io { path: shown(&rules_path), source }),
    };
    let rules = Rules::from_json(rules.as_bytes())
        .map_err(|source| LoadError::Rules { path: shown(&rules_path), source })?;
    Ok(Golden { rules: Some(rules), ..golden })
}

/// Why a golden cannot be saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The golden is too large, or contradicts itself.
    #[error("cannot write `{path}`")]
    Golden {
        /// The path.
        path: String,
        /// The cause.
        source: ReadError,
    },
    /// The file cannot be written.
    #[error("cannot write `{path}`")]
    Io {
        /// The path.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

/// Writes a golden in one step, readable by its owner only. Of a golden that the file has, the rules and
/// the accepted results stay, which people wrote. Blocks while it writes.
///
/// # Errors
///
/// The golden is too large, or the file cannot be written.
pub fn save_golden(path: impl AsRef<Path>, mut golden: Golden) -> Result<(), SaveError> {
    let path = path.as_ref();
    let before = read_text(path).ok();
    if let Some(before) = before.and_then(|text| Golden::from_json(&text).ok()) {
        golden.rules = before.rules;
        golden.accepted = before.accepted;
    }
    let text =
        golden.to_json().map_err(|source| SaveError::Golden { path: shown(path), source })?;
    write_private(path, &text).map_err(|source| SaveError::Io { path: shown(path), source })
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    // The owner alone can read a temporary file.
    let mut file = tempfile::Builder::new()
        .prefix(".innkeeper-")
        .tempfile_in(directory.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Reads a text up to one byte more than a golden may have.
fn read_text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        // A pipe without a writer never ends.
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// Compares the result of a replay with that of the golden, by the golden's rules.
///
/// # Panics
///
/// The result is another one, or the run did not ask for everything that was recorded; the message is
/// the report.
#[track_caller]
pub fn assert_matches_golden(replayed: &Replay, golden: &Golden) {
    assert!(replayed.unused.is_empty(), "nothing asked for {}", replayed.unused.join(", "));
    match compare(&golden.golden_output, &replayed.golden.golden_output, golden.rules.as_ref()) {
        Ok(comparison) => assert!(comparison.passed(), "{}: {comparison}", golden.test_name),
        Err(error) => panic!("{}: {error}: {}", golden.test_name, error.source),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;

    use super::super::replay;
    use super::*;

    fn library(file: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens").join(file)
    }

    #[tokio::test]
    async fn a_replay_of_a_golden_matches_it_and_a_changed_golden_does_not() {
        let golden = load_golden(library("ollama/edge_case_calls_in_text.json")).unwrap();
        let replayed = replay(&golden).await.unwrap();
        assert_matches_golden(&replayed, &golden);
        let other = load_golden(library("ollama/provider_comparison_city_count.json")).unwrap();
        let judge = AssertUnwindSafe(|| assert_matches_golden(&replayed, &other));
        let mismatch = std::panic::catch_unwind(judge);
        let message = *mismatch.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("/final_result"), "{message}");
    }

    #[test]
    fn a_saved_golden_is_for_its_owner_and_keeps_what_people_wrote() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("calls.json");
        let golden = load_golden(library("ollama/edge_case_calls_in_text.json")).unwrap();
        let ruled = Golden { rules: Some(Rules::exact()), ..golden.clone() };
        save_golden(&path, ruled).unwrap();
        save_golden(&path, Golden { rules: None, ..golden }).unwrap();
        assert_eq!(load_golden(&path).unwrap().rules, Some(Rules::exact()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        let missing = directory.path().join("none/calls.json");
        let error = save_golden(&missing, load_golden(&path).unwrap()).unwrap_err();
        assert!(matches!(error, SaveError::Io { .. }), "{error}");
    }

    #[test]
    fn a_missing_file_and_a_file_of_another_kind_are_named() {
        let error = load_golden(library("none.json")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read") && error.contains("none.json"), "{error}");
        let error = load_golden(library("shared/mcp.json")).unwrap_err().to_string();
        assert!(error.contains("mcp.json` is no golden"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_not_read_and_is_named() {
        let error = load_golden("/dev/zero").unwrap_err();
        assert_eq!(error.to_string(), "cannot read `/dev/zero`");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(source, "not a regular file");
    }
}
