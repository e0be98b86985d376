//! What the tools of the files server do.

use std::fs::{self, FileType};

use serde_json::{Value, json};

use super::root::{FileError, Root};
use super::walk;
use crate::timestamp::rfc3339;

/// The most entries of a folder that are listed.
pub(super) const MAX_ENTRIES: usize = 1_000;
/// The most lines that a search gives back.
pub(super) const MAX_MATCHES: usize = 200;
/// The most characters of a matching line that are shown.
pub(super) const MAX_LINE_CHARS: usize = 500;

/// A result for a program, and in words.
pub(super) type Outcome = Result<(String, Value), FileError>;

pub(super) fn list(root: &Root, path: &str) -> Outcome {
    let folder = root.find_folder(path)?;
    let broken = |source| FileError::Broken { path: path.to_owned(), source };
    let mut entries = Vec::new();
    let mut truncated = false;
    for entry in fs::read_dir(&folder.real).map_err(broken)?.flatten() {
        if entries.len() == MAX_ENTRIES {
            truncated = true;
            break;
        }
        let Ok(metadata) = entry.metadata() else { continue };
        entries.push((entry.file_name().to_string_lossy().into_owned(), metadata));
    }
    entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let words = entries.iter().map(|(name, metadata)| match metadata.is_dir() {
        true => format!("{name}/\n"),
        false => format!("{name} ({} bytes)\n", metadata.len()),
    });
    let mut text: String = words.collect();
    if truncated {
        text.push_str("… and more\n");
    }
    let listed: Vec<_> = entries
        .iter()
        .map(|(name, metadata)| {
            let mut entry = json!({ "name": name, "type": kind(metadata.file_type()) });
            if metadata.is_file() {
                entry["size"] = metadata.len().into();
            }
            entry
        })
        .collect();
    let path = root.relative(&folder.real);
    Ok((text, json!({ "path": path, "entries": listed, "truncated": truncated })))
}

pub(super) fn read(root: &Root, path: &str) -> Outcome {
    let text = root.text(path)?;
    let path = root.relative(&root.find(path)?.real);
    let structured = json!({ "path": path, "text": text, "size": text.len() });
    Ok((text, structured))
}

pub(super) fn write(root: &Root, path: &str, content: &str) -> Outcome {
    let (real, created) = root.write(path, content)?;
    let (path, size) = (root.relative(&real), content.len());
    let text = format!("{} `{path}` ({size} bytes)", if created { "created" } else { "replaced" });
    Ok((text, json!({ "path": path, "size": size, "created": created })))
}

pub(super) fn search(root: &Root, query: &str, path: &str) -> Outcome {
    let walk = walk::files(&root.find(path)?.real);
    let mut matches = Vec::new();
    let mut truncated = walk.cut;
    let mut searched = 0;
    'files: for file in &walk.files {
        let path = root.relative(file);
        let Ok(text) = root.text(&path) else { continue };
        searched += 1;
        for (index, line) in text.lines().enumerate().filter(|(_, line)| line.contains(query)) {
            if matches.len() == MAX_MATCHES {
                truncated = true;
                break 'files;
            }
            let shown: String = line.chars().take(MAX_LINE_CHARS).collect();
            matches.push(json!({ "path": path, "line": index + 1, "text": shown }));
        }
    }
    let words = matches.iter().map(|found| {
        let text = found["text"].as_str().unwrap_or_default();
        format!("{}:{}: {text}\n", found["path"].as_str().unwrap_or_default(), found["line"])
    });
    let mut text: String = words.collect();
    if text.is_empty() {
        text = format!("no line of {searched} text files has it\n");
    }
    let structured =
        json!({ "matches": matches, "filesSearched": searched, "truncated": truncated });
    Ok((text, structured))
}

pub(super) fn info(root: &Root, path: &str) -> Outcome {
    let found = root.find(path)?;
    let (path, kind) = (root.relative(&found.real), kind(found.metadata.file_type()));
    let mut info = json!({
        "path": path,
        "type": kind,
        "size": found.metadata.len(),
        "readOnly": found.metadata.permissions().readonly(),
    });
    if let Ok(time) = found.metadata.modified() {
        info["modified"] = rfc3339(time).into();
    }
    let text = format!("`{path}`: {kind}, {} bytes", found.metadata.len());
    Ok((text, info))
}

fn kind(file_type: FileType) -> &'static str {
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
