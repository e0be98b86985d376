//! A bounded walk over the regular files below a folder.

use std::fs;
use std::path::{Path, PathBuf};

/// The most entries one walk looks at; beyond it, it stops and says so.
pub(super) const MAX_WALKED: usize = 10_000;
/// How deep a walk goes; real trees are rarely deeper than a dozen.
pub(super) const MAX_DEPTH: usize = 32;

/// The files of a walk in order.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) files: Vec<PathBuf>,
    /// Whether something was left out because of a limit.
    pub(super) cut: bool,
}

/// Walks from a folder, depth first and by name. Symbolic links are not followed, and folders
/// that cannot be read are passed over.
pub(super) fn files(folder: &Path) -> Walk {
    let mut walk = Walk::default();
    let mut walked = 0;
    let mut waiting = vec![(folder.to_owned(), 0)];
    while let Some((path, depth)) = waiting.pop() {
        let Ok(kind) = fs::symlink_metadata(&path).map(|metadata| metadata.file_type()) else {
            continue;
        };
        if kind.is_file() {
            walk.files.push(path);
        } else if kind.is_dir() && depth < MAX_DEPTH {
            let Ok(entries) = fs::read_dir(&path) else { continue };
            let room = MAX_WALKED - walked;
            let mut inside: Vec<_> =
                entries.flatten().map(|entry| entry.path()).take(room + 1).collect();
            walk.cut |= inside.len() > room;
            inside.truncate(room);
            walked += inside.len();
            inside.sort_unstable_by(|a, b| b.cmp(a));
            waiting.extend(inside.into_iter().map(|path| (path, depth + 1)));
        } else {
            walk.cut |= kind.is_dir();
        }
    }
    walk
}
