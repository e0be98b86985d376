//! The user's trust decisions about one configuration file, stored on disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use innkeeper_config::read_bytes;
use innkeeper_process::ledger::{create_private_dir, create_private_file};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{GatewaySpec, LaunchSpec};
use crate::audit::TARGET;

/// Supported version of the file format.
const FORMAT_VERSION: u32 = 1;

/// Maximum number of servers in a file of decisions: far above real files. One more server resets
/// the file.
const MAX_SERVERS: usize = 1_000;

/// Maximum size of a file of decisions in bytes: the maximum number of servers with the longest
/// names.
const MAX_DECISION_FILE_BYTES: u64 = 1 << 20;

/// The approved servers of one configuration file, each by the fingerprint of its launch, and its
/// approved settings of the gateway.
///
/// If several processes decide about one file at the same time, the last write wins.
#[derive(Clone, Debug)]
pub struct TrustDecisions {
    path: PathBuf,
    contents: DecisionFile,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct DecisionFile {
    version: u32,
    /// Configuration file, for readers of the directory.
    file: String,
    servers: BTreeMap<String, String>,
    /// Fingerprint of the settings of the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gateway: Option<String>,
}

impl TrustDecisions {
    /// Opens the decisions about the configuration `file`, stored in `directory`, which need not
    /// exist.
    ///
    /// The author of `file` must not have write access to `directory`. A file of decisions that
    /// cannot be parsed counts as empty. A configuration file is identified by its directory and
    /// its own name: a link to another file has its own decisions.
    ///
    /// # Errors
    ///
    /// Returns an error if `file` does not exist or the decisions cannot be read.
    pub fn open(directory: &Path, file: &Path) -> io::Result<Self> {
        let file = canonical_path(file)?;
        let hash = Sha256::digest(file.as_os_str().as_encoded_bytes());
        let decision_file = directory.join(format!("{hash:.32x}")).with_extension("json");
        let file = file.to_string_lossy().into_owned();
        let contents = match read(&decision_file)? {
            Some(page) if page.version == FORMAT_VERSION && page.file == file => page,
            Some(_) | None => DecisionFile {
                version: FORMAT_VERSION,
                file,
                servers: BTreeMap::new(),
                gateway: None,
            },
        };
        Ok(Self { path: decision_file, contents })
    }

    /// Returns the launches that are not approved in their current form.
    #[must_use]
    pub fn undecided(&self, launches: Vec<LaunchSpec>) -> Vec<LaunchSpec> {
        let servers = &self.contents.servers;
        let is_undecided = launches
            .into_iter()
            .filter(|launch| servers.get(&launch.name) != Some(&launch.fingerprint()));
        is_undecided.collect()
    }

    /// Approves these launches in exactly this form and stores the decision.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written; the approval still applies to this object.
    pub fn approve(&mut self, launches: &[LaunchSpec]) -> io::Result<()> {
        let servers = &mut self.contents.servers;
        if servers.len() + launches.len() > MAX_SERVERS {
            servers.clear();
        }
        let decided = launches.iter().map(|launch| (launch.name.clone(), launch.fingerprint()));
        servers.extend(decided);
        self.write()
    }

    /// Whether the settings of the gateway are approved in their current form.
    #[must_use]
    pub fn is_approved(&self, gateway: &GatewaySpec) -> bool {
        self.contents.gateway.as_ref() == Some(&gateway.fingerprint())
    }

    /// Approves these settings of the gateway and stores the decision.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written; the approval still applies to this object.
    pub fn approve_gateway(&mut self, gateway: &GatewaySpec) -> io::Result<()> {
        self.contents.gateway = Some(gateway.fingerprint());
        self.write()
    }

    /// Replaces the file atomically.
    fn write(&self) -> io::Result<()> {
        create_private_dir(self.path.parent().unwrap_or(Path::new(".")))?;
        let new = self.path.with_extension(format!("{}.new", std::process::id()));
        let mut file = create_private_file(&new)?;
        file.write_all(&serde_json::to_vec_pretty(&self.contents)?)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}

/// Resolves the directory of a file, but not the file itself if it is a link.
fn canonical_path(file: &Path) -> io::Result<PathBuf> {
    file.metadata()?;
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    Ok(directory.unwrap_or(Path::new(".")).canonicalize()?.join(name))
}

/// Reads the stored decisions, if they can be parsed.
fn read(path: &Path) -> io::Result<Option<DecisionFile>> {
    let text = match read_bytes(path, MAX_DECISION_FILE_BYTES) {
        Ok(text) => text,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => return Ok(None),
            io::ErrorKind::FileTooLarge | io::ErrorKind::InvalidInput => Vec::new(),
            _ => return Err(error),
        },
    };
    let page = serde_json::from_slice(&text);
    if page.is_err() {
        let audit = "decisions-unreadable";
        tracing::warn!(target: TARGET, audit, security = true, "cannot parse trust decisions; all ignored");
    }
    Ok(page.ok())
}

#[cfg(test)]
mod tests;
