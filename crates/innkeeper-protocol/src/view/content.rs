//! What a tool answered.

use serde_json::value::RawValue;

use super::object::boxed;
use super::{Object, ViewError};
use crate::skim;

/// The most blocks of content that a view is made of; a result may have more and keep them as raw
/// JSON.
pub const BLOCK_LIMIT: usize = 10_000;

/// The result of `tools/call`.
#[derive(Clone, Debug)]
pub struct ToolResult {
    /// Whether the tool itself says that it failed.
    pub is_error: bool,
    /// What it answered, block by block.
    pub content: Vec<Content>,
    /// What it answered, as data.
    pub structured_content: Option<Box<RawValue>>,
}

/// One block of content, with the block itself as it was sent.
#[derive(Clone, Debug)]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// The whole block.
        raw: Box<RawValue>,
    },
    /// An image.
    Image {
        /// The whole block.
        raw: Box<RawValue>,
    },
    /// A sound.
    Audio {
        /// The whole block.
        raw: Box<RawValue>,
    },
    /// A resource, contents included.
    Resource {
        /// The whole block.
        raw: Box<RawValue>,
    },
    /// The address of a resource.
    ResourceLink {
        /// The whole block.
        raw: Box<RawValue>,
    },
    /// Something else, or a text block without text.
    Unknown {
        /// The type it says it is.
        type_: String,
        /// The whole block.
        raw: Box<RawValue>,
    },
}

impl ToolResult {
    /// Reads the result of `tools/call`.
    ///
    /// # Errors
    ///
    /// If it is not an object, `content` is there and not an array of objects with a `type` each,
    /// or has more than [`BLOCK_LIMIT`] of them.
    pub fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let result = Object::read(raw, ["isError", "content", "structuredContent"])?;
        let blocks = match result.get("content") {
            Some(_) => skim::elements(result.required_array("content")?),
            None => skim::elements(""),
        };
        let content = blocks
            .enumerate()
            .map(|(index, block)| Content::read(index, block))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            is_error: result.bool("isError").unwrap_or_default(),
            content,
            structured_content: result.raw("structuredContent"),
        })
    }
}

impl Content {
    /// The block as it was sent.
    pub fn raw(&self) -> &RawValue {
        match self {
            Self::Text { raw, .. }
            | Self::Image { raw }
            | Self::Audio { raw }
            | Self::Resource { raw }
            | Self::ResourceLink { raw }
            | Self::Unknown { raw, .. } => raw,
        }
    }

    fn read(index: usize, block: &str) -> Result<Self, ViewError> {
        let pointer = || format!("/content/{index}");
        if index >= BLOCK_LIMIT {
            return Err(ViewError::new(pointer(), "no more than 10000 blocks", Some(block)));
        }
        let members = Object::at(pointer(), Some(block), ["type", "text"])?;
        let type_ = members.required_string("type")?;
        let Some(raw) = boxed(block) else {
            return Err(ViewError::new(pointer(), "JSON", Some(block)));
        };
        let text = members.string("text");
        Ok(match (type_.as_str(), text) {
            ("text", Some(text)) => Self::Text { text, raw },
            ("image", _) => Self::Image { raw },
            ("audio", _) => Self::Audio { raw },
            ("resource", _) => Self::Resource { raw },
            ("resource_link", _) => Self::ResourceLink { raw },
            _ => Self::Unknown { type_, raw },
        })
    }
}
