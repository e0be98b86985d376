//! The files of the host that no sandbox may write: the configuration and the lock.
//!
//! A server that writes them decides what the host starts the next time, and what counts as pinned.

use std::path::{Path, PathBuf};

use innkeeper_config::{Config, Diagnostic, Environment, ServerConfig, Severity, TransportConfig};
use innkeeper_process::Confinement;

use crate::lock::LOCK_FILE_NAME;

/// The configuration files and the lock beside the first one.
#[derive(Debug, Default)]
pub(crate) struct OwnFiles(Vec<OwnFile>);

#[derive(Debug)]
struct OwnFile {
    /// The last name, for messages.
    name: String,
    /// The places of the file, without links: of a link, its own and that of its target.
    places: Vec<PathBuf>,
}

impl OwnFiles {
    pub(crate) fn from_config(config: &Config) -> Self {
        let files = config.origin.files();
        let lock = files.first().map(|first| first.with_file_name(LOCK_FILE_NAME));
        Self(files.iter().cloned().chain(lock).filter_map(|file| OwnFile::new(&file)).collect())
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
        let confinement = Confinement::new(server.limits, server.sandbox.as_ref(), base_dir);
        let write_path_of =
            |file: &OwnFile| file.places.iter().find_map(|place| confinement.write_path_of(place));
        let path = self.0.iter().find_map(write_path_of)?;
        let files = self.0.iter().filter(|file| write_path_of(file) == Some(path));
        let names: Vec<_> = files.map(|file| format!("`{}`", file.name)).collect();
        let names = names.join(" and ");
        Some(Diagnostic {
            severity: Severity::Error,
            source: server.position.source.to_string(),
            line: server.position.line,
            column: server.position.column,
            key: format!("servers.{}.sandbox.write", server.name),
            message: format!(
                "`{path}` lets the server write {names}, and so choose what starts next"
            ),
            hint: Some(
                "name the directories that the server needs, or keep the configuration elsewhere"
                    .to_owned(),
            ),
        })
    }
}

impl OwnFile {
    /// The file may be a link, and the lock may not exist yet.
    fn new(file: &Path) -> Option<Self> {
        let name = file.file_name()?;
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = std::fs::canonicalize(directory.unwrap_or(Path::new("."))).ok();
        let place = directory.map(|directory| directory.join(name));
        let places = place.into_iter().chain(std::fs::canonicalize(file)).collect();
        Some(Self { name: name.to_string_lossy().into_owned(), places })
    }
}

/// Returns the problem of each server whose sandbox may write a file of the configuration or the lock
/// beside it. Such a server does not start.
pub fn writable_own_files(config: &Config) -> Vec<Diagnostic> {
    let own = OwnFiles::from_config(config);
    let servers = config.servers.values();
    servers.filter_map(|server| own.problem(server, &config.environment)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(write: &[&str]) -> Vec<Diagnostic> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        std::fs::create_dir_all(path.join("data")).unwrap();
        let server = json!({ "command": "sh", "cwd": path, "sandbox": { "write": write } });
        let file = path.join("mcp.json");
        std::fs::write(&file, json!({ "servers": { "one": server } }).to_string()).unwrap();
        writable_own_files(&Config::from_file(&file).unwrap())
    }

    #[cfg(unix)]
    #[test]
    fn a_configuration_that_is_a_link_is_neither_replaced_nor_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for name in ["links", "files", "other"] {
            std::fs::create_dir(path.join(name)).unwrap();
        }
        let server =
            |write| json!({ "command": "sh", "cwd": path, "sandbox": { "write": [write] } });
        let servers =
            json!({ "one": server("links"), "two": server("files"), "three": server("other") });
        let file = path.join("files/mcp.json");
        std::fs::write(&file, json!({ "servers": servers }).to_string()).unwrap();
        std::os::unix::fs::symlink(&file, path.join("links/mcp.json")).unwrap();
        let config = Config::from_file(path.join("links/mcp.json")).unwrap();
        let keys: Vec<_> = writable_own_files(&config).into_iter().map(|one| one.key).collect();
        assert_eq!(keys, ["servers.one.sandbox.write", "servers.two.sandbox.write"]);
    }

    /// Attack: sandbox | a server with a writable workspace rewrites `mcp.json` or `mcp.lock` there | the
    /// server does not start | Confinement holds
    #[test]
    fn a_sandbox_that_may_write_the_configuration_or_the_lock_is_a_problem() {
        for write in [".", "data/..", "mcp.json", "/"] {
            let problems = problems(&["data", write]);
            let [problem] = &problems[..] else { panic!("{write}: {problems:?}") };
            assert_eq!(problem.key, "servers.one.sandbox.write");
            let lock = if write == "mcp.json" { "" } else { " and `mcp.lock`" };
            let expected =
                format!("`{write}` lets the server write `mcp.json`{lock}, and so choose");
            assert!(problem.message.starts_with(&expected), "{problem}");
        }
        assert_eq!(problems(&["data", "missing"]), []);
    }
}
