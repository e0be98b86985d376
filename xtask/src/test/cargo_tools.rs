//! Cargo subcommands: the installed program, or a build in `target/tools`.

use std::path::Path;

use crate::TaskResult;
use crate::program::{Program, repository_root};

/// A cargo subcommand in a separate package.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CargoTool {
    /// The name of the package and of its program.
    package: &'static str,
    version: &'static str,
    /// The first argument, which cargo passes to a subcommand.
    subcommand: &'static str,
    /// Additional options of the build.
    options: &'static str,
}

impl CargoTool {
    pub(crate) const NEXTEST: Self =
        Self { package: "cargo-nextest", version: "0.9.143", subcommand: "nextest", options: "" };
    pub(crate) const FUZZ: Self =
        Self { package: "cargo-fuzz", version: "0.13.2", subcommand: "fuzz", options: "" };
    pub(crate) const MUTANTS: Self =
        Self { package: "cargo-mutants", version: "27.1.0", subcommand: "mutants", options: "" };
    /// Not built by a task: only its database makes the program useful.
    pub(crate) const AUDIT: Self =
        Self { package: "cargo-audit", version: "0.22.2", subcommand: "audit", options: "" };
    /// Without the default features, which send reports to other services.
    pub(crate) const TARPAULIN: Self = Self {
        package: "cargo-tarpaulin",
        version: "0.37.5",
        subcommand: "tarpaulin",
        options: "--no-default-features",
    };

    /// The installed tool, if it exists.
    pub(crate) fn find_installed(self) -> Option<Program> {
        let built = repository_root().join("target/tools/bin").join(self.package);
        let version_args = format!("{} --version", self.subcommand);
        [Path::new(self.package), &built]
            .into_iter()
            .find(|path| Program::new(path).args(&version_args).output().is_ok())
            .map(|path| Program::new(path).arg(self.subcommand))
    }

    /// Returns the tool, and builds it if it is missing.
    ///
    /// # Errors
    ///
    /// The tool does not build.
    pub(crate) fn install(self) -> TaskResult<Program> {
        if let Some(program) = self.find_installed() {
            return Ok(program);
        }
        let Self { package, version, options, .. } = self;
        let line = format!("install {package} --version {version} --locked --root target/tools");
        Program::cargo(&line)
            .args(options)
            .run_with_log(&repository_root().join(format!("target/{package}.log")))?;
        self.find_installed().ok_or_else(|| format!("`{package}` does not run after its build"))
    }
}
