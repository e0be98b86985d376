//! Files as MCP resources.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::root::{FileError, RootDirectory};
use super::{uri, walk};
use crate::builtin::service::FailureMessage;

/// Maximum number of files listed as resources; clients use the tools to list more.
pub(super) const MAX_RESOURCES: usize = 500;

/// Returns the first files in the root directory, sorted by path.
pub(super) fn list(root: &RootDirectory) -> Result<Vec<Value>, FileError> {
    let directory = root.resolve_directory(".")?;
    let walk = walk::walk_files(&directory.canonical_path);
    Ok(walk
        .files
        .iter()
        .take(MAX_RESOURCES)
        .map(|file| {
            json!({
                "uri": uri::from_path(file),
                "name": root.relative_path(file),
                "mimeType": mime_type(file),
                "size": file.metadata().map_or(0, |metadata| metadata.len()),
            })
        })
        .collect())
}

/// Reads one file: UTF-8 as text, other content as base64. Returns `None` if the URI names no file
/// in the root directory.
pub(super) fn read(root: &RootDirectory, uri: &str) -> Option<Result<Value, FailureMessage>> {
    let path = uri::to_path(uri)?;
    let base = uri::to_path(&uri::from_path(root.canonical_path()))?;
    let relative = path.strip_prefix(base.trim_end_matches('/'))?.strip_prefix('/')?;
    let bytes = match root.read_bytes(relative) {
        Ok(bytes) => bytes,
        Err(
            FileError::Missing { .. } | FileError::OutsideRoot { .. } | FileError::NotAFile { .. },
        ) => {
            return None;
        }
        Err(error) => return Some(Err(error.describe())),
    };
    let mime_type = mime_type(Path::new(relative));
    Some(Ok(match String::from_utf8(bytes) {
        Ok(text) => json!([{ "uri": uri, "mimeType": mime_type, "text": text }]),
        Err(binary) => {
            let blob = STANDARD.encode(binary.as_bytes());
            json!([{ "uri": uri, "mimeType": mime_type, "blob": blob }])
        }
    }))
}

/// Returns the media type for the file extension.
fn mime_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "md" => "text/markdown",
        "json" => "application/json",
        "html" => "text/html",
        "csv" => "text/csv",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "pdf" => "application/pdf",
        "bin" | "gz" | "zip" => "application/octet-stream",
        _ => "text/plain",
    }
}
