//! Local language models: installation, serving, and discovery of other models.

mod bundles;
mod cpu;
mod discovery;
mod fetch;
mod local_http;
mod output_tail;
mod parent_death;
mod python;
mod server;
#[cfg(test)]
mod tests;
mod weights;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use innkeeper_host::Environment;
use serde::{Deserialize, Serialize};

pub(crate) use bundles::{BUNDLES, DEFAULT_BUNDLE, Licence, ModelBundle};
pub(crate) use cpu::{UnsupportedPlatform, check_supported};
pub(crate) use discovery::{
    DiscoveryOptions, InferenceServer, ModelSource, ModelSources, discover_models,
};
pub(crate) use fetch::{FetchError, FetchOutcome, FetchStage, fetch};
pub(crate) use parent_death::run_if_requested;
pub(crate) use python::{Python, PythonError};
pub(crate) use server::{ModelServer, ServeError};
#[cfg(test)]
pub(crate) use weights::WeightsError;

/// File with the install record in a model's directory.
const RECORD_FILE: &str = "model.json";
const WEIGHTS_FILE: &str = "weights.gguf";
/// Path of the server in a model's directory.
const SERVER_FILE: &str = "server/llama-server";
/// Maximum number of bytes in a record; a record has a few hundred.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// A model that is installed on this machine.
#[derive(Clone, Debug)]
pub(crate) struct InstalledModel {
    bundle: &'static ModelBundle,
    folder: PathBuf,
    record: InstallRecord,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct InstallRecord {
    #[serde(rename = "madeOf")]
    package_checksums: Vec<String>,
    /// Size of the weights in bytes.
    #[serde(rename = "weights")]
    weights_bytes: u64,
    /// Size of all files except the record, in bytes.
    #[serde(rename = "bytes")]
    total_bytes: u64,
}

/// Why an installed model is unusable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstalledModelError {
    /// A file of the model is missing, truncated or unreadable.
    #[error("the model `{name}` is damaged: cannot use `{path}`")]
    Damaged { name: &'static str, path: String, source: io::Error },
}

impl InstalledModel {
    /// Opens the default model if this version of the program would install the same packages.
    ///
    /// # Errors
    ///
    /// The model is installed, but damaged.
    pub(crate) fn open_default(dir: &Path) -> Result<Option<Self>, InstalledModelError> {
        Self::open(&DEFAULT_BUNDLE, dir)
    }

    /// Opens the model of a bundle. Returns `None` for a model installed from other packages.
    ///
    /// # Errors
    ///
    /// The model is installed, but damaged.
    pub(crate) fn open(
        bundle: &'static ModelBundle,
        dir: &Path,
    ) -> Result<Option<Self>, InstalledModelError> {
        let bundle_dir = dir.join(bundle.name);
        let damaged = |path: PathBuf, source: io::Error| InstalledModelError::Damaged {
            name: bundle.name,
            path: path.display().to_string(),
            source,
        };
        let path = bundle_dir.join(RECORD_FILE);
        let size = match fs::metadata(&path) {
            Ok(about) => about.len(),
            Err(error) if is_not_found(&error) => return Ok(None),
            Err(error) => return Err(damaged(path, error)),
        };
        if size > MAX_RECORD_BYTES {
            return Err(damaged(path, io::ErrorKind::FileTooLarge.into()));
        }
        let text = fs::read(&path).map_err(|error| damaged(path.clone(), error))?;
        let record: InstallRecord =
            serde_json::from_slice(&text).map_err(|error| damaged(path, error.into()))?;
        if record.package_checksums != bundle.checksums() {
            return Ok(None);
        }
        let model = Self { bundle, folder: bundle_dir, record };
        for (path, bytes) in
            [(model.weights_path(), Some(model.record.weights_bytes)), (model.server_path(), None)]
        {
            let about = fs::metadata(&path).map_err(|error| damaged(path.clone(), error))?;
            if !about.is_file() || bytes.is_some_and(|bytes| about.len() != bytes) {
                return Err(damaged(path, io::ErrorKind::UnexpectedEof.into()));
            }
        }
        Ok(Some(model))
    }

    pub(crate) fn name(&self) -> &'static str {
        self.bundle.name
    }

    pub(crate) fn weights_path(&self) -> PathBuf {
        self.folder.join(WEIGHTS_FILE)
    }

    pub(crate) fn server_path(&self) -> PathBuf {
        self.folder.join(SERVER_FILE)
    }

    /// Returns the size on disk in bytes.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.record.total_bytes
    }

    /// Returns the licences of the model and its server, each with the path of its text.
    pub(crate) fn licences(&self) -> impl Iterator<Item = (&'static Licence, PathBuf)> {
        self.bundle.licences().map(|licence| (licence, self.folder.join(licence.installed_path)))
    }
}

fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the default model directory, after the XDG base directory specification.
pub(crate) fn default_models_dir(environment: &Environment) -> Option<PathBuf> {
    let data = match environment.get("XDG_DATA_HOME").filter(|path| path.starts_with('/')) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(environment.home()?).join(".local/share"),
    };
    Some(data.join("innkeeper/models"))
}
