//! Watches the files of a configuration: what they hold, whichever way it gets there.
//!
//! Editors put a new file in the place of the old one and orchestrators turn a link to another
//! directory, so it is the directories that are watched, and every directory that a link on the way
//! stands in. What counts is the content: a file that is only touched has not changed.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::load::MAX_FILE_BYTES;
use super::origin::Content;
use super::problem::{Position, Problem};
use super::{Config, ConfigError, Environment, files};

/// How long nothing may happen in the directories before the files are looked at: an editor needs a
/// few writes for one save.
const QUIET: Duration = Duration::from_millis(300);

/// How long that is waited for where something happens all the time.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// How many links are followed on the way to one file, as many as systems do.
const MAX_LINKS: u32 = 40;

/// The watched files of one configuration.
#[derive(Debug)]
pub(crate) struct Watch {
    files: Vec<PathBuf>,
    watcher: RecommendedWatcher,
    directories: BTreeSet<PathBuf>,
    happened: Arc<Notify>,
    seen: Option<Content>,
}

impl Watch {
    /// Begins to watch the files that a configuration was read from, and the `.env` beside each.
    /// What was written after they were read is a change.
    ///
    /// # Errors
    ///
    /// It was not read from files, or the system does not let them be watched.
    pub(crate) fn of(config: &Config) -> Result<Self, ConfigError> {
        let files = places(config.origin.files(), &config.environment);
        let place = Position {
            source: config.sources.first().map_or("", String::as_str).into(),
            line: 0,
            column: 0,
        };
        let refuse = |why: String| ConfigError(vec![Problem::error(&place, "", why)]);
        if config.origin.files().is_empty() {
            return Err(refuse("is not a file, so it is not watched".to_owned()));
        }
        let read = config.origin.content;
        Self::begin(files, read)
            .map_err(|error| refuse(format!("cannot be watched: {}", words(&error))))
    }

    /// Begins to watch files that held this when they were last looked at.
    fn begin(files: Vec<PathBuf>, seen: Option<Content>) -> notify::Result<Self> {
        let happened = Arc::new(Notify::new());
        let wake = happened.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error may stand for events that were lost.
            if event.map_or(true, |event| may_change(event.kind)) {
                wake.notify_one();
            }
        })?;
        let directories = BTreeSet::new();
        let mut watch = Self { files, watcher, directories, happened, seen };
        watch.watch_directories()?;
        // They may have changed since, while nobody watched.
        watch.happened.notify_one();
        Ok(watch)
    }

    /// Resolves when the files hold something else than the last time, and hold still. Cancel-safe.
    pub(crate) async fn changed(&mut self) {
        loop {
            self.happened.notified().await;
            let ends = Instant::now() + LONGEST_WAIT;
            while timeout(QUIET, self.happened.notified()).await.is_ok() && Instant::now() < ends {}
            // First, so that nothing is missed that happens after the look.
            if let Err(error) = self.watch_directories() {
                let reason = words(&error);
                tracing::warn!(reason, "a directory of the configuration is not watched any more");
            }
            let now = content(&self.files);
            if now.is_some() && now != self.seen {
                self.seen = now;
                return;
            }
        }
    }

    /// Watches the directories that lead to the files now; all anew, since another directory may
    /// have the name of the old one.
    fn watch_directories(&mut self) -> notify::Result<()> {
        for directory in std::mem::take(&mut self.directories) {
            // One that is gone is not watched any more by itself.
            drop(self.watcher.unwatch(&directory));
        }
        self.directories = self.files.iter().flat_map(|file| directories(file)).collect();
        let watcher = &mut self.watcher;
        let mut watch = |directory: &PathBuf| watcher.watch(directory, RecursiveMode::NonRecursive);
        // One that cannot be watched does not keep the others from it.
        let watched: Vec<_> = self.directories.iter().map(&mut watch).collect();
        watched.into_iter().collect()
    }
}

/// Whether an event can be about another content. Reading the files makes events too.
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

/// What went wrong, without the path.
fn words(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::Generic(why) => why.clone(),
        notify::ErrorKind::Io(error) => error.kind().to_string(),
        notify::ErrorKind::PathNotFound => "no such directory".to_owned(),
        notify::ErrorKind::WatchNotFound => "not watched".to_owned(),
        notify::ErrorKind::InvalidConfig(_) => "not supported".to_owned(),
        notify::ErrorKind::MaxFilesWatch => "too many files are watched on this machine".to_owned(),
    }
}

/// Every directory in which a change can lead to another content of `file`.
fn directories(file: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![file.to_owned()];
    let mut links = 0;
    while let Some(path) = open.pop() {
        found.insert(existing(around(&path)));
        for link in path.ancestors() {
            let Ok(target) = std::fs::read_link(link) else { continue };
            links += 1;
            if links > MAX_LINKS {
                return found;
            }
            found.insert(existing(around(link)));
            let target = around(link).join(target);
            open.push(match path.strip_prefix(link) {
                Ok(rest) if rest != Path::new("") => target.join(rest),
                Ok(_) | Err(_) => target,
            });
        }
    }
    found
}

fn around(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

/// The directory, or while it is not there the one it will be in.
fn existing(directory: &Path) -> PathBuf {
    let there = directory.ancestors().find(|ancestor| ancestor.is_dir());
    there.filter(|there| *there != Path::new("")).unwrap_or(Path::new(".")).to_owned()
}

/// Where the files of a configuration are, as whoever read it means their names.
pub(super) fn places(files: &[PathBuf], environment: &Environment) -> Vec<PathBuf> {
    let from = environment.current_dir().unwrap_or(Path::new("."));
    files.iter().map(|file| from.join(file)).collect()
}

/// What stands in the files and in the `.env` beside each; `None` while one is no file, but a pipe
/// for example.
pub(super) fn content(files: &[PathBuf]) -> Option<Content> {
    let mut all = Sha256::new();
    for file in files {
        all.update(content_of(file)?);
        // Whatever else has this name is not read.
        all.update(content_of(&around(file).join(".env")).unwrap_or_default());
    }
    Some(all.finalize().into())
}

fn content_of(file: &Path) -> Option<Content> {
    let read = || -> io::Result<Option<Content>> {
        let Some(file) = files::open(file)? else { return Ok(None) };
        let mut hash = Sha256::new_with_prefix([1]);
        io::copy(&mut file.take(MAX_FILE_BYTES + 1), &mut hash)?;
        Ok(Some(hash.finalize().into()))
    };
    // That a file cannot be read, and why, is what it holds then.
    read().unwrap_or_else(|error| Some(Sha256::digest(error.kind().to_string()).into()))
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
