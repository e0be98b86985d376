//! What a person has decided about the servers of one configuration file, kept on disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::LaunchSpec;
use crate::audit::TARGET;
use crate::config::read_bytes;
use crate::ledger::{create_private, make_private};

/// The form of the page that is written and read here.
const VERSION: u32 = 1;

/// The most servers on one page: far above any real file. With one more, the page begins anew.
const MOST_SERVERS: usize = 1_000;

/// The longest page that is read, in bytes: that many servers with the longest names.
const MAX_PAGE_BYTES: u64 = 1 << 20;

/// Which servers of one configuration file may be started, each by the fingerprint of its launch.
///
/// Of several processes that decide on one file at the same time, the last one's word is kept.
#[derive(Clone, Debug)]
pub struct Decisions {
    place: PathBuf,
    page: Page,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Page {
    version: u32,
    /// The configuration file, for whoever looks into the directory.
    file: String,
    /// Server to fingerprint.
    servers: BTreeMap<String, String>,
}

impl Decisions {
    /// Those about the configuration `file`, kept in `directory`, which need not be there yet. It
    /// must not be one that the file's author can write to. A page that cannot be understood holds
    /// no decision.
    ///
    /// A file is named by its folder and its own name: one that is a link to another has decisions
    /// of its own.
    ///
    /// # Errors
    ///
    /// There is no such file, or the page cannot be read.
    pub fn open(directory: &Path, file: &Path) -> io::Result<Self> {
        let file = place_of(file)?;
        let hash = Sha256::digest(file.as_os_str().as_encoded_bytes());
        let name: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let place = directory.join(name).with_extension("json");
        let file = file.to_string_lossy().into_owned();
        let page = match read(&place)? {
            Some(page) if page.version == VERSION && page.file == file => page,
            Some(_) | None => Page { version: VERSION, file, servers: BTreeMap::new() },
        };
        Ok(Self { place, page })
    }

    /// Those that nobody has decided on in the form they have now.
    #[must_use]
    pub fn undecided(&self, launches: Vec<LaunchSpec>) -> Vec<LaunchSpec> {
        let decided = |launch: &LaunchSpec| {
            self.page.servers.get(&launch.name) == Some(&launch.fingerprint())
        };
        launches.into_iter().filter(|launch| !decided(launch)).collect()
    }

    /// Decides that these may be started, in this form and no other, and keeps that.
    ///
    /// # Errors
    ///
    /// It cannot be written; it is decided for this object all the same.
    pub fn decide(&mut self, launches: &[LaunchSpec]) -> io::Result<()> {
        let servers = &mut self.page.servers;
        if servers.len() + launches.len() > MOST_SERVERS {
            servers.clear();
        }
        let decided = launches.iter().map(|launch| (launch.name.clone(), launch.fingerprint()));
        servers.extend(decided);
        self.write()
    }

    /// Replaces the page in one step.
    fn write(&self) -> io::Result<()> {
        make_private(self.place.parent().unwrap_or(Path::new(".")))?;
        let new = self.place.with_extension(format!("{}.new", std::process::id()));
        let mut file = create_private(&new)?;
        file.write_all(&serde_json::to_vec_pretty(&self.page)?)?;
        file.sync_all()?;
        fs::rename(&new, &self.place)
    }
}

/// A file by the folder it is in, whatever the file itself leads to.
fn place_of(file: &Path) -> io::Result<PathBuf> {
    file.metadata()?;
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(folder.unwrap_or(Path::new(".")).canonicalize()?.join(name))
}

/// The page that is there, if it can be understood.
fn read(place: &Path) -> io::Result<Option<Page>> {
    let text = match read_bytes(place, MAX_PAGE_BYTES) {
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
        tracing::warn!(target: TARGET, audit, security = true, "decisions on servers cannot be understood, none counts");
    }
    Ok(page.ok())
}

#[cfg(test)]
mod tests;
