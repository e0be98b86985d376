//! A small language model on this machine: put in place, served, and the other ways to a live one.

mod cpu;
mod fetch;
mod found;
mod http;
mod leash;
mod offer;
mod python;
mod serve;
mod tail;
#[cfg(test)]
mod tests;
mod weights;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use innkeeper_host::Environment;
use serde::{Deserialize, Serialize};

pub(crate) use cpu::{Lack, able};
pub(crate) use fetch::{FetchError, Fetched, Step, fetch};
pub(crate) use found::{Look, Way, Ways, found_models};
pub(crate) use leash::run_if_requested;
pub(crate) use offer::{DEFAULT, Licence, OFFERS, Offer};
pub(crate) use python::{Python, PythonError};
pub(crate) use serve::{ServeError, Serving};
#[cfg(test)]
pub(crate) use weights::WeightsError;

/// The file that says what a model's folder was made from.
const RECORD: &str = "model.json";
/// The weights in a model's folder.
const WEIGHTS: &str = "weights.gguf";
/// The server in a model's folder.
const PROGRAM: &str = "server/llama-server";
/// The most bytes of a record; it has a few hundred.
const RECORD_BYTES: u64 = 64 << 10;

/// A model that is in place on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    offer: &'static Offer,
    folder: PathBuf,
    record: Record,
}

/// What is known of a folder that was made whole.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    /// The checksums of the packages it was made from.
    made_of: Vec<String>,
    /// Bytes of the weights.
    weights: u64,
    /// Bytes of all files but this one.
    bytes: u64,
}

/// A model's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstalledError {
    /// A file of it is gone, cut or not readable.
    #[error("the model `{name}` is damaged: `{path}`")]
    Damaged { name: &'static str, path: String, source: io::Error },
}

impl Model {
    /// The default model, if it is in place below `dir` as this program would make it.
    ///
    /// # Errors
    ///
    /// It was made, and is not whole any more.
    pub(crate) fn installed(dir: &Path) -> Result<Option<Self>, InstalledError> {
        Self::of(&DEFAULT, dir)
    }

    /// The same for one that may be fetched. A folder made from other packages does not count.
    pub(crate) fn of(offer: &'static Offer, dir: &Path) -> Result<Option<Self>, InstalledError> {
        let folder = dir.join(offer.name);
        let damaged = |path: PathBuf, source: io::Error| InstalledError::Damaged {
            name: offer.name,
            path: path.display().to_string(),
            source,
        };
        let path = folder.join(RECORD);
        let size = match fs::metadata(&path) {
            Ok(about) => about.len(),
            Err(error) if absent(&error) => return Ok(None),
            Err(error) => return Err(damaged(path, error)),
        };
        if size > RECORD_BYTES {
            return Err(damaged(path, io::ErrorKind::FileTooLarge.into()));
        }
        let text = fs::read(&path).map_err(|error| damaged(path.clone(), error))?;
        let record: Record =
            serde_json::from_slice(&text).map_err(|error| damaged(path, error.into()))?;
        if record.made_of != offer.checksums() {
            return Ok(None);
        }
        let model = Self { offer, folder, record };
        for (path, bytes) in
            [(model.weights(), Some(model.record.weights)), (model.program(), None)]
        {
            let about = fs::metadata(&path).map_err(|error| damaged(path.clone(), error))?;
            if !about.is_file() || bytes.is_some_and(|bytes| about.len() != bytes) {
                return Err(damaged(path, io::ErrorKind::UnexpectedEof.into()));
            }
        }
        Ok(Some(model))
    }

    /// The name it is fetched and asked for by.
    pub(crate) fn name(&self) -> &'static str {
        self.offer.name
    }

    /// The file of its weights.
    pub(crate) fn weights(&self) -> PathBuf {
        self.folder.join(WEIGHTS)
    }

    /// The program that serves it.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join(PROGRAM)
    }

    /// Bytes it takes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.record.bytes
    }

    /// Under which licences it and its server are, each with the place of its text.
    pub(crate) fn licences(&self) -> impl Iterator<Item = (&'static Licence, PathBuf)> {
        self.offer.licences().map(|licence| (licence, self.folder.join(licence.file)))
    }
}

fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Where models are kept unless a folder is named, as the XDG base directories have it.
pub(crate) fn place(environment: &Environment) -> Option<PathBuf> {
    let data = match environment.get("XDG_DATA_HOME").filter(|path| path.starts_with('/')) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(environment.home()?).join(".local/share"),
    };
    Some(data.join("innkeeper/models"))
}
