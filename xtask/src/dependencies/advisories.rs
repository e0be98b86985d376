//! Advisories about the packages, checked by cargo-audit with a stored database.

use std::path::{Path, PathBuf};

use super::WORKSPACES;
use crate::TaskResult;
use crate::test::CargoTool;

/// The directory of the database in cargo's home, in which cargo-audit stores it.
const DATABASE_DIR: &str = "advisory-db";

/// Returns why this machine cannot check the advisories, with the remedy.
pub(crate) fn problem() -> Option<String> {
    missing(CargoTool::AUDIT.find_installed().is_some(), database().as_deref())
}

fn missing(has_program: bool, database: Option<&Path>) -> Option<String> {
    if !has_program {
        return Some(
            "advisories: `cargo-audit` is not installed; run `cargo install cargo-audit`, and \
             `cargo audit` once with network access"
                .to_owned(),
        );
    }
    if !database.is_some_and(|dir| dir.join("crates").is_dir()) {
        return Some(
            "advisories: the advisory database is not stored; run `cargo audit` once with network \
             access"
                .to_owned(),
        );
    }
    None
}

/// Checks every lock file, without network access.
///
/// # Errors
///
/// A package has an advisory of a vulnerability, or cargo-audit fails.
pub(crate) fn check() -> TaskResult {
    let database = database().ok_or("cargo has no home directory")?;
    for workspace in WORKSPACES {
        let program = CargoTool::AUDIT.find_installed().ok_or("`cargo-audit` does not run")?;
        let lock = format!("{workspace}Cargo.lock");
        program
            .args("--no-fetch --stale --quiet --db")
            .path_arg(&database)
            .arg("--file")
            .arg(&lock)
            .run()?;
    }
    Ok(())
}

fn database() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    home.map(|home| home.join(DATABASE_DIR))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_machine_without_program_or_database_skips_the_advisories_with_the_remedy() {
        let dir = std::env::temp_dir().join(format!("xtask-{}-advisories", std::process::id()));
        fs::create_dir_all(dir.join("crates")).unwrap();
        let without_program = missing(false, Some(&dir)).unwrap();
        assert!(without_program.starts_with("advisories: "), "{without_program}");
        assert!(without_program.contains("cargo install cargo-audit"), "{without_program}");
        let without_database = missing(true, Some(&dir.join("crates"))).unwrap();
        assert!(without_database.contains("run `cargo audit` once"), "{without_database}");
        assert_eq!(missing(true, Some(&dir)), None);
        fs::remove_dir_all(&dir).unwrap();
    }
}
