//! The builder of fixture servers: switches and configuration entries.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::ProcessTag;
use crate::fixture_server::is_switch;

/// A fixture server before its start: name, switches, environment and configuration keys.
#[derive(Clone, Debug)]
pub struct Fixture {
    name: String,
    args: Vec<String>,
    env: Map<String, Value>,
    config_keys: Map<String, Value>,
}

/// Returns a fixture server without faults; `name` is also its key in the configuration.
#[must_use]
pub fn fixture(name: &str) -> Fixture {
    Fixture {
        name: name.to_owned(),
        args: vec!["--name".to_owned(), name.to_owned()],
        env: Map::new(),
        config_keys: Map::new(),
    }
}

impl Fixture {
    /// Adds a switch without a value, with its dashes.
    ///
    /// # Panics
    ///
    /// If the fixture server has no such switch.
    #[must_use]
    pub fn switch(mut self, name: &str) -> Self {
        assert!(is_switch(name), "innkeeper-fixture-server has no switch `{name}`");
        self.args.push(name.to_owned());
        self
    }

    /// Adds a switch with its value.
    ///
    /// # Panics
    ///
    /// If the fixture server has no such switch.
    #[must_use]
    pub fn with(self, name: &str, value: impl Display) -> Self {
        let mut fixture = self.switch(name);
        fixture.args.push(value.to_string());
        fixture
    }

    /// Sets the journal file, to which the server appends what it receives; several servers may
    /// share a file.
    #[must_use]
    pub fn journal(self, path: &Path) -> Self {
        self.with("--journal", path.display())
    }

    /// Tags the server and all its child processes, for [`crate::tagged_processes`].
    #[must_use]
    pub fn process_tag(self, tag: &ProcessTag) -> Self {
        self.env(ProcessTag::VARIABLE, tag.as_str())
    }

    /// Adds a variable to the server's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), json!(value));
        self
    }

    /// Adds a key to the server's configuration, such as `timeout`.
    #[must_use]
    pub fn config_key(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.config_keys.insert(key.to_owned(), value.into());
        self
    }

    /// The name of the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arguments of the server's command line.
    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// The added configuration keys, for every transport.
    pub(crate) fn config_keys(&self) -> &Map<String, Value> {
        &self.config_keys
    }

    /// The value of a switch that [`Fixture::with`] set; the last value of a repeated switch.
    pub(crate) fn switch_value(&self, switch: &str) -> Option<&str> {
        let at = self.args.iter().rposition(|arg| arg == switch)?;
        self.args.get(at + 1).map(String::as_str)
    }

    /// Returns the server's entry in a configuration file.
    #[must_use]
    pub fn config_entry(&self) -> Value {
        let mut entry =
            json!({"command": fixture_program().display().to_string(), "args": self.args});
        if !self.env.is_empty() {
            entry["env"] = Value::Object(self.env.clone());
        }
        for (key, value) in &self.config_keys {
            entry[key] = value.clone();
        }
        entry
    }

    /// Returns the command that starts the server as a child process of the test.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "tests start their own processes")]
    pub fn command(&self) -> Command {
        let mut command = Command::new(fixture_program());
        command.args(&self.args);
        for (name, value) in &self.env {
            command.env(name, value.as_str().unwrap_or_default());
        }
        command
    }
}

/// Returns the text of a configuration file with these servers, in this order.
#[must_use]
pub fn mcp_json(servers: impl IntoIterator<Item = Fixture>) -> Value {
    let servers: Map<String, Value> =
        servers.into_iter().map(|server| (server.name.clone(), server.config_entry())).collect();
    json!({"servers": servers})
}

/// Returns the path of the fixture server's program.
///
/// # Panics
///
/// If the program is not built.
#[must_use]
pub fn fixture_program() -> PathBuf {
    built_program("innkeeper-fixture-server")
}

/// Returns the path of a program of the workspace, in the directory of the running test's program or
/// in its parent.
///
/// # Panics
///
/// If the program is not built.
#[must_use]
pub fn built_program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let mut programs = test.ancestors().skip(1).take(2).map(|directory| directory.join(name));
    programs
        .find(|program| program.is_file())
        .unwrap_or_else(|| panic!("{name} is not built: run `cargo build --workspace --bins`"))
}
