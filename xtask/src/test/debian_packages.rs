//! Installs programs of Debian packages into `target/tools`, without root.

use std::fs;
use std::path::{Path, PathBuf};

use super::servers::{STAMP_FILE, install_once};
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
    /// Whether the packages have further dependencies, which this system may lack.
    has_dependencies: bool,
}

impl DebianProgram {
    pub(crate) const REDIS: Self = Self {
        name: "redis-server",
        home: "redis",
        dir: "usr/bin",
        version_args: "--version",
        packages: "redis-server redis-tools libatomic1 libjemalloc2 liblzf1",
        has_dependencies: false,
    };

    pub(crate) const CHROMIUM: Self = Self {
        name: "chromium",
        home: "chromium",
        dir: "usr/lib/chromium",
        version_args: "--version",
        packages: "chromium",
        has_dependencies: true,
    };

    /// Distributes the requests of clients to replicas, and follows the primary of a Redis.
    pub(crate) const HAPROXY: Self = Self {
        name: "haproxy",
        home: "haproxy",
        dir: "usr/sbin",
        version_args: "-v",
        packages: "haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 libpcre2-8-0",
        has_dependencies: false,
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
        self.extract(&repository_root().join("target/tools").join(self.home))
    }

    /// Returns why the program is missing; `None` if it is installed.
    pub(crate) fn problem(self) -> Option<String> {
        let dir = repository_root().join("target/tools").join(self.home);
        let is_installed = dir.join(STAMP_FILE).is_file()
            || Program::new(self.name).args(self.version_args).output().is_ok();
        (!is_installed).then(|| format!("`{}` is not installed", self.name))
    }

    /// Extracts the packages into a directory, and runs the program.
    fn extract(self, dir: &Path) -> TaskResult {
        install_once(dir, self.packages, |dir| {
            extract_packages(dir, self)?;
            let program = Program::new(dir.join(self.dir).join(self.name)).args(self.version_args);
            program.env("LD_LIBRARY_PATH", &library_path(dir)?).output().map(drop)
        })
        .map_err(|problem| format!("no `{}` in `PATH`, and {problem}", self.name))
    }
}

/// Downloads the packages, and extracts them into the directory.
fn extract_packages(dir: &Path, debian: DebianProgram) -> TaskResult {
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(dir));
    let archives = dir.join("archives");
    fs::create_dir_all(&archives).map_err(problem)?;
    let log = dir.join("install.log");
    let download = || {
        let packages = missing_packages(debian)?;
        let program = Program::new("apt-get").args("download").args(&packages);
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

/// Returns the packages of a program, with the dependencies that this system lacks if the program has
/// further ones.
fn missing_packages(debian: DebianProgram) -> TaskResult<String> {
    if !debian.has_dependencies {
        return Ok(debian.packages.to_owned());
    }
    let simulate = Program::new("apt-get").args("install --simulate --no-install-recommends");
    let plan = simulate.args(debian.packages).output()?;
    Ok(packages_of_plan(&plan))
}

/// Returns the packages that a simulated installation would install.
fn packages_of_plan(plan: &str) -> String {
    let lines = plan.lines().filter_map(|line| line.strip_prefix("Inst "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.collect::<Vec<_>>().join(" ")
}

/// Returns the directories of the extracted libraries, as a list of paths. The name of a directory
/// contains the architecture, and some libraries have a directory of their own below it.
fn library_path(dir: &Path) -> TaskResult<String> {
    let mut dirs = Vec::new();
    for library in subdirectories(&dir.join("usr/lib"))? {
        dirs.extend(subdirectories(&library)?);
        dirs.push(library);
    }
    let paths: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    Ok(paths.join(":"))
}

fn subdirectories(dir: &Path) -> TaskResult<Vec<PathBuf>> {
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(dir));
    let entries: Result<Vec<_>, _> = fs::read_dir(dir).map_err(problem)?.collect();
    let paths = entries.map_err(problem)?.into_iter().map(|entry| entry.path());
    Ok(paths.filter(|path| path.is_dir()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_a_plan_are_those_it_would_install() {
        let plan = "Reading package lists...\nInst libogg0 (1.3.5-3 Debian:12 [amd64])\n\
                    Inst chromium (156 Debian-Security:12 [amd64]) []\nConf libogg0 (1.3.5-3 [amd64])\n";
        assert_eq!(packages_of_plan(plan), "libogg0 chromium");
    }

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
