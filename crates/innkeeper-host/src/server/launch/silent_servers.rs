//! Remembers the servers that ignore `server/discover`, so that their next start does not wait for it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use innkeeper_process::ProcessSpec;
use sha2::{Digest, Sha256};

/// Time until a server is asked again. The program behind a command changes with its updates.
const LIFETIME: Duration = Duration::from_hours(24 * 7);

/// The launches whose server answered `initialize` and not `server/discover` before it.
#[derive(Debug, Default)]
pub(crate) struct SilentServers {
    /// One empty file per launch, whose time of change is that of the note. Without a directory,
    /// the notes exist only in memory.
    directory: Option<PathBuf>,
    known: Mutex<HashSet<String>>,
}

impl SilentServers {
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, known: Mutex::default() }
    }

    pub(super) fn contains(&self, launch: &ProcessSpec) -> bool {
        let hash = launch_hash(launch);
        if self.known().contains(&hash) {
            return true;
        }
        let Some(directory) = &self.directory else { return false };
        let changed = fs::metadata(directory.join(hash)).and_then(|note| note.modified());
        // A time in the future is no age.
        changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age < LIFETIME))
    }

    pub(super) fn add(&self, launch: &ProcessSpec) {
        let hash = launch_hash(launch);
        if let Some(directory) = &self.directory {
            let written = fs::create_dir_all(directory)
                .and_then(|()| File::create(directory.join(&hash)).map(drop));
            if let Err(error) = written {
                tracing::warn!(%error, "cannot note a server that ignores `server/discover`");
            }
        }
        self.known().insert(hash);
    }

    pub(super) fn remove(&self, launch: &ProcessSpec) {
        let hash = launch_hash(launch);
        self.known().remove(&hash);
        if let Some(directory) = &self.directory {
            // The file may not exist.
            fs::remove_file(directory.join(hash)).ok();
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a file name for the program with its arguments and its directory. The environment does
/// not count: it has secrets, and rarely chooses another program.
fn launch_hash(launch: &ProcessSpec) -> String {
    let mut hash = Sha256::new();
    let cwd = launch.cwd.as_deref().map(|cwd| cwd.as_os_str()).unwrap_or_default();
    let parts = [launch.program.as_os_str(), cwd].into_iter();
    for part in parts.chain(launch.args.iter().map(|argument| argument.as_os_str())) {
        let bytes = part.as_encoded_bytes();
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    }
    format!("{:x}", hash.finalize())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn launch(args: &[&str]) -> ProcessSpec {
        ProcessSpec {
            command: "server".to_owned(),
            program: "/bin/server".into(),
            args: args.iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: None,
            confinement: innkeeper_process::Confinement::default(),
        }
    }

    #[test]
    fn another_host_with_the_directory_knows_a_silent_server_for_a_week() {
        let directory = tempfile::tempdir().unwrap();
        let notes = || SilentServers::new(Some(directory.path().join("silent")));
        let (server, other) = (launch(&["a", "b"]), launch(&["ab"]));
        assert!(!notes().contains(&server));
        notes().add(&server);
        assert!(notes().contains(&server) && !notes().contains(&other));
        let file = directory.path().join("silent").join(launch_hash(&server));
        let old = SystemTime::now() - LIFETIME - Duration::from_secs(1);
        File::options().append(true).open(&file).unwrap().set_modified(old).unwrap();
        assert!(!notes().contains(&server));
        notes().add(&server);
        notes().remove(&server);
        assert!(!notes().contains(&server));
    }

    #[test]
    fn a_host_without_a_directory_knows_a_silent_server_until_it_ends() {
        let notes = SilentServers::default();
        notes.add(&launch(&[]));
        assert!(notes.contains(&launch(&[])));
        assert!(!SilentServers::default().contains(&launch(&[])));
    }
}
