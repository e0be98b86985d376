//! Resolves a configured command to an executable file.

use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use which::WhichConfig;
use which::sys::{RealSys, Sys};

/// An error for a command without a usable program; quotes the command as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    #[error("command `{command}` was not found")]
    NotFound { command: Box<str> },
    #[error("command `{command}` was not found in the PATH of the server")]
    NotInPath { command: Box<str> },
    #[error("command `{command}` is not executable")]
    NotExecutable { command: Box<str> },
    #[error("command `{command}` is a directory")]
    Directory { command: Box<str> },
}

impl ProgramError {
    /// Replaces the expanded command with the command as the user wrote it.
    pub fn with_command(mut self, as_written: &str) -> Self {
        let (Self::NotFound { command }
        | Self::NotInPath { command }
        | Self::NotExecutable { command }
        | Self::Directory { command }) = &mut self;
        *command = as_written.into();
        self
    }
}

/// Resolves `command` to a file as the server would: a name is searched in the `PATH` of `env`,
/// which is the server's environment, and a path with a separator is relative to `cwd`. Relative
/// entries of `PATH` are skipped, so that a working directory cannot inject a program.
///
/// # Errors
/// The file does not exist or is not executable.
pub fn resolve(
    command: &str,
    env: &[(OsString, OsString)],
    cwd: &Path,
) -> Result<PathBuf, ProgramError> {
    let command_name = || Box::from(command);
    let has_separator = command.contains(std::path::is_separator);
    let dirs: Vec<PathBuf> = match variable(env, "PATH") {
        Some(path) if !has_separator => {
            std::env::split_paths(path).filter(|dir| dir.is_absolute()).collect()
        }
        _ => Vec::new(),
    };
    if dirs.is_empty() && !has_separator {
        return Err(ProgramError::NotInPath { command: command_name() });
    }
    let system =
        ServerSystem { is_windows: RealSys.is_windows(), path_ext: variable(env, "PATHEXT") };
    if let Some(program) = system.find(command, &dirs, cwd) {
        return Ok(program);
    }
    let candidates =
        if has_separator { vec![cwd.join(command)] } else { candidate_paths(&dirs, command) };
    let kinds = candidates.iter().filter_map(|path| path.metadata().ok());
    match kinds.map(|metadata| metadata.is_dir()).min() {
        Some(false) => Err(ProgramError::NotExecutable { command: command_name() }),
        Some(true) if has_separator => Err(ProgramError::Directory { command: command_name() }),
        _ if has_separator => Err(ProgramError::NotFound { command: command_name() }),
        _ => Err(ProgramError::NotInPath { command: command_name() }),
    }
}

fn candidate_paths(dirs: &[PathBuf], command: &str) -> Vec<PathBuf> {
    dirs.iter().map(|dir| dir.join(command)).collect()
}

fn variable<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let mut variables = env.iter();
    let found = variables.find(|(other, _)| match cfg!(windows) {
        true => other.eq_ignore_ascii_case(name),
        false => other == name,
    });
    found.map(|(_, value)| value.as_os_str())
}

/// The real file system with the environment variables of the server.
struct ServerSystem<'a> {
    /// Whether the extensions of programs are optional in a command.
    is_windows: bool,
    /// The extensions of programs on Windows.
    path_ext: Option<&'a OsStr>,
}

impl ServerSystem<'_> {
    /// Returns the program of a command; a command with a separator is relative to `cwd`.
    fn find(self, command: &str, dirs: &[PathBuf], cwd: &Path) -> Option<PathBuf> {
        WhichConfig::new_with_sys(self)
            .binary_name(command.into())
            .custom_cwd(cwd.to_path_buf())
            .custom_path_list(std::env::join_paths(dirs).unwrap_or_default())
            .first_result()
            .ok()
    }
}

