//! Searches for a configuration file if the command line names none.

use std::path::{Path, PathBuf};

use innkeeper_host::Environment;

/// The configuration file of this program. The other files belong to editors and often come with a
/// cloned repository.
pub(crate) const OWN_CONFIG_FILE: &str = "mcp.json";

/// Files of a directory that may hold a configuration, in this order.
const DIRECTORY_FILES: [&str; 3] = [OWN_CONFIG_FILE, ".vscode/mcp.json", ".mcp.json"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundFile {
    /// In the current directory.
    Here(PathBuf),
    /// In a parent directory, in which the servers run.
    Parent { file: PathBuf, directory: PathBuf },
    /// In the configuration directory of the user, which only the user writes and in which the
    /// servers run.
    User(PathBuf),
}

/// Finds the configuration file: in the current directory, then in its parents, then the file of
/// the user.
pub(crate) fn find_config_file(environment: &Environment) -> Option<FoundFile> {
    if let Some(file) = private_file_in(Path::new("")) {
        return Some(FoundFile::Here(file));
    }
    let home = environment.home().map(Path::new);
    let parents = environment.current_dir().map(|current| searched_parents(current, home));
    for directory in parents.into_iter().flatten() {
        if let Some(file) = private_file_in(&directory) {
            return Some(FoundFile::Parent { file, directory });
        }
    }
    user_config_file(environment).filter(|file| file.is_file()).map(FoundFile::User)
}

/// Returns the configuration file of the user, after the XDG base directory specification.
pub(crate) fn user_config_file(environment: &Environment) -> Option<PathBuf> {
    let directory = match environment.get("XDG_CONFIG_HOME").map(Path::new) {
        Some(directory) if directory.is_absolute() => directory.to_owned(),
        _ => Path::new(environment.home()?).join(".config"),
    };
    Some(directory.join("innkeeper").join(OWN_CONFIG_FILE))
}

/// Returns the configuration file of a directory, if only the user can change the file.
fn private_file_in(directory: &Path) -> Option<PathBuf> {
    let files = DIRECTORY_FILES.iter().map(|file| directory.join(file));
    files.filter(|file| file.is_file()).find(|file| {
        let places = [Some(directory), file.parent(), Some(file)];
        let is_private = places.into_iter().flatten().all(is_private);
        if !is_private {
            let file = file.display();
            tracing::warn!(
                %file,
                "configuration file ignored: other users can change the file; use `--config` to name it"
            );
        }
        is_private
    })
}

/// Returns the parents of a directory up to the root of its repository, or below the home
/// directory, whichever is nearer. A directory outside of both has no parents to search: others may
/// write there. The search ends at a directory of another user for the same reason.
fn searched_parents(current: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    // The current directory has no symbolic links.
    let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
    let mut parents = Vec::new();
    for directory in current.ancestors() {
        if home.as_deref() == Some(directory) {
            return parents;
        }
        if !is_own_directory(directory) {
            break;
        }
        if directory != current {
            parents.push(directory.to_owned());
        }
        if directory.join(".git").exists() {
            return parents;
        }
    }
    Vec::new()
}

#[cfg(unix)]
fn is_own_directory(directory: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let user = rustix::process::geteuid().as_raw();
    directory.metadata().is_ok_and(|metadata| metadata.uid() == user)
}

#[cfg(not(unix))]
fn is_own_directory(_: &Path) -> bool {
    true
}

/// Whether only the user can write to a file or directory.
#[cfg(unix)]
fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let user = rustix::process::geteuid().as_raw();
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.metadata().is_ok_and(|metadata| {
        only_user_writes(user, metadata.uid(), metadata.gid(), metadata.mode())
    })
}

#[cfg(not(unix))]
fn is_private(_: &Path) -> bool {
    true
}

