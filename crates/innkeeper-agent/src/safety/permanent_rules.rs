//! Rules of a user for tools that outlive a conversation, stored on disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use innkeeper_host::Lock;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// Supported version of the file format.
const FORMAT_VERSION: u32 = 1;

/// Maximum number of rules for one configuration: far above what a user reviews.
const MAX_RULES: usize = 1_000;

/// Maximum size of a file of rules in bytes: the maximum number of rules with long names.
const MAX_RULE_FILE_BYTES: u64 = 1 << 20;

/// The launch of a server and the definition of one of its tools, as hashes.
///
/// A changed definition, and the same name for another server, have another fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFingerprint {
    /// `sha256:` and 64 hexadecimal digits, over the launch of the server in a lock.
    launch: String,
    /// The hash of the definition in a lock.
    definition: String,
}

impl ToolFingerprint {
    /// Returns the fingerprint of a tool, by its own name, with this definition. `pins` is the
    /// result of [`Host::pins`](innkeeper_host::Host::pins). `None` if the server is not ready, or
    /// has the tool with another definition or with one that is too long for a pin.
    pub fn from_pins(pins: &Lock, server: &str, tool: &str, definition: &RawValue) -> Option<Self> {
        let server = pins.servers.get(server)?;
        let tool = server.tools.get(tool)?;
        let launch = serde_json::to_string(&server.launch).ok()?;
        (tool.definition.get() == definition.get()).then(|| Self {
            launch: format!("sha256:{:x}", Sha256::digest(launch)),
            definition: tool.hash.clone(),
        })
    }
}

/// The tools of one configuration whose calls run without a question in all conversations.
///
/// A rule applies to a tool of a server while the tool has the fingerprint of the time of the
/// decision. Each change reads the file again, so that the rules of another program remain; if two
/// programs write at the same moment, the last write wins.
///
/// # Examples
///
/// ```no_run
/// use innkeeper_agent::safety::{PermanentRules, ToolFingerprint};
/// use innkeeper_host::Host;
///
/// # fn example(host: &Host) -> Result<(), Box<dyn std::error::Error>> {
/// let mut rules = PermanentRules::open("state/rules".as_ref(), &["mcp.json".into()])?;
/// let catalog = host.catalog();
/// for tool in catalog.tools() {
///     let (name, definition) = (&tool.definition.view.name, &tool.definition.raw);
///     if let Some(found) =
///         ToolFingerprint::from_pins(&host.pins(), tool.server, name, definition)
///     {
///         rules.add(tool.server, name, found)?;
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct PermanentRules {
    path: PathBuf,
    contents: RuleFile,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    version: u32,
    /// The configuration files, for readers of the directory.
    files: Vec<String>,
    tools: BTreeMap<String, BTreeMap<String, ToolFingerprint>>,
}

