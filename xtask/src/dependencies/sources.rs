//! Where the packages of a lock file come from: the one registry or this repository.

use toml::{Table, Value};

use crate::TaskResult;

/// The start of the source of a package from a registry.
const REGISTRY_PREFIX: &str = "registry+";

/// The packages of a lock file.
#[derive(Debug)]
pub(super) struct LockFile {
    path: String,
    pub(super) packages: Vec<Value>,
}

impl LockFile {
    /// Parses the text of a lock file.
    ///
    /// # Errors
    ///
    /// The text is invalid, or has no packages.
    pub(super) fn parse(path: &str, text: &str) -> TaskResult<Self> {
        let mut lock: Table = text.parse().map_err(|error| format!("`{path}`: {error}"))?;
        match lock.remove("package") {
            Some(Value::Array(packages)) => Ok(Self { path: path.to_owned(), packages }),
            Some(_) | None => Err(format!("`{path}` has no packages")),
        }
    }

    /// Returns the registry of the first package that comes from a registry.
    pub(super) fn registry(&self) -> Option<&str> {
        let mut sources = self.packages.iter().filter_map(|package| member(package, "source"));
        sources.find(|source| source.starts_with(REGISTRY_PREFIX))
    }

    /// Returns a line for each package that neither is part of this repository, nor comes from the
    /// registry with a checksum.
    pub(super) fn check(&self, registry: &str) -> Vec<String> {
        let problems = self.packages.iter().filter_map(|package| {
            // A package of a directory of this repository has no source.
            let source = member(package, "source")?;
            let [name, version] =
                ["name", "version"].map(|key| member(package, key).unwrap_or_default());
            let name = format!("{}: package `{name} {version}`", self.path);
            if source != registry {
                return Some(format!("{name} comes from `{source}`; use `{registry}`"));
            }
            let has_checksum = member(package, "checksum").is_some();
            (!has_checksum).then(|| format!("{name} has no checksum"))
        });
        problems.collect()
    }
}

fn member<'p>(package: &'p Value, key: &str) -> Option<&'p str> {
    package.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "registry+https://example.com/index";

    fn lock(package: &str) -> LockFile {
        let text =
            format!("version = 4\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n{package}");
        LockFile::parse("Cargo.lock", &text).unwrap()
    }

    #[test]
    fn packages_come_from_the_registry_with_a_checksum_or_from_the_repository() {
        let problems = |package: &str| lock(package).check(REGISTRY);
        assert!(problems("").is_empty());
        assert!(problems(&format!("source = \"{REGISTRY}\"\nchecksum = \"00\"\n")).is_empty());
        assert_eq!(
            problems(&format!("source = \"{REGISTRY}\"\n")),
            ["Cargo.lock: package `a 1.0.0` has no checksum"]
        );
    }

    #[test]
    fn a_package_of_a_git_repository_or_of_another_registry_is_reported_with_its_source() {
        for source in ["git+https://example.com/a?rev=1#1", "registry+https://other.example/index"]
        {
            let lock = lock(&format!("source = \"{source}\"\nchecksum = \"00\"\n"));
            let expected =
                format!("Cargo.lock: package `a 1.0.0` comes from `{source}`; use `{REGISTRY}`");
            assert_eq!(lock.check(REGISTRY), [expected]);
        }
    }

    #[test]
    fn the_registry_is_the_source_of_a_package_and_no_git_repository() {
        assert_eq!(lock(&format!("source = \"{REGISTRY}\"")).registry(), Some(REGISTRY));
        assert_eq!(lock("source = \"git+https://example.com/a\"").registry(), None);
        assert_eq!(lock("").registry(), None);
    }

    #[test]
    fn a_file_without_packages_is_an_error() {
        let error = |text: &str| LockFile::parse("Cargo.lock", text).unwrap_err();
        assert_eq!(error(""), "`Cargo.lock` has no packages");
        assert!(error("=").starts_with("`Cargo.lock`: "));
    }
}
