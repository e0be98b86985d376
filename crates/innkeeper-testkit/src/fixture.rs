//! Configuring fixture servers: their switches, and the configuration text that starts them.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::Nonce;
use crate::fx::is_switch;

/// A fixture server to be started: its name, switches, environment and configuration keys.
#[derive(Clone, Debug)]
pub struct Fixture {
    name: String,
    args: Vec<String>,
    env: Map<String, Value>,
    keys: Map<String, Value>,
}

/// A well-behaved fixture server of this name, which is also its key in the configuration.
#[must_use]
pub fn fx(name: &str) -> Fixture {
    Fixture {
        name: name.to_owned(),
        args: vec!["--name".to_owned(), name.to_owned()],
        env: Map::new(),
        keys: Map::new(),
    }
}

impl Fixture {
    /// Adds a switch without a value, written with its dashes.
    ///
    /// # Panics
    ///
    /// When the fixture server has no such switch.
    #[must_use]
    pub fn switch(mut self, name: &str) -> Self {
        assert!(is_switch(name), "innkeeper-fx has no switch `{name}`");
        self.args.push(name.to_owned());
        self
    }

    /// Adds a switch with its value.
    ///
    /// # Panics
    ///
    /// When the fixture server has no such switch.
    #[must_use]
    pub fn with(self, name: &str, value: impl Display) -> Self {
        let mut fixture = self.switch(name);
        fixture.args.push(value.to_string());
        fixture
    }

    /// Lets the server append what it receives to this file; several servers may share one.
    #[must_use]
    pub fn journal(self, path: &Path) -> Self {
        self.with("--journal", path.display())
    }

    /// Marks the server and everything it starts, for [`crate::processes_with`].
    #[must_use]
    pub fn nonce(self, nonce: &Nonce) -> Self {
        self.env(Nonce::VARIABLE, nonce.as_str())
    }

    /// Adds a variable to the server's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), json!(value));
        self
    }

    /// Adds a key to the server's configuration, such as `timeout`.
    #[must_use]
    pub fn key(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.keys.insert(key.to_owned(), value.into());
        self
    }

    /// The server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arguments it is started with.
    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// The configuration keys added, whatever the server is reached by.
    pub(crate) fn keys(&self) -> &Map<String, Value> {
        &self.keys
    }

    /// The value of a switch given with [`Fixture::with`]; of several, the last.
    pub(crate) fn value(&self, switch: &str) -> Option<&str> {
        let at = self.args.iter().rposition(|arg| arg == switch)?;
        self.args.get(at + 1).map(String::as_str)
    }

    /// The server's entry of a configuration file.
    #[must_use]
    pub fn entry(&self) -> Value {
        let mut entry = json!({"command": fx_program().display().to_string(), "args": self.args});
        if !self.env.is_empty() {
            entry["env"] = Value::Object(self.env.clone());
        }
        for (key, value) in &self.keys {
            entry[key] = value.clone();
        }
        entry
    }

    /// The server as a process of the test's own, with nothing else set up.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "tests start processes of their own")]
    pub fn command(&self) -> Command {
        let mut command = Command::new(fx_program());
        command.args(&self.args);
        for (name, value) in &self.env {
            command.env(name, value.as_str().unwrap_or_default());
        }
        command
    }
}

/// The text of a configuration file with these servers, in this order.
#[must_use]
pub fn mcp_json(servers: impl IntoIterator<Item = Fixture>) -> Value {
    let servers: Map<String, Value> =
        servers.into_iter().map(|server| (server.name.clone(), server.entry())).collect();
    json!({"servers": servers})
}

/// Where the fixture server's program is: beside the directory of the running test.
///
/// # Panics
///
/// When it has not been built.
#[must_use]
pub fn fx_program() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let program = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join("innkeeper-fx"))
        .find(|program| program.is_file());
    program.unwrap_or_else(|| {
        panic!("innkeeper-fx is not built: run `cargo build -p innkeeper-testkit --bins`")
    })
}
