//! Files and resources that are attached to the next message.

use std::path::Path;

use base64::Engine as _;
use innkeeper_agent::content::{Content, ContentBlock, MediaContent};

use crate::exit::CliError;
use crate::input_file;

/// Maximum number of bytes of an attached file.
pub(crate) const MAX_ATTACHED_BYTES: u64 = 8 << 20;

/// Returns whether a text is a URI and not a path.
pub(crate) fn is_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.len() > 1
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            && (rest.starts_with('/') || !Path::new(text).exists())
    })
}

/// Reads a file as an attachment: an image by its extension, else text.
pub(crate) fn read_file(path: &Path) -> Result<Content, CliError> {
    let failure =
        |error| CliError::failure(format!("cannot read `{}`", path.display())).with_source(error);
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let mime_type = match &*extension {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    };
    let Some(mime_type) = mime_type else {
        let text = input_file::read(path, MAX_ATTACHED_BYTES).map_err(failure)?;
        return Ok(format!("File `{}`:\n{text}", path.display()).into());
    };
    let bytes = input_file::read_bytes(path, MAX_ATTACHED_BYTES).map_err(failure)?;
    let data = base64::prelude::BASE64_STANDARD.encode(bytes);
    let image = MediaContent { mime_type: Some(mime_type.to_owned()), data: data.into() };
    Ok(ContentBlock::Image(image).into())
}

/// Returns a message with its attachments before its text, and the text that shows both.
pub(crate) fn to_message(attached: &[(String, Content)], text: &str) -> (String, Content) {
    let labels = attached.iter().map(|(label, _)| format!("[{label}] "));
    let shown = format!("{}{text}", labels.collect::<String>());
    let blocks = attached.iter().flat_map(|(_, content)| content.blocks().to_vec());
    let blocks: Vec<ContentBlock> = blocks.chain([text.into()]).collect();
    (shown, blocks.into())
}
