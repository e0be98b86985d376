//! Pins: the reviewed definition of every tool, to detect changes.
//!
//! A [`Lock`] is the content of `mcp.lock`. An application creates a lock from a running host,
//! compares it with another lock, and passes it to a host at start.

mod canonical;
mod change;
mod compare;
mod definition;
mod error;
mod launch;
mod package;
mod pin_verifier;
mod schema_comparison;
mod text_changes;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use innkeeper_config::{ServerConfig, read_bytes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalog::CatalogEntry;

pub use change::{ChangeClass, PinChange};
pub use error::LockError;
pub use launch::{InProcessType, PinnedLaunch};
pub(crate) use package::packages_for_transport as fetched;
pub use package::{Package, RunnerPackages};
pub(crate) use pin_verifier::PinVerifier;

/// Name of the lock, which lies beside the first configuration file.
pub const LOCK_FILE_NAME: &str = "mcp.lock";

/// Maximum size of a lock file in bytes: two full tool lists, pretty-printed.
pub const MAX_LOCK_BYTES: u64 = 64 << 20;

/// Maximum size of a pinned definition in bytes; no user would review more, and every list change
/// hashes all definitions. A longer definition matches no lock.
pub(crate) const MAX_DEFINITION_BYTES: usize = 1 << 20;

/// Supported version of the file format.
const LOCK_VERSION: u32 = 1;

/// The action on a tool that does not match its pin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PinPolicy {
    /// The tool is excluded from the catalog and calls to it fail until the user pins it again.
    #[default]
    Refuse,
    /// The tool stays available, with a warning and an event.
    Report,
}

/// The pins of all servers of a configuration.
///
/// # Examples
///
/// ```no_run
/// use innkeeper_host::{Host, Lock};
///
/// # fn example(host: &Host) -> Result<(), Box<dyn std::error::Error>> {
/// match Lock::from_file("mcp.lock")? {
///     Some(lock) => {
///         for change in lock.compare(&host.pins()) {
///             println!("{}: {}", change.server, change.description);
///         }
///     }
///     None => std::fs::write("mcp.lock", host.pins().to_text()?)?,
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lock {
    version: u32,
    /// Action of the host on a mismatch. Default: [`PinPolicy::Refuse`].
    #[serde(default)]
    pub policy: PinPolicy,
    /// Servers by name in the configuration.
    pub servers: BTreeMap<String, PinnedServer>,
}

/// The pins of one server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PinnedServer {
    /// Launch or address as written in the configuration, without values of environment variables,
    /// headers or `${…}` variables.
    pub launch: PinnedLaunch,
    /// Package, if a package runner starts the server.
    #[serde(default)]
    pub package: Option<Package>,
    /// Identity that the server reported.
    #[serde(default)]
    pub server_info: Option<ServerIdentity>,
    /// Instructions of the server for models.
    #[serde(default)]
    pub instructions: Option<PinnedText>,
    /// Tools by name, including tools that the configuration excludes.
    pub tools: BTreeMap<String, PinnedTool>,
}

/// The `serverInfo` of a server: a claim, not a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerIdentity {
    /// Reported name, if any.
    pub name: Option<String>,
    /// Reported version, if any.
    pub version: Option<String>,
}

/// A text with its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedText {
    /// `sha256:` and 64 hexadecimal digits, over the bytes of the text.
    pub hash: String,
    /// Text, for the diff.
    pub text: String,
}

/// A tool with its hash.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedTool {
    /// `sha256:` and 64 hexadecimal digits, over the canonical form of the definition.
    pub hash: String,
    /// Full definition, for the diff.
    pub definition: Box<RawValue>,
}

impl Default for Lock {
    fn default() -> Self {
        Self { version: LOCK_VERSION, policy: PinPolicy::default(), servers: BTreeMap::new() }
    }
}

impl Lock {
    /// Reads a lock file of at most [`MAX_LOCK_BYTES`]; returns `None` if the file does not exist.
    ///
    /// # Errors
    ///
    /// See [`LockError`]; each error names the file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Option<Self>, LockError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let text = read_bytes(path, MAX_LOCK_BYTES).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
        });
        match text {
            Ok(text) => Self::from_text(&text, &file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(LockError::TooLarge { file })
            }
            Err(source) => Err(LockError::Unreadable { file, source }),
        }
    }

    /// Parses a text as the lock file `file`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a lock, has another version, or has a wrong hash.
    pub fn from_text(text: &str, file: &str) -> Result<Self, LockError> {
        #[derive(Deserialize)]
        struct VersionHeader {
            version: u64,
        }
        let VersionHeader { version } =
            serde_json::from_str(text).map_err(|source| LockError::malformed(file, source))?;
        if version != u64::from(LOCK_VERSION) {
            return Err(LockError::UnsupportedVersion { file: file.to_owned(), version });
        }
        let lock: Self =
            serde_json::from_str(text).map_err(|source| LockError::malformed(file, source))?;
        match lock.hash_mismatch() {
            None => Ok(lock),
            Some(item) => Err(LockError::HashMismatch { file: file.to_owned(), item }),
        }
    }

    /// Serializes the lock: sorted, one member per line, equal for equal pins.
    ///
    /// # Errors
    ///
    /// None in practice: every lock can be serialized as JSON.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        Ok(canonical::pretty(&serde_json::to_string(self)?))
    }

    /// Returns the changes from this lock to `current`, by server and tool, the most severe first.
    /// Policies are not compared.
    pub fn compare(&self, current: &Self) -> Vec<PinChange> {
        compare::compare_locks(self, current)
    }

    /// Returns the first item whose hash does not match its content.
    fn hash_mismatch(&self) -> Option<String> {
        for (name, server) in &self.servers {
            let text = server.instructions.as_ref();
            if text.is_some_and(|text| text.hash != canonical::hash_text(&text.text)) {
                return Some(format!("the instructions of `{name}`"));
            }
            for (tool, pin) in &server.tools {
                if pin.hash != canonical::hash_json(&pin.definition) {
                    return Some(format!("tool `{tool}` of `{name}`"));
                }
            }
        }
        None
    }
}

impl PinnedServer {
    /// Pins the current state of a ready server.
    pub(crate) fn from_entry(config: &ServerConfig, entry: &CatalogEntry) -> Self {
        let (launch, package) = launch::from_transport(&config.transport);
        Self {
            launch,
            package,
            server_info: entry
                .introduction
                .server_info
                .as_deref()
                .map(ServerIdentity::from_server_info),
            instructions: entry.introduction.instructions.as_deref().map(PinnedText::new),
            tools: entry
                .all_tools()
                .filter(|tool| tool.raw.get().len() <= MAX_DEFINITION_BYTES)
                .map(|tool| (tool.view.name.clone(), PinnedTool::new(&tool.raw)))
                .collect(),
        }
    }
}

impl ServerIdentity {
    fn from_server_info(raw: &RawValue) -> Self {
        let info: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let [name, version] =
            ["name", "version"].map(|key| info.get(key).and_then(Value::as_str).map(str::to_owned));
        Self { name, version }
    }
}

impl PinnedText {
    fn new(text: &str) -> Self {
        Self { hash: canonical::hash_text(text), text: text.to_owned() }
    }
}

impl PinnedTool {
    /// Pins a definition.
    pub fn new(definition: &RawValue) -> Self {
        Self { hash: canonical::hash_json(definition), definition: definition.to_owned() }
    }
}
