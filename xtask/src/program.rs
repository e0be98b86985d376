//! The only place that starts programs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Chore;

/// A program about to be run in the repository's root.
#[derive(Debug)]
pub(crate) struct Program {
    command: Command,
    words: String,
}

impl Program {
    /// Names the program; without a slash it is looked up as a shell would.
    #[expect(clippy::disallowed_methods, reason = "the one place where chores start programs")]
    pub(crate) fn new(program: impl AsRef<Path>) -> Self {
        let program = program.as_ref();
        let mut command = Command::new(program);
        command.current_dir(root()).stdin(Stdio::null());
        let words = program
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Self { command, words }
    }

    /// Cargo, with the words of one line as its arguments.
    pub(crate) fn cargo(line: &str) -> Self {
        Self::new("cargo").line(line)
    }

    /// Adds the words of one line.
    pub(crate) fn line(self, line: &str) -> Self {
        line.split_whitespace().fold(self, Self::arg)
    }

    /// Adds one argument.
    pub(crate) fn arg(mut self, argument: impl AsRef<str>) -> Self {
        let argument = argument.as_ref();
        self.command.arg(argument);
        self.words.push(' ');
        self.words.push_str(argument);
        self
    }

    /// Adds a path as an argument.
    pub(crate) fn path(mut self, path: &Path) -> Self {
        self.command.arg(path);
        self.words.push_str(" …");
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs elsewhere than in the root.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs it on this terminal.
    ///
    /// # Errors
    ///
    /// It does not start, or does not end with success.
    pub(crate) fn run(mut self) -> Chore {
        let status = self.command.status();
        let status = status.map_err(|error| format!("`{}` does not start: {error}", self.words))?;
        if status.success() { Ok(()) } else { Err(format!("`{}` failed ({status})", self.words)) }
    }

    /// Runs it with all it says in a file; the end of that file is in the error.
    ///
    /// # Errors
    ///
    /// It does not start, or does not end with success.
    pub(crate) fn run_into(mut self, log: &Path) -> Chore {
        let open = |error| format!("`{}`: {error}", relative(log));
        let file = File::options().create(true).append(true).open(log).map_err(open)?;
        self.command.stdout(file.try_clone().map_err(open)?).stderr(file);
        let words = self.words.clone();
        self.run().map_err(|problem| {
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let tail = lines[lines.len().saturating_sub(15)..].join("\n  ");
            format!("{problem}; the end of what `{words}` said:\n  {tail}")
        })
    }

    /// Runs it and returns what it printed.
    ///
    /// # Errors
    ///
    /// It does not start, or does not end with success; then its own words are in the error.
    pub(crate) fn output(mut self) -> Chore<String> {
        let output = self.command.output();
        let output = output.map_err(|error| format!("`{}` does not start: {error}", self.words))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("`{}` failed ({}): {}", self.words, output.status, said.trim()))
    }
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// A path as people write it: from the root.
pub(crate) fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
