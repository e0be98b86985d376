//! Published MCP servers and benchmarks for the tests, installed once into `target/test-servers`.

use std::fs;
use std::path::Path;

use super::machine;
use crate::Chore;
use crate::program::{Program, relative, root};

const PACKAGE: &str = include_str!("../../servers/package.json");
const LOCK: &str = include_str!("../../servers/package-lock.json");
const REQUIREMENTS: &str = include_str!("../../servers/requirements.txt");
/// Read by tests and never run, so that nothing they depend on is needed.
const BENCHMARKS: &str = include_str!("../../benchmarks/requirements.txt");

/// The file that says what an installation was made from.
const STAMP: &str = "installed-from";

/// Puts every server and benchmark in place that is not there yet; no model.
///
/// # Errors
///
/// The machine lacks something, or an installation failed; the end of its log is in the error.
pub(crate) fn provide() -> Chore {
    machine::check()?;
    let home = root().join("target/test-servers");
    fs::create_dir_all(&home).map_err(|error| format!("`{}`: {error}", relative(&home)))?;
    once(&home.join("npm"), &format!("{PACKAGE}{LOCK}"), |folder| npm(folder, PACKAGE, LOCK))?;
    once(&home.join("venv"), REQUIREMENTS, |folder| venv(folder, REQUIREMENTS))?;
    benchmarks(&home)
}

/// Puts the benchmarks in place in this folder's `bfcl`.
pub(crate) fn benchmarks(home: &Path) -> Chore {
    once(&home.join("bfcl"), BENCHMARKS, |folder| packages(folder, BENCHMARKS, "--no-deps"))
}

/// Makes the folder afresh unless it was made whole from the same words before.
pub(crate) fn once(folder: &Path, source: &str, make: impl FnOnce(&Path) -> Chore) -> Chore {
    let stamp = folder.join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|words| words == source) {
        return Ok(());
    }
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative(folder));
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(problem)?;
    }
    fs::create_dir_all(folder).map_err(problem)?;
    make(folder)?;
    fs::write(&stamp, source).map_err(problem)
}

/// Installs exactly what a lock names; nothing of it is run.
pub(crate) fn npm(folder: &Path, package: &str, lock: &str) -> Chore {
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative(folder));
    fs::write(folder.join("package.json"), package).map_err(problem)?;
    fs::write(folder.join("package-lock.json"), lock).map_err(problem)?;
    let line = "ci --ignore-scripts --no-audit --no-fund --loglevel=error";
    Program::new("npm").line(line).within(folder).run_into(&folder.join("install.log"))
}

/// Makes a Python environment with exactly what a list names.
pub(crate) fn venv(folder: &Path, requirements: &str) -> Chore {
    packages(folder, requirements, "")
}

/// The same with more options for the installer.
pub(crate) fn packages(folder: &Path, requirements: &str, options: &str) -> Chore {
    install("python3", folder, requirements, options)
}

/// The same for this Python.
pub(crate) fn install(python: &str, folder: &Path, requirements: &str, options: &str) -> Chore {
    let log = folder.with_extension("log");
    Program::new(python).line("-m venv").path(folder).run_into(&log)?;
    let list = folder.join("requirements.txt");
    fs::write(&list, requirements).map_err(|error| format!("`{}`: {error}", relative(&list)))?;
    let pip = Program::new(folder.join("bin/pip"));
    let line = "install --disable-pip-version-check --no-input --quiet --requirement";
    pip.line(line).path(&list).line(options).run_into(&log)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        folder
    }

    #[test]
    fn an_installation_is_made_once_and_again_when_its_source_changes() {
        let folder = scratch("once");
        let mut made = 0;
        for source in ["a", "a", "b", "b"] {
            once(&folder, source, |_| {
                made += 1;
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(made, 2);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_failed_installation_is_tried_again() {
        let folder = scratch("failed");
        assert!(once(&folder, "a", |_| Err("no".to_owned())).is_err());
        let mut made = false;
        once(&folder, "a", |_| {
            made = true;
            Ok(())
        })
        .unwrap();
        assert!(made);
        fs::remove_dir_all(&folder).unwrap();
    }
}
