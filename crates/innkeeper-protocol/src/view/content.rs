//! Tool results and their content blocks.

use serde_json::value::RawValue;

use super::object::boxed_raw;
use super::{ObjectView, ViewError};
use crate::skim;

/// Maximum number of content blocks in a view. A longer result is available as raw JSON.
pub const MAX_CONTENT_BLOCKS: usize = 10_000;

/// The result of `tools/call`.
#[derive(Clone, Debug)]
pub struct ToolResult {
    /// Whether the tool reports an error.
    pub is_error: bool,
    /// The content blocks.
    pub content: Vec<ContentBlock>,
    /// The structured result.
    pub structured_content: Option<Box<RawValue>>,
}

/// A content block with its raw JSON.
#[derive(Clone, Debug)]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// The entire block.
        raw: Box<RawValue>,
    },
    /// An image.
    Image {
        /// The entire block.
        raw: Box<RawValue>,
    },
    /// Audio.
    Audio {
        /// The entire block.
        raw: Box<RawValue>,
    },
    /// An embedded resource.
    Resource {
        /// The entire block.
        raw: Box<RawValue>,
    },
    /// A link to a resource.
    ResourceLink {
        /// The entire block.
        raw: Box<RawValue>,
    },
    /// A block of another type, or a text block without text.
    Unknown {
        /// The `type` of the block.
        type_: String,
        /// The entire block.
        raw: Box<RawValue>,
    },
}

impl ToolResult {
    /// Reads the result of `tools/call`.
    ///
    /// # Errors
    ///
    /// Returns an error if `raw` is not an object, if `content` exists and is not an array of
    /// objects with a `type` each, or if `content` has more than [`MAX_CONTENT_BLOCKS`] items.
    pub fn from_raw(raw: &RawValue) -> Result<Self, ViewError> {
        let result = ObjectView::from_raw(raw, ["isError", "content", "structuredContent"])?;
        let blocks = match result.get("content") {
            Some(_) => skim::elements(result.required_array("content")?),
            None => skim::elements(""),
        };
        let content = blocks
            .enumerate()
            .map(|(index, block)| ContentBlock::from_raw(index, block))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            is_error: result.bool("isError").unwrap_or_default(),
            content,
            structured_content: result.raw("structuredContent"),
        })
    }
}

impl ContentBlock {
    /// Returns the raw JSON of the block.
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

    fn from_raw(index: usize, block: &str) -> Result<Self, ViewError> {
        let pointer = || format!("/content/{index}");
        if index >= MAX_CONTENT_BLOCKS {
            return Err(ViewError::new(pointer(), "at most 10000 blocks", Some(block)));
        }
        let members = ObjectView::from_raw_at(pointer(), Some(block), ["type", "text"])?;
        let type_ = members.required_string("type")?;
        let Some(raw) = boxed_raw(block) else {
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
