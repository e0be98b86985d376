//! Installs programs of Debian packages into `target/tools`, without root.

use std::fs;
use std::path::Path;

use super::servers::install_once;
use crate::TaskResult;
use crate::program::{Program, relative_path, repository_root};

/// A program that Debian packages contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DebianProgram {
    name: &'static str,
    /// The directory in `target/tools`.
    home: &'static str,
    /// The directory of the program in its package.
    dir: &'static str,
    version_args: &'static str,
    /// The packages with the program, and with the libraries that a Debian without them lacks.
    packages: &'static str,
}

impl DebianProgram {
    pub(crate) const REDIS: Self = Self {
        name: "redis-server",
        home: "redis",
        dir: "usr/bin",
        version_args: "--version",
        packages: "redis-server redis-tools libatomic1 libjemalloc2 liblzf1",
    };

    /// Distributes the requests of clients to replicas, and follows the primary of a Redis.
    pub(crate) const HAPROXY: Self = Self {
        name: "haproxy",
        home: "haproxy",
        dir: "usr/sbin",
        version_args: "-v",
        packages: "haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 libpcre2-8-0",
    };

    /// Installs the program unless `PATH` has the program.
    ///
    /// # Errors
    ///
    /// The packages are not available, or the program does not run.
    pub(crate) fn install(self) -> TaskResult {
        if Program::new(self.name).args(self.version_args).output().is_ok() {
            return Ok(());
        }
        let dir = repository_root().join("target/tools").join(self.home);
        install_once(&dir, self.packages, |dir| {
            extract_packages(dir, self.packages)?;
            let program = Program::new(dir.join(self.dir).join(self.name)).args(self.version_args);
            program.env("LD_LIBRARY_PATH", &library_path(dir)?).output().map(drop)
        })
        .map_err(|problem| format!("no `{}` in `PATH`, and {problem}", self.name))
    }
}

/// Downloads the packages, and extracts them into the directory.
fn extract_packages(dir: &Path, packages: &str) -> TaskResult {
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(dir));
    let archives = dir.join("archives");
    fs::create_dir_all(&archives).map_err(problem)?;
    let log = dir.join("install.log");
    let download = || {
        let program = Program::new("apt-get").args("download").args(packages);
        program.current_dir(&archives).run_with_log(&log)
    };
    if download().is_err() {
        // The lists of packages are empty or old.
        Program::new("apt-get").args("update").run_with_log(&log)?;
        download()?;
    }
    for archive in fs::read_dir(&archives).map_err(problem)? {
        let archive = archive.map_err(problem)?.path();
        Program::new("dpkg-deb").arg("-x").path_arg(&archive).path_arg(dir).run_with_log(&log)?;
    }
    fs::remove_dir_all(&archives).map_err(problem)
}

/// Returns the directories of the extracted libraries, as a list of paths. The name of a directory
/// contains the architecture.
fn library_path(dir: &Path) -> TaskResult<String> {
    let libraries = dir.join("usr/lib");
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(&libraries));
    let mut dirs = Vec::new();
    for entry in fs::read_dir(&libraries).map_err(problem)? {
        dirs.push(entry.map_err(problem)?.path().display().to_string());
    }
    Ok(dirs.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_package_is_named() {
        let absent = DebianProgram {
            name: "no-such-program",
            home: "no-such-program",
            packages: "innkeeper-no-such-package",
            ..DebianProgram::REDIS
        };
        let problem = absent.install().unwrap_err();
        fs::remove_dir_all(repository_root().join("target/tools/no-such-program")).unwrap();
        assert!(problem.starts_with("no `no-such-program` in `PATH`, and `apt-get"), "{problem}");
        assert!(problem.contains("innkeeper-no-such-package"), "{problem}");
    }
}
