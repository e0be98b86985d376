//! Tool results and their content blocks.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{ObjectView, ViewError};
use crate::raw_text::from_checked;
use crate::skim::{self, Cursor};
use crate::text::{decode_string, key_is};

/// Maximum number of content blocks in a view. A longer result is available as raw JSON.
pub const MAX_CONTENT_BLOCKS: usize = 10_000;

/// The result of `tools/call`, borrowed from its raw JSON.
#[derive(Clone, Debug)]
pub struct ToolResult<'a> {
    /// Whether the tool reports an error.
    pub is_error: bool,
    /// The content blocks.
    pub content: Vec<ContentBlock<'a>>,
    /// The structured result.
    pub structured_content: Option<&'a RawValue>,
}

/// A content block with its raw JSON.
#[derive(Clone, Debug)]
pub enum ContentBlock<'a> {
    /// Text.
    Text {
        /// The text.
        text: Cow<'a, str>,
        /// The entire block.
        raw: &'a RawValue,
    },
    /// An image.
    Image {
        /// The entire block.
        raw: &'a RawValue,
    },
    /// Audio.
    Audio {
        /// The entire block.
        raw: &'a RawValue,
    },
    /// An embedded resource.
    Resource {
        /// The entire block.
        raw: &'a RawValue,
    },
    /// A link to a resource.
    ResourceLink {
        /// The entire block.
        raw: &'a RawValue,
    },
    /// A block of another type, or a text block without text.
    Unknown {
        /// The `type` of the block.
        type_: Cow<'a, str>,
        /// The entire block.
        raw: &'a RawValue,
    },
}

impl<'a> ToolResult<'a> {
    /// Reads the result of `tools/call`.
    ///
    /// # Errors
    ///
    /// Returns an error if `raw` is not an object, if `content` exists and is not an array of
    /// objects with a `type` each, or if `content` has more than [`MAX_CONTENT_BLOCKS`] items.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
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
            structured_content: result.get("structuredContent").and_then(from_checked),
        })
    }
}

impl<'a> ContentBlock<'a> {
    /// Returns the raw JSON of the block.
    pub fn raw(&self) -> &'a RawValue {
        match self {
            Self::Text { raw, .. }
            | Self::Image { raw }
            | Self::Audio { raw }
            | Self::Resource { raw }
            | Self::ResourceLink { raw }
            | Self::Unknown { raw, .. } => raw,
        }
    }

    fn from_raw(index: usize, block: &'a str) -> Result<Self, ViewError> {
        let pointer = || format!("/content/{index}");
        if index >= MAX_CONTENT_BLOCKS {
            return Err(ViewError::new(pointer(), "at most 10000 blocks", Some(block)));
        }
        let members = ObjectView::from_raw_at(pointer(), Some(block), ["type", "text"])?;
        let type_ = members.required_text("type")?;
        let Some(raw) = from_checked(block) else {
            return Err(ViewError::new(pointer(), "JSON", Some(block)));
        };
        Ok(match (&*type_, members.text("text")) {
            ("text", Some(text)) => Self::Text { text, raw },
            ("image", _) => Self::Image { raw },
            ("audio", _) => Self::Audio { raw },
            ("resource", _) => Self::Resource { raw },
            ("resource_link", _) => Self::ResourceLink { raw },
            _ => Self::Unknown { type_, raw },
        })
    }
}

/// Returns the text of all text blocks of a result of `tools/call`, joined by line breaks; empty if
/// there is none. The text is borrowed if there is one such block, and its text has no escapes.
pub fn result_text(raw: &RawValue) -> Cow<'_, str> {
    let mut joined: Option<Cow<'_, str>> = None;
    let mut cursor = Cursor::new(raw.get());
    if !cursor.enter(b'{') {
        return Cow::default();
    }
    while let Some(key) = cursor.next_key() {
        if !key_is(key, "content") || cursor.peek() != Some(b'[') {
            cursor.next_value();
            continue;
        }
        cursor.enter(b'[');
        while cursor.next_element() {
            if let Some(text) = next_text(&mut cursor) {
                joined = Some(match joined {
                    None => text,
                    Some(before) => before + "\n" + text,
                });
            }
        }
    }
    joined.unwrap_or_default()
}

/// Consumes a content block, and returns its text if it is a text block.
fn next_text<'a>(cursor: &mut Cursor<'a>) -> Option<Cow<'a, str>> {
    if cursor.peek() != Some(b'{') {
        cursor.next_value();
        return None;
    }
    cursor.enter(b'{');
    let mut is_text = false;
    let mut text = None;
    while let Some(key) = cursor.next_key() {
        let value = cursor.next_value()?;
        if key_is(key, "type") {
            is_text = value == "\"text\"" || decode_string(value).as_deref() == Some("text");
        } else if key_is(key, "text") {
            text = Some(value);
        }
    }
    text.filter(|_| is_text).and_then(decode_string)
}
