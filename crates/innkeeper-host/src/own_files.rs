//! The files of the host that no sandbox may write: what decides which servers start, with which
//! variables, and what counts as approved or pinned.
//!
//! A path leads through directories and links. A server that may write in the directory of a link puts
//! another link there, and the path leads to another file. So each step of a path counts like its target.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use innkeeper_config::{Config, Diagnostic, Environment, ServerConfig, Severity, TransportConfig};
use innkeeper_process::Confinement;

use crate::lock::LOCK_FILE_NAME;

/// As many links as the kernel follows in one path.
const MAX_LINKS: usize = 40;

/// Maximum number of files that a message names: the configuration and the lock.
const MAX_NAMES: usize = 2;

/// The configuration files with what they name, the lock beside the first one, and the paths of the
/// application.
#[derive(Debug, Default)]
pub(crate) struct OwnFiles(Vec<OwnFile>);

#[derive(Debug)]
struct OwnFile {
    /// The file in messages.
    name: String,
    /// What a server gains that writes the file, for messages.
    effect: String,
    path: ResolvedPath,
}

impl OwnFiles {
    /// Returns the files of a configuration, and further files or directories of the application.
    pub(crate) fn new(config: &Config, protected: &[PathBuf]) -> Self {
        let files = config.origin.files();
        let lock = files.first().map(|first| first.with_file_name(LOCK_FILE_NAME));
        let named = |file: PathBuf, effect: &str| {
            let name = file.file_name()?.to_string_lossy().into_owned();
            Some(OwnFile { name, effect: effect.to_owned(), path: ResolvedPath::new(&file) })
        };
        let configuration = files.iter().cloned().chain(lock);
        let configuration =
            configuration.filter_map(|file| named(file, "and so choose what starts next"));
        let dotenv = files.iter().map(|file| file.with_file_name(".env"));
        let dotenv = dotenv
            .filter_map(|file| named(file, "and so choose the variables of the configuration"));
        let env_files = config.origin.env_files().iter().map(|file| OwnFile {
            name: file.written.clone(),
            effect: format!(
                "the `envFile` of server `{}`, and so choose what that server loads",
                file.server
            ),
            path: ResolvedPath::new(&file.path),
        });
        let protected = protected.iter().map(|path| OwnFile {
            name: path.to_string_lossy().into_owned(),
            effect: "which only the host may write".to_owned(),
            path: ResolvedPath::new(path),
        });
        Self(configuration.chain(dotenv).chain(env_files).chain(protected).collect())
    }

    /// Returns the problem of a server whose sandbox may write one of the files.
    pub(crate) fn problem(
        &self,
        server: &ServerConfig,
        parent: &Environment,
    ) -> Option<Diagnostic> {
        let TransportConfig::Stdio { cwd, .. } = &server.transport else { return None };
        let cwd = cwd.as_ref().map(|cwd| cwd.expose().as_path());
        let base_dir = cwd.or(parent.current_dir()).unwrap_or(Path::new("."));
        let confinement = Confinement::new(
            server.confinement.limits,
            server.confinement.sandbox.as_ref(),
            base_dir,
        );
        let write_path_of = |file: &OwnFile| {
            confinement.find_write_path(|writable| file.path.is_changed_through(writable))
        };
        let (first, path) = self.0.iter().find_map(|file| Some((file, write_path_of(file)?)))?;
        let names = self
            .0
            .iter()
            .filter(|file| file.effect == first.effect && write_path_of(file) == Some(path))
            .take(MAX_NAMES);
        let names = names.map(|file| format!("`{}`", file.name));
        let names = names.collect::<Vec<_>>().join(" and ");
        let effect = &first.effect;
        Some(Diagnostic {
            severity: Severity::Error,
            source: server.position.source.to_string(),
            line: server.position.line,
            column: server.position.column,
            key: format!("servers.{}.sandbox.write", server.name),
            message: format!("`{path}` lets the server write {names}, {effect}"),
            hint: Some(
                "name the directories that the server needs, or keep the file elsewhere".to_owned(),
            ),
        })
    }
}

/// A path with all that decides where it leads.
#[derive(Debug, Default)]
struct ResolvedPath {
    /// The file or directory, without links. It may not exist.
    target: PathBuf,
    /// The directories of the links on the way, and of what `..` leaves.
    steps: Vec<PathBuf>,
}

impl ResolvedPath {
    fn new(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut resolved = Self::default();
        let mut rest: VecDeque<OsString> = components(&absolute).collect();
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                resolved.target.pop();
                resolved.steps.push(resolved.target.clone());
                continue;
            }
            let path = resolved.target.join(name);
            let target = std::fs::read_link(&path).ok().filter(|_| links < MAX_LINKS);
            let Some(target) = target else {
                resolved.target = path;
                continue;
            };
            links += 1;
            resolved.steps.push(resolved.target.clone());
            components(&target).rev().for_each(|name| rest.push_front(name));
        }
        resolved
    }

    /// Returns whether someone who may write a file, or a directory with its whole content, decides where
    /// the path leads or what is there.
    fn is_changed_through(&self, writable: &Path) -> bool {
        self.target.starts_with(writable)
            || writable.starts_with(&self.target)
            || self.steps.iter().any(|step| step.starts_with(writable))
    }
}

/// Returns the names of a path. That of the root replaces a path that it is joined to.
fn components(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    let components = path.components().filter(|component| *component != Component::CurDir);
    components.map(|component| component.as_os_str().to_owned())
}

/// Returns the problem of each server whose sandbox may write a file of the host: a file of the
/// configuration, the lock beside the first one, an `.env` beside a file, an `envFile`, or one of the
/// files and directories in `protected`, whether they exist or not. Such a server does not start.
pub fn writable_own_files(config: &Config, protected: &[PathBuf]) -> Vec<Diagnostic> {
    let own = OwnFiles::new(config, protected);
    let servers = config.servers.values();
    servers.filter_map(|server| own.problem(server, &config.environment)).collect()
}

#[cfg(test)]
mod tests;
