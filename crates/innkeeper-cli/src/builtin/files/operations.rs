//! Operations behind the tools of the files server.

use std::fs::{self, FileType};

use serde_json::{Value, json};

use super::root::{FileError, RootDirectory};
use super::walk;
use crate::timestamp::format_rfc3339;

/// Maximum number of directory entries in a listing.
pub(super) const MAX_ENTRIES: usize = 1_000;
/// Maximum number of lines in a search result.
pub(super) const MAX_MATCHES: usize = 200;
/// Maximum number of characters shown of a matching line.
pub(super) const MAX_LINE_CHARS: usize = 500;

/// A result as text and as structured content.
pub(super) type OperationResult = Result<(String, Value), FileError>;

pub(super) fn list(root: &RootDirectory, path: &str) -> OperationResult {
    let directory = root.resolve_directory(path)?;
    let listed = fs::read_dir(&directory.canonical_path)
        .map_err(|source| FileError::Io { path: path.to_owned(), source })?;
    let mut entries = Vec::new();
    let mut truncated = false;
    for entry in listed.flatten() {
        if entries.len() == MAX_ENTRIES {
            truncated = true;
            break;
        }
        let Ok(metadata) = entry.metadata() else { continue };
        entries.push((entry.file_name().to_string_lossy().into_owned(), metadata));
    }
    entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let lines = entries.iter().map(|(name, metadata)| match metadata.is_dir() {
        true => format!("{name}/\n"),
        false => format!("{name} ({} bytes)\n", metadata.len()),
    });
    let mut text: String = lines.collect();
    if truncated {
        text.push_str("… and more\n");
    }
    let listing: Vec<_> = entries
        .iter()
        .map(|(name, metadata)| {
            let mut entry = json!({ "name": name, "type": file_type_name(metadata.file_type()) });
            if metadata.is_file() {
                entry["size"] = metadata.len().into();
            }
            entry
        })
        .collect();
    let path = root.relative_path(&directory.canonical_path);
    Ok((text, json!({ "path": path, "entries": listing, "truncated": truncated })))
}

pub(super) fn read(root: &RootDirectory, path: &str) -> OperationResult {
    let text = root.read_text(path)?;
    let path = root.relative_path(&root.resolve(path)?.canonical_path);
    let structured = json!({ "path": path, "text": text, "size": text.len() });
    Ok((text, structured))
}

pub(super) fn write(root: &RootDirectory, path: &str, content: &str) -> OperationResult {
    let (real, created) = root.write(path, content)?;
    let path = root.relative_path(&real);
    let size = content.len();
    let text = format!("{} `{path}` ({size} bytes)", if created { "created" } else { "replaced" });
    Ok((text, json!({ "path": path, "size": size, "created": created })))
}

pub(super) fn search(root: &RootDirectory, query: &str, path: &str) -> OperationResult {
    let walk = walk::walk_files(&root.resolve(path)?.canonical_path);
    let mut matches = Vec::new();
    let mut truncated = walk.truncated;
    let mut searched = 0;
    'files: for file in &walk.files {
        let path = root.relative_path(file);
        let Ok(text) = root.read_text(&path) else { continue };
        searched += 1;
        for (index, line) in text.lines().enumerate().filter(|(_, line)| line.contains(query)) {
            if matches.len() == MAX_MATCHES {
                truncated = true;
                break 'files;
            }
            let excerpt: String = line.chars().take(MAX_LINE_CHARS).collect();
            matches.push(json!({ "path": path, "line": index + 1, "text": excerpt }));
        }
    }
    let match_lines = matches.iter().map(|entry| {
        let text = entry["text"].as_str().unwrap_or_default();
        format!("{}:{}: {text}\n", entry["path"].as_str().unwrap_or_default(), entry["line"])
    });
    let mut text: String = match_lines.collect();
    if text.is_empty() {
        text = format!("no match in {searched} text files\n");
    }
    let structured =
        json!({ "matches": matches, "filesSearched": searched, "truncated": truncated });
    Ok((text, structured))
}

pub(super) fn info(root: &RootDirectory, path: &str) -> OperationResult {
    let resolved = root.resolve(path)?;
    let path = root.relative_path(&resolved.canonical_path);
    let kind = file_type_name(resolved.metadata.file_type());
    let mut info = json!({
        "path": path,
        "type": kind,
        "size": resolved.metadata.len(),
        "readOnly": resolved.metadata.permissions().readonly(),
    });
    if let Ok(time) = resolved.metadata.modified() {
        info["modified"] = format_rfc3339(time).into();
    }
    let text = format!("`{path}`: {kind}, {} bytes", resolved.metadata.len());
    Ok((text, info))
}

fn file_type_name(file_type: FileType) -> &'static str {
    if file_type.is_file() {
        "file"
    } else if file_type.is_dir() {
        "directory"
    } else if file_type.is_symlink() {
        "symlink"
    } else {
        "other"
    }
}
