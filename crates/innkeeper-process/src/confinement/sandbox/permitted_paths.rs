//! Resolves the links in the paths of a sandbox before a start.
//!
//! A server can replace what lies in a directory that it may write. If a permitted path lies there, a
//! link in its place would let the server choose what its next start may open. So no link is followed
//! that lies in such a directory. The supervisor opens the resolved paths without following links.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::confinement::SandboxSpec;

/// As many links as the kernel follows in one path.
const MAX_LINKS: usize = 40;

/// The links to the directory of the process that follows them.
const PROCESS_LINKS: [&str; 2] = ["/proc/self", "/proc/thread-self"];

/// Why a path isn't permitted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PathProblem {
    Missing,
    /// This link lies in a directory that the server may write.
    Link(PathBuf),
    /// This link has another target for each process, and the host is not the server.
    OwnProcess(PathBuf),
}

/// The directories that a server may write, as device and inode.
#[derive(Debug)]
pub(crate) struct WritableDirs(HashSet<(u64, u64)>);

impl WritableDirs {
    pub(crate) fn new(spec: &SandboxSpec) -> Self {
        let paths = spec.sandbox.write.iter().map(|path| spec.absolute(path));
        let metadata = paths.filter_map(|path| std::fs::metadata(path).ok());
        Self(metadata.map(|metadata| (metadata.dev(), metadata.ino())).collect())
    }

    /// Returns an absolute path without links.
    pub(crate) fn resolve(&self, path: &Path) -> Result<PathBuf, PathProblem> {
        let mut rest: VecDeque<OsString> = components(path).collect();
        // Each directory with whether the server may write in it.
        let mut parents = vec![(PathBuf::from("/"), self.contains(Path::new("/")))];
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                // The parent of the root is the root.
                parents.truncate(parents.len().saturating_sub(1).max(1));
                continue;
            }
            let Some((parent, is_writable)) = parents.last() else { break };
            let path = parent.join(name);
            let metadata = std::fs::symlink_metadata(&path).map_err(|_| PathProblem::Missing)?;
            if !metadata.is_symlink() {
                let is_writable =
                    *is_writable || self.0.contains(&(metadata.dev(), metadata.ino()));
                parents.push((path, is_writable));
                continue;
            }
            links += 1;
            if *is_writable {
                return Err(PathProblem::Link(path));
            }
            if PROCESS_LINKS.iter().any(|link| path == Path::new(link)) {
                return Err(PathProblem::OwnProcess(path));
            }
            let target = std::fs::read_link(&path).ok().filter(|_| links <= MAX_LINKS);
            let target = target.ok_or(PathProblem::Missing)?;
            if target.is_absolute() {
                parents.truncate(1);
            }
            components(&target).rev().for_each(|name| rest.push_front(name));
        }
        Ok(parents.pop().map_or_else(|| PathBuf::from("/"), |(path, _)| path))
    }

    fn contains(&self, path: &Path) -> bool {
        let metadata = std::fs::metadata(path);
        metadata.is_ok_and(|metadata| self.0.contains(&(metadata.dev(), metadata.ino())))
    }
}

/// Returns the names of a path, and `..`.
fn components(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::create_dir_all;
    use std::os::unix::fs::symlink;

    use innkeeper_config::SandboxConfig;

    use super::*;

    /// A directory with `outside` and the writable `inside/data`, both real.
    fn directory() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(directory.path()).unwrap();
        create_dir_all(path.join("outside")).unwrap();
        create_dir_all(path.join("inside/data")).unwrap();
        (directory, path)
    }

    fn dirs(base: &Path, write: &[&str]) -> WritableDirs {
        let write = write.iter().map(|path| (*path).to_owned()).collect();
        let sandbox = SandboxConfig { write, ..SandboxConfig::default() };
        WritableDirs::new(&SandboxSpec { sandbox, base_dir: base.to_owned() })
    }

    #[test]
    fn links_outside_of_the_writable_directories_are_followed() {
        let (_directory, base) = directory();
        symlink("inside", base.join("way")).unwrap();
        symlink(base.join("way/data"), base.join("far")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        let dirs = dirs(&base, &["inside"]);
        let data = Ok(base.join("inside/data"));
        for path in ["inside/data", "way/data", "far", "outside/../far"] {
            assert_eq!(dirs.resolve(&base.join(path)), data, "{path}");
        }
        for path in ["nothing", "inside/nothing", "loop"] {
            assert_eq!(dirs.resolve(&base.join(path)), Err(PathProblem::Missing), "{path}");
        }
        assert_eq!(dirs.resolve(Path::new("/")), Ok(PathBuf::from("/")));
        assert_eq!(dirs.resolve(Path::new("/..")), Ok(PathBuf::from("/")));
    }

    #[test]
    fn a_link_in_a_writable_directory_is_not_followed() {
        let (_directory, base) = directory();
        symlink("../outside", base.join("inside/link")).unwrap();
        symlink(&base, base.join("inside/data/up")).unwrap();
        symlink("inside", base.join("way")).unwrap();
        let refused = |path: &str| Err(PathProblem::Link(base.join(path)));
        for write in [&["inside"][..], &["way"], &["inside/../inside", "inside/link"], &["."]] {
            let dirs = dirs(&base, write);
            assert_eq!(dirs.resolve(&base.join("inside/link")), refused("inside/link"));
            assert_eq!(dirs.resolve(&base.join("inside/link/x")), refused("inside/link"));
            let up = dirs.resolve(&base.join("inside/data/up/outside"));
            assert_eq!(up, refused("inside/data/up"), "{write:?}");
        }
    }

    /// The host would find its own directory.
    #[test]
    fn a_link_to_the_own_process_is_not_followed() {
        let (_directory, base) = directory();
        let dirs = dirs(&base, &["inside"]);
        symlink("/proc/self/fd", base.join("descriptors")).unwrap();
        for path in [Path::new("/proc/self/environ"), &base.join("descriptors")] {
            assert_eq!(dirs.resolve(path), Err(PathProblem::OwnProcess("/proc/self".into())));
        }
    }

    /// The path leads through a directory that the server may write, and out of it.
    #[test]
    fn what_lies_outside_is_reached_by_no_name_that_the_server_can_replace() {
        let (_directory, base) = directory();
        std::fs::remove_dir(base.join("inside/data")).unwrap();
        symlink(base.join("outside"), base.join("inside/data")).unwrap();
        let dirs = dirs(&base.join("inside/data"), &[".."]);
        let spec =
            SandboxSpec { sandbox: SandboxConfig::default(), base_dir: base.join("inside/data") };
        assert_eq!(spec.absolute(".."), base.join("inside"));
        assert_eq!(dirs.resolve(&spec.absolute("..")), Ok(base.join("inside")));
        assert_eq!(
            dirs.resolve(&spec.absolute(".")),
            Err(PathProblem::Link(base.join("inside/data")))
        );
    }
}