/// The reason why rules cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum PermanentRuleError {
    /// A file of the configuration cannot be found.
    #[error("cannot find the configuration file `{file}`")]
    MissingConfiguration {
        /// The file.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// The file of rules cannot be read.
    #[error("cannot read the rules in `{file}`")]
    ReadFailed {
        /// The file.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// The content of the file of rules is not what this library writes.
    #[error("the file of rules `{file}` is damaged: {problem}")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// The file of rules has a version of another release.
    #[error("the file of rules `{file}` has version {version}, which this release cannot read")]
    UnsupportedVersion {
        /// The file.
        file: String,
        /// The version.
        version: u64,
    },
    /// The rules exceed a limit.
    #[error("`{file}` has no room for another rule")]
    Full {
        /// The file.
        file: String,
    },
    /// The file of rules cannot be written.
    #[error("cannot store the rules in `{file}`")]
    WriteFailed {
        /// The file.
        file: String,
        /// The cause.
        source: io::Error,
    },
}

impl PermanentRules {
    /// Opens the rules for the configuration of these files, stored in `directory`, which need not
    /// exist. Nobody but the user must have write access to `directory`. A file is identified by its
    /// directory and its own name.
    ///
    /// # Errors
    ///
    /// A file of the configuration does not exist, or the rules cannot be read. The file of rules
    /// stays as it is.
    pub fn open(directory: &Path, files: &[PathBuf]) -> Result<Self, PermanentRuleError> {
        let paths = files.iter().map(|file| {
            canonical_path(file).map_err(|source| PermanentRuleError::MissingConfiguration {
                file: file.display().to_string(),
                source,
            })
        });
        let paths = paths.collect::<Result<Vec<_>, _>>()?;
        let mut hash = Sha256::new();
        for path in &paths {
            let bytes = path.as_os_str().as_encoded_bytes();
            hash.update(bytes.len().to_le_bytes());
            hash.update(bytes);
        }
        let path = directory.join(format!("{:.32x}", hash.finalize())).with_extension("json");
        let files = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let empty = RuleFile { version: FORMAT_VERSION, files, tools: BTreeMap::new() };
        let mut rules = Self { path, contents: empty };
        rules.read_again()?;
        Ok(rules)
    }

    /// Returns whether a rule lets the calls of this tool, by its own name, run without a question.
    pub fn allows(&self, server: &str, tool: &str, fingerprint: &ToolFingerprint) -> bool {
        self.find(server, tool) == Some(fingerprint)
    }

    /// Returns whether there is a rule for a tool, with the present or an earlier fingerprint.
    pub fn has_rule(&self, server: &str, tool: &str) -> bool {
        self.find(server, tool).is_some()
    }

    /// Returns the tools with a rule, by their own names, with their servers and fingerprints.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &ToolFingerprint)> {
        let servers = self.contents.tools.iter();
        servers.flat_map(|(server, tools)| {
            tools.iter().map(|(tool, fingerprint)| (&**server, &**tool, fingerprint))
        })
    }

    fn find(&self, server: &str, tool: &str) -> Option<&ToolFingerprint> {
        self.contents.tools.get(server)?.get(tool)
    }

    /// Stores a rule for a tool; a rule with another fingerprint is replaced.
    ///
    /// # Errors
    ///
    /// The file has no room, or cannot be read or written; there is no new rule then.
    pub fn add(
        &mut self,
        server: &str,
        tool: &str,
        fingerprint: ToolFingerprint,
    ) -> Result<(), PermanentRuleError> {
        self.read_again()?;
        let mut changed = self.contents.clone();
        changed.tools.entry(server.to_owned()).or_default().insert(tool.to_owned(), fingerprint);
        self.replace(changed)
    }

    /// Removes the rule for a tool. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written; the rule remains then.
    pub fn remove(&mut self, server: &str, tool: &str) -> Result<bool, PermanentRuleError> {
        self.read_again()?;
        let mut changed = self.contents.clone();
        let Some(tools) = changed.tools.get_mut(server) else { return Ok(false) };
        if tools.remove(tool).is_none() {
            return Ok(false);
        }
        if tools.is_empty() {
            changed.tools.remove(server);
        }
        self.replace(changed).map(|()| true)
    }

    fn file_name(&self) -> String {
        self.path.display().to_string()
    }

    /// Reads the rules of the file; a missing file has none.
    fn read_again(&mut self) -> Result<(), PermanentRuleError> {
        #[derive(Deserialize)]
        struct VersionHeader {
            version: u64,
        }
        let file = self.file_name();
        let damaged = |problem: String| PermanentRuleError::Damaged { file: file.clone(), problem };
        let Some(bytes) = read_file(&self.path)
            .map_err(|source| PermanentRuleError::ReadFailed { file: file.clone(), source })?
        else {
            self.contents.tools.clear();
            return Ok(());
        };
        if bytes.len() as u64 > MAX_RULE_FILE_BYTES {
            return Err(damaged(format!("it is longer than {MAX_RULE_FILE_BYTES} bytes")));
        }
        let VersionHeader { version } =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if version != u64::from(FORMAT_VERSION) {
            return Err(PermanentRuleError::UnsupportedVersion { file, version });
        }
        let contents: RuleFile =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if contents.files != self.contents.files {
            return Err(damaged("it belongs to another configuration".to_owned()));
        }
        self.contents = contents;
        Ok(())
    }

    /// Replaces the file, and the rules after a success.
    fn replace(&mut self, changed: RuleFile) -> Result<(), PermanentRuleError> {
        let write_failed =
            |source| PermanentRuleError::WriteFailed { file: self.file_name(), source };
        let text =
            serde_json::to_vec_pretty(&changed).map_err(|error| write_failed(error.into()))?;
        let count = changed.tools.values().map(BTreeMap::len).sum::<usize>();
        if count > MAX_RULES || text.len() as u64 > MAX_RULE_FILE_BYTES {
            return Err(PermanentRuleError::Full { file: self.file_name() });
        }
        write(&self.path, &text).map_err(write_failed)?;
        self.contents = changed;
        Ok(())
    }
}

/// Resolves the directory of a file, but not the file itself if it is a link.
fn canonical_path(file: &Path) -> io::Result<PathBuf> {
    file.metadata()?;
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    Ok(directory.unwrap_or(Path::new(".")).canonicalize()?.join(name))
}

/// Reads a file up to one byte more than its maximum size; `None` if the file does not exist.
fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_RULE_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Replaces a file atomically. Only the user can read the file and its new directory.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut directory = fs::DirBuilder::new();
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        directory.mode(0o700);
        options.mode(0o600);
    }
    directory.recursive(true).create(path.parent().unwrap_or(Path::new(".")))?;
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = options.open(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests;
