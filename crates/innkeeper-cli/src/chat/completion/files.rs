//! The names of files that complete a path.

use std::fs::DirEntry;
use std::path::Path;

/// Maximum number of read entries of a directory; further entries complete nothing.
const MAX_READ_ENTRIES: usize = 10_000;

/// A file that completes a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MatchingFile {
    /// The path as the person began it; a directory ends with `/`.
    pub(super) path: String,
    pub(super) is_directory: bool,
}

/// Returns the files whose path starts with a text, sorted by name, at most `max`. A hidden file
/// matches only if the text has its dot.
pub(super) fn matching_files(typed: &str, max: usize) -> Vec<MatchingFile> {
    let (directory, start) = match typed.rfind('/') {
        Some(at) => typed.split_at(at + 1),
        None => ("", typed),
    };
    let path = if directory.is_empty() { Path::new(".") } else { Path::new(directory) };
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let entries = entries.take(MAX_READ_ENTRIES).filter_map(Result::ok);
    let mut matching: Vec<(String, DirEntry)> = entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry)))
        .filter(|(name, _)| name.starts_with(start))
        .filter(|(name, _)| !name.starts_with('.') || start.starts_with('.'))
        .collect();
    matching.sort_by(|(left, _), (right, _)| left.cmp(right));
    matching.truncate(max);
    let files = matching.into_iter().map(|(name, entry)| {
        let is_directory = entry.path().is_dir();
        let end = if is_directory { "/" } else { "" };
        MatchingFile { path: format!("{directory}{name}{end}"), is_directory }
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(typed: &str, max: usize) -> Vec<String> {
        matching_files(typed, max).into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn files_and_directories_complete_a_path_and_hidden_files_need_their_dot() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_str().unwrap();
        std::fs::create_dir(directory.path().join("notes")).unwrap();
        for name in ["notes.md", "note é.md", ".notes", "other"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let paths = |names: &[&str]| names.iter().map(|name| format!("{root}/{name}")).collect();
        let expected: Vec<String> = paths(&["note é.md", "notes/", "notes.md"]);
        assert_eq!(names(&format!("{root}/not"), 9), expected);
        assert_eq!(names(&format!("{root}/not"), 2), expected[..2]);
        let hidden: Vec<String> = paths(&[".notes"]);
        assert_eq!(names(&format!("{root}/.n"), 9), hidden);
        assert_eq!(names(&format!("{root}/"), 9).len(), 4);
        assert_eq!(names(&format!("{root}/none/"), 9), Vec::<String>::new());
    }
}