impl Sys for ServerSystem<'_> {
    type ReadDirEntry = DirEntry;
    type Metadata = Metadata;

    fn is_windows(&self) -> bool {
        self.is_windows
    }

    fn current_dir(&self) -> io::Result<PathBuf> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn home_dir(&self) -> Option<PathBuf> {
        None
    }

    fn env_split_paths(&self, paths: &OsStr) -> Vec<PathBuf> {
        RealSys.env_split_paths(paths)
    }

    fn env_path(&self) -> Option<OsString> {
        None
    }

    fn env_path_ext(&self) -> Option<OsString> {
        self.path_ext.map(OsStr::to_owned)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        RealSys.metadata(path)
    }

    fn symlink_metadata(&self, path: &Path) -> io::Result<Metadata> {
        RealSys.symlink_metadata(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Box<dyn Iterator<Item = io::Result<DirEntry>>>> {
        RealSys.read_dir(path)
    }

    fn is_valid_executable(&self, path: &Path) -> io::Result<bool> {
        RealSys.is_valid_executable(path)
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Creates a directory with an executable, a plain file and a directory.
    fn programs() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [("tool", 0o755), ("data", 0o644)] {
            let path = dir.path().join(name);
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        dir
    }

    fn path(value: impl Into<OsString>) -> Vec<(OsString, OsString)> {
        vec![("PATH".into(), value.into())]
    }

    /// Proves: TR10.1
    #[test]
    fn a_name_is_looked_up_in_the_path_of_the_server_and_not_of_the_host() {
        let dir = programs();
        let resolved = resolve("tool", &path(dir.path()), Path::new("/")).unwrap();
        assert_eq!(resolved, dir.path().join("tool"));
        let missing = resolve("sh", &path(dir.path()), Path::new("/")).unwrap_err();
        assert_eq!(missing, ProgramError::NotInPath { command: "sh".into() });
        assert!(resolve("sh", &[], Path::new("/bin")).is_err());
    }

    #[test]
    fn a_command_with_a_separator_is_relative_to_the_working_directory() {
        let dir = programs();
        let absolute = dir.path().join("tool");
        let resolved = resolve("./tool", &[], dir.path()).unwrap();
        assert_eq!(resolved.canonicalize().unwrap(), absolute.canonicalize().unwrap());
        assert_eq!(resolve(absolute.to_str().unwrap(), &[], Path::new("/")), Ok(absolute));
    }

    /// Attack: files | `PATH` contains empty or relative entries | no program of the directory is
    /// selected | Approval first
    #[test]
    fn an_entry_of_path_that_is_not_absolute_is_passed_over() {
        let dir = programs();
        for relative in ["", ".", "folder/..", ":"] {
            let error = resolve("tool", &path(relative), dir.path()).unwrap_err();
            assert_eq!(error, ProgramError::NotInPath { command: "tool".into() }, "{relative:?}");
        }
    }

    /// npm installs `npx` as a script for Unix shells and `npx.cmd` for Windows.
    ///
    /// Proves: TR10.1
    #[test]
    fn on_windows_a_command_without_extension_is_the_batch_file_and_not_the_script_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["npx", "npx.cmd", "tool.exe"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let find = |is_windows: bool, path_ext: Option<&str>, command: &str| {
            let system = ServerSystem { is_windows, path_ext: path_ext.map(OsStr::new) };
            let program = system.find(command, &[dir.path().to_path_buf()], Path::new("/"))?;
            Some(program.file_name().unwrap().to_str().unwrap().to_owned())
        };
        let extensions = Some(".com;.exe;.bat;.cmd");
        assert_eq!(find(true, extensions, "npx").as_deref(), Some("npx.cmd"));
        assert_eq!(find(true, extensions, "tool").as_deref(), Some("tool.exe"));
        assert_eq!(find(true, Some(".com;.exe"), "npx"), None);
        assert_eq!(find(false, extensions, "npx"), None);
    }

    /// Proves: TR10.1, TR10.3
    #[test]
    fn a_file_that_cannot_be_executed_is_refused_without_showing_where_it_is() {
        let dir = programs();
        let resolve_error =
            |command: &str| resolve(command, &path(dir.path()), dir.path()).unwrap_err();
        assert_eq!(resolve_error("data"), ProgramError::NotExecutable { command: "data".into() });
        assert_eq!(
            resolve_error("./data"),
            ProgramError::NotExecutable { command: "./data".into() }
        );
        assert_eq!(
            resolve_error("./folder"),
            ProgramError::Directory { command: "./folder".into() }
        );
        assert_eq!(resolve_error("folder"), ProgramError::NotInPath { command: "folder".into() });
        assert_eq!(resolve_error("./none"), ProgramError::NotFound { command: "./none".into() });
        for command in ["data", "./folder", "./none", "none", ""] {
            let message = resolve_error(command).to_string();
            assert!(!message.contains(dir.path().to_str().unwrap()), "{message}");
        }
    }
}