/// Whether only `user` can write to a file with this owner, group and mode. A group with the number
/// of its user has no other members by convention.
#[cfg(unix)]
fn only_user_writes(user: u32, owner: u32, group: u32, mode: u32) -> bool {
    let group_writes = mode & 0o020 != 0;
    let others_write = mode & 0o002 != 0;
    owner == user && !others_write && (!group_writes || group == user)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn directories(root: &Path, paths: &[&str]) {
        for path in paths {
            fs::create_dir_all(root.join(path)).unwrap();
        }
    }

    fn searched(root: &Path, current: &str, home: &str) -> Vec<PathBuf> {
        let found = searched_parents(&root.join(current), Some(&root.join(home)));
        found.iter().map(|path| path.strip_prefix(root).unwrap().to_owned()).collect()
    }

    #[test]
    fn parents_are_searched_up_to_the_root_of_the_repository() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        directories(&root, &["home/repo/.git", "home/repo/a/b"]);
        let expected = ["home/repo/a", "home/repo"].map(PathBuf::from);
        assert_eq!(searched(&root, "home/repo/a/b", "home"), expected);
        assert_eq!(searched(&root, "home/repo/a/b", "elsewhere"), expected);
        assert!(searched(&root, "home/repo", "home").is_empty());
    }

    #[test]
    fn without_a_repository_parents_are_searched_below_the_home_directory_only() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        directories(&root, &["home/a/b", "other/a"]);
        assert_eq!(searched(&root, "home/a/b", "home"), [PathBuf::from("home/a")]);
        assert!(searched(&root, "home", "home").is_empty());
        assert!(searched(&root, "other/a", "home").is_empty());
    }

    #[test]
    fn a_home_directory_that_is_a_repository_is_not_searched() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        directories(&root, &["home/.git", "home/a/b"]);
        assert_eq!(searched(&root, "home/a/b", "home"), [PathBuf::from("home/a")]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_another_user_owns_or_can_write_is_not_private() {
        for (owner, group, mode, expected) in [
            (1000, 1000, 0o664, true),
            (1000, 100, 0o664, false),
            (1000, 1000, 0o1777, false),
            (1001, 1000, 0o644, false),
        ] {
            assert_eq!(only_user_writes(1000, owner, group, mode), expected, "{owner} {mode:o}");
        }
    }

    /// Attack: files | others can write a parent's file | the file is not used | Approval first
    #[cfg(unix)]
    #[test]
    fn a_file_of_a_parent_that_others_can_change_is_ignored() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        directories(root.path(), &[".vscode"]);
        let set_mode = |path: &str, mode| {
            fs::set_permissions(root.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        let expect = |file: Option<&str>| {
            let expected = file.map(|file| root.path().join(file));
            assert_eq!(private_file_in(root.path()), expected);
        };
        fs::write(root.path().join("mcp.json"), "{}").unwrap();
        fs::write(root.path().join(".vscode/mcp.json"), "{}").unwrap();
        expect(Some("mcp.json"));
        set_mode("mcp.json", 0o666);
        expect(Some(".vscode/mcp.json"));
        set_mode(".vscode", 0o777);
        expect(None);
        set_mode("mcp.json", 0o644);
        expect(Some("mcp.json"));
        set_mode("", 0o1777);
        expect(None);
    }

    #[test]
    fn the_file_of_the_user_is_in_the_configuration_directory() {
        let home = Environment::from_pairs([("HOME", "/home/ada")]);
        let expected = Path::new("/home/ada/.config/innkeeper/mcp.json");
        assert_eq!(user_config_file(&home).as_deref(), Some(expected));
        let set = [("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "/etc/ada")];
        let expected = Path::new("/etc/ada/innkeeper/mcp.json");
        assert_eq!(user_config_file(&Environment::from_pairs(set)).as_deref(), Some(expected));
        let relative = [("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "etc")];
        let file = user_config_file(&Environment::from_pairs(relative)).unwrap();
        assert!(file.starts_with("/home/ada/.config"));
        assert_eq!(user_config_file(&Environment::default()), None);
    }
}
