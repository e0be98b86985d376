//! Watches the contents of configuration files.
//!
//! Editors replace a file by a new file, and orchestrators point a link to another directory. The
//! module therefore watches directories: the directory of each file and of each link on the path.
//! Only a change of the content counts, not a new modification time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::config::Config;
use crate::content_hash::{ContentHash, absolute_paths, content_hash, parent_dir};
use crate::diagnostic::ConfigError;
use crate::diagnostic::{Diagnostic, Position};

/// Time without events before the files are read: an editor needs several writes for one save.
const DEBOUNCE: Duration = Duration::from_millis(300);

/// Maximum wait for such a quiet period under continuous events.
const MAX_DEBOUNCE: Duration = Duration::from_secs(3);

/// Maximum number of links followed on the path to a file, as in operating systems.
const MAX_LINKS: u32 = 40;

/// A watcher for the files of one configuration.
#[derive(Debug)]
pub struct ConfigWatcher {
    files: Vec<PathBuf>,
    watcher: RecommendedWatcher,
    directories: BTreeSet<PathBuf>,
    change_notify: Arc<Notify>,
    last_content: Option<ContentHash>,
}

impl ConfigWatcher {
    /// Starts watching the files of a configuration and the `.env` beside each file. A write after
    /// the configuration was read counts as a change.
    ///
    /// # Errors
    ///
    /// Returns an error if the configuration has no files or the operating system cannot watch
    /// them.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let files = absolute_paths(config.origin.files(), &config.environment);
        let position = Position {
            source: config.sources.first().map_or("", String::as_str).into(),
            line: 0,
            column: 0,
        };
        let refuse = |message: String| ConfigError(vec![Diagnostic::error(&position, "", message)]);
        if config.origin.files().is_empty() {
            return Err(refuse("cannot watch: the configuration has no files".to_owned()));
        }
        let read = config.origin.content_hash;
        Self::watch_files(files, read)
            .map_err(|error| refuse(format!("cannot watch: {}", describe_notify_error(&error))))
    }

    /// Starts watching files whose last known content has the hash `last_seen`.
    fn watch_files(files: Vec<PathBuf>, last_seen: Option<ContentHash>) -> notify::Result<Self> {
        let change_notify = Arc::new(Notify::new());
        let wake = change_notify.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error may mean lost events.
            if event.map_or(true, |event| may_change(event.kind)) {
                wake.notify_one();
            }
        })?;
        let mut watch = Self {
            files,
            watcher,
            directories: BTreeSet::new(),
            change_notify,
            last_content: last_seen,
        };
        watch.watch_directories()?;
        // The files may have changed before the watch started.
        watch.change_notify.notify_one();
        Ok(watch)
    }

    /// Completes when the content of the files has changed and no further events arrive.
    /// Cancel-safe.
    pub async fn changed(&mut self) {
        loop {
            self.change_notify.notified().await;
            let deadline = Instant::now() + MAX_DEBOUNCE;
            while timeout(DEBOUNCE, self.change_notify.notified()).await.is_ok()
                && Instant::now() < deadline
            {}
            // The watch comes first, so that no change after the read is missed.
            if let Err(error) = self.watch_directories() {
                let reason = describe_notify_error(&error);
                tracing::warn!(reason, "cannot watch a configuration directory");
            }
            let now = content_hash(&self.files);
            if now.is_some() && now != self.last_content {
                self.last_content = now;
                return;
            }
        }
    }

    /// Watches the directories on the current paths to the files. All watches are renewed, because
    /// a new directory may have the name of the old one.
    fn watch_directories(&mut self) -> notify::Result<()> {
        for directory in std::mem::take(&mut self.directories) {
            // The operating system has already removed the watch of a deleted directory.
            let _ = self.watcher.unwatch(&directory);
        }
        self.directories = self.files.iter().flat_map(|file| directories_to_watch(file)).collect();
        let directories = self.directories.iter();
        // One failure does not prevent the other watches.
        let watched: Vec<_> = directories
            .map(|directory| self.watcher.watch(directory, RecursiveMode::NonRecursive))
            .collect();
        watched.into_iter().collect()
    }
}

/// Returns whether an event can mean a new content. Reading the files also causes events.
fn may_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

/// Describes an error without the path.
fn describe_notify_error(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::Generic(message) => message.clone(),
        notify::ErrorKind::Io(error) => error.kind().to_string(),
        notify::ErrorKind::PathNotFound => "no such directory".to_owned(),
        notify::ErrorKind::WatchNotFound => "no watch for this path".to_owned(),
        notify::ErrorKind::InvalidConfig(_) => "not supported".to_owned(),
        notify::ErrorKind::MaxFilesWatch => "too many watched files on this machine".to_owned(),
    }
}

/// Returns every directory in which a change can lead to a new content of `file`.
fn directories_to_watch(file: &Path) -> BTreeSet<PathBuf> {
    let mut directories = BTreeSet::new();
    let mut open = vec![file.to_owned()];
    let mut links = 0;
    while let Some(path) = open.pop() {
        directories.insert(nearest_existing(parent_dir(&path)));
        for link in path.ancestors() {
            let Ok(target) = std::fs::read_link(link) else { continue };
            links += 1;
            if links > MAX_LINKS {
                return directories;
            }
            directories.insert(nearest_existing(parent_dir(link)));
            let target = parent_dir(link).join(target);
            open.push(match path.strip_prefix(link) {
                Ok(rest) if rest != Path::new("") => target.join(rest),
                Ok(_) | Err(_) => target,
            });
        }
    }
    directories
}

/// Returns the directory, or its nearest existing ancestor.
fn nearest_existing(directory: &Path) -> PathBuf {
    let existing = directory.ancestors().find(|ancestor| ancestor.is_dir());
    existing.filter(|existing| *existing != Path::new("")).unwrap_or(Path::new(".")).to_owned()
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
