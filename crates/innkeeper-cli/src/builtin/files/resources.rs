//! The files as resources.

use std::path::Path;

use serde_json::{Value, json};

use super::root::{FileError, Root};
use super::{uri, walk};
use crate::builtin::service::Complaint;

/// The most files that are listed as resources; a client that wants more uses the tools.
pub(super) const MAX_RESOURCES: usize = 500;

/// The first files below the root, in order.
pub(super) fn list(root: &Root) -> Result<Vec<Value>, FileError> {
    let folder = root.find_folder(".")?;
    let walk = walk::files(&folder.real);
    let described = |file: &std::path::PathBuf| {
        json!({
            "uri": uri::of(file),
            "name": root.relative(file),
            "mimeType": mime_type(file),
            "size": file.metadata().map_or(0, |metadata| metadata.len()),
        })
    };
    Ok(walk.files.iter().take(MAX_RESOURCES).map(described).collect())
}

/// One file: as text where it is text, else as base64. `None` where the URI names no file here.
pub(super) fn read(root: &Root, uri: &str) -> Option<Result<Value, Complaint>> {
    let path = uri::decoded(uri)?;
    let base = uri::decoded(&uri::of(root.real()))?;
    let relative = path.strip_prefix(base.trim_end_matches('/'))?.strip_prefix('/')?;
    let bytes = match root.bytes(relative) {
        Ok(bytes) => bytes,
        Err(FileError::Missing { .. } | FileError::Outside { .. } | FileError::NotAFile { .. }) => {
            return None;
        }
        Err(error) => return Some(Err(error.in_words())),
    };
    let mime_type = mime_type(Path::new(relative));
    Some(Ok(match String::from_utf8(bytes) {
        Ok(text) => json!([{ "uri": uri, "mimeType": mime_type, "text": text }]),
        Err(binary) => {
            let blob = uri::base64(binary.as_bytes());
            json!([{ "uri": uri, "mimeType": mime_type, "blob": blob }])
        }
    }))
}

/// The media type that a file's name promises.
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
