//! Pins: what every tool was when a person last looked, so that a change is noticed.
//!
//! A [`Lock`] is what `mcp.lock` holds. It is made from a running host, compared with another one,
//! and given to a host that is about to start.

mod canonical;
mod change;
mod compare;
mod definition;
mod error;
mod guard;
mod launch;
mod package;
mod schema;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use innkeeper_protocol::view::Tool;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalog::Shelf;
use crate::config::{ServerConfig, read_bytes};
use crate::server::offer::Offered;

pub use change::{Change, ChangeClass};
pub use error::LockError;
pub(crate) use guard::{Guard, Mismatch, Refused};
pub use launch::Launch;
pub use package::Package;
pub(crate) use package::{Fetched, of_transport as fetched};

/// The largest lock that is read, in bytes: two full tool lists, spread over lines.
pub const MAX_LOCK_BYTES: u64 = 64 << 20;

/// The longest definition that is pinned, in bytes; nobody would read more, and every change of a
/// list has all of them hashed. A longer one does not fit any lock.
pub(crate) const DEFINITION_LIMIT: usize = 1 << 20;

/// The form of the file that is written and read here.
const VERSION: u32 = 1;

/// What is done with a tool that is not as it was pinned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PinPolicy {
    /// It is left out of the catalog and calls to it fail, until it is pinned anew.
    #[default]
    Refuse,
    /// It is offered all the same, with a warning and an event.
    Report,
}

/// The pins of all servers of a configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lock {
    version: u32,
    /// What a host does with this lock. Default: [`PinPolicy::Refuse`].
    #[serde(default)]
    pub policy: PinPolicy,
    /// The servers by their names in the configuration.
    pub servers: BTreeMap<String, PinnedServer>,
}

/// One server as it was pinned.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PinnedServer {
    /// How it is started or reached, as written in the configuration: never an environment value,
    /// a header or what a variable held.
    pub launch: Launch,
    /// The package it comes from, where a package runner starts it.
    #[serde(default)]
    pub package: Option<Package>,
    /// Who it said it is.
    #[serde(default)]
    pub server_info: Option<Identity>,
    /// What it tells a model about its use.
    #[serde(default)]
    pub instructions: Option<PinnedText>,
    /// Its tools by name, those included that the configuration hides.
    pub tools: BTreeMap<String, PinnedTool>,
}

/// `serverInfo` as a server told it: a claim, not a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Its name, if it told one.
    pub name: Option<String>,
    /// Its version, if it told one.
    pub version: Option<String>,
}

/// A text with its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedText {
    /// `sha256:` and 64 hexadecimal digits, over the bytes of the text.
    pub hash: String,
    /// The text, for the diff.
    pub text: String,
}

/// A tool with its hash.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedTool {
    /// `sha256:` and 64 hexadecimal digits, over the canonical form of the definition.
    pub hash: String,
    /// The whole definition, for the diff.
    pub definition: Box<RawValue>,
}

impl Default for Lock {
    fn default() -> Self {
        Self { version: VERSION, policy: PinPolicy::default(), servers: BTreeMap::new() }
    }
}

impl Lock {
    /// Reads a lock file; `None` where there is none.
    ///
    /// # Errors
    ///
    /// See [`LockError`]; each names the file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Option<Self>, LockError> {
        let path = path.as_ref();
        let name = || path.display().to_string();
        let unreadable = |source| LockError::Unreadable { file: name(), source };
        let bytes = match read_bytes(path, MAX_LOCK_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(LockError::TooLarge { file: name() });
            }
            Err(error) => return Err(unreadable(error)),
        };
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| unreadable(io::ErrorKind::InvalidData.into()))?;
        Self::from_text(&text, &name()).map(Some)
    }

    /// Reads a text as if it were a file of this name.
    ///
    /// # Errors
    ///
    /// A text that is no lock, one of another version, and one whose hashes do not fit.
    pub fn from_text(text: &str, file: &str) -> Result<Self, LockError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u64,
        }
        let malformed = |source| LockError::malformed(file, source);
        let Versioned { version } = serde_json::from_str(text).map_err(malformed)?;
        if version != u64::from(VERSION) {
            return Err(LockError::Version { file: file.to_owned(), version });
        }
        let lock: Self = serde_json::from_str(text).map_err(malformed)?;
        match lock.misfit() {
            None => Ok(lock),
            Some(item) => Err(LockError::Misfit { file: file.to_owned(), item }),
        }
    }

    /// The lock as a file holds it: sorted, one member a line, the same for equal pins.
    ///
    /// # Errors
    ///
    /// None in practice: everything in a lock can be written as JSON.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        Ok(canonical::pretty(&serde_json::to_string(self)?))
    }

    /// What differs in `found` from what is pinned here, by server and tool, the worst of each
    /// first. Policies are not compared.
    pub fn compare(&self, found: &Self) -> Vec<Change> {
        compare::locks(self, found)
    }

    /// The first thing whose hash is not that of what stands beside it.
    fn misfit(&self) -> Option<String> {
        for (name, server) in &self.servers {
            let text = server.instructions.as_ref();
            if text.is_some_and(|text| text.hash != canonical::hash(&text.text)) {
                return Some(format!("the instructions of `{name}`"));
            }
            let wrong = |tool: &&PinnedTool| tool.hash != canonical::hash_of(&tool.definition);
            if let Some((tool, _)) = server.tools.iter().find(|(_, tool)| wrong(tool)) {
                return Some(format!("tool `{tool}` of `{name}`"));
            }
        }
        None
    }
}

impl PinnedServer {
    /// What a ready server is now.
    pub(crate) fn of(config: &ServerConfig, shelf: &Shelf) -> Self {
        let (launch, package) = launch::of(&config.transport);
        let fits = |tool: &&Offered<Tool>| tool.raw.get().len() <= DEFINITION_LIMIT;
        let pin = |tool: &Offered<Tool>| (tool.view.name.clone(), PinnedTool::of(&tool.raw));
        Self {
            launch,
            package,
            server_info: shelf.server_info.as_deref().map(Identity::of),
            instructions: shelf.instructions.as_deref().map(PinnedText::of),
            tools: shelf.all_tools().filter(fits).map(pin).collect(),
        }
    }
}

impl Identity {
    fn of(raw: &RawValue) -> Self {
        let info: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let text = |key: &str| info.get(key).and_then(Value::as_str).map(str::to_owned);
        Self { name: text("name"), version: text("version") }
    }
}

impl PinnedText {
    fn of(text: &str) -> Self {
        Self { hash: canonical::hash(text), text: text.to_owned() }
    }
}

impl PinnedTool {
    fn of(definition: &RawValue) -> Self {
        Self { hash: canonical::hash_of(definition), definition: definition.to_owned() }
    }
}
