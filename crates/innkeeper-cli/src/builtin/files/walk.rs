//! A bounded walk over the regular files in a directory.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of entries visited by one walk.
pub(super) const MAX_WALK_ENTRIES: usize = 10_000;
/// Maximum depth of a walk; real trees are rarely deeper than 12.
pub(super) const MAX_DEPTH: usize = 32;

/// The files found by a walk, in order.
#[derive(Debug, Default)]
pub(super) struct WalkResult {
    pub(super) files: Vec<PathBuf>,
    /// Whether a limit stopped the walk.
    pub(super) truncated: bool,
}

/// Walks a directory depth first, sorted by name. Does not follow symbolic links; skips unreadable
/// directories.
pub(super) fn walk_files(directory: &Path) -> WalkResult {
    let mut walk = WalkResult::default();
    let mut walked = 0;
    let mut waiting = vec![(directory.to_owned(), 0)];
    while let Some((path, depth)) = waiting.pop() {
        let Ok(kind) = fs::symlink_metadata(&path).map(|metadata| metadata.file_type()) else {
            continue;
        };
        if kind.is_file() {
            walk.files.push(path);
        } else if kind.is_dir() && depth < MAX_DEPTH {
            let Ok(entries) = fs::read_dir(&path) else { continue };
            let remaining = MAX_WALK_ENTRIES - walked;
            let mut inside: Vec<_> =
                entries.flatten().map(|entry| entry.path()).take(remaining + 1).collect();
            walk.truncated |= inside.len() > remaining;
            inside.truncate(remaining);
            walked += inside.len();
            inside.sort_unstable_by(|a, b| b.cmp(a));
            waiting.extend(inside.into_iter().map(|path| (path, depth + 1)));
        } else {
            walk.truncated |= kind.is_dir();
        }
    }
    walk
}
