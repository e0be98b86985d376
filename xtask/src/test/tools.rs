//! Cargo's companions: taken from the machine, else built once into `target/tools`.

use std::path::Path;

use crate::Chore;
use crate::program::{Program, root};

/// A cargo subcommand that is a program of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    /// The package, and its program.
    package: &'static str,
    version: &'static str,
    /// The word cargo passes in front.
    verb: &'static str,
    /// How it is built apart from that.
    options: &'static str,
}

impl Tool {
    pub(crate) const NEXTEST: Self =
        Self { package: "cargo-nextest", version: "0.9.143", verb: "nextest", options: "" };
    pub(crate) const FUZZ: Self =
        Self { package: "cargo-fuzz", version: "0.13.2", verb: "fuzz", options: "" };
    /// Without its default features, which send reports elsewhere.
    pub(crate) const TARPAULIN: Self = Self {
        package: "cargo-tarpaulin",
        version: "0.37.5",
        verb: "tarpaulin",
        options: "--no-default-features",
    };

    /// The tool ready to be given its arguments, if it is there.
    pub(crate) fn present(self) -> Option<Program> {
        let built = root().join("target/tools/bin").join(self.package);
        let question = format!("{} --version", self.verb);
        [Path::new(self.package), &built]
            .into_iter()
            .find(|place| Program::new(place).line(&question).output().is_ok())
            .map(|place| Program::new(place).arg(self.verb))
    }

    /// The tool, built where it is missing.
    ///
    /// # Errors
    ///
    /// It does not build.
    pub(crate) fn provide(self) -> Chore<Program> {
        if let Some(program) = self.present() {
            return Ok(program);
        }
        let Self { package, version, options, .. } = self;
        let line = format!("install {package} --version {version} --locked --root target/tools");
        Program::cargo(&line)
            .line(options)
            .run_into(&root().join(format!("target/{package}.log")))?;
        self.present().ok_or_else(|| format!("`{package}` was built but does not run"))
    }
}
