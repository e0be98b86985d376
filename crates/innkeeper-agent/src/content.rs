//! The content of user messages and tool results: typed blocks, as MCP defines them.

mod block;
mod raw_json;
mod support;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use block::Media;
pub use block::{
    ContentBlock, EmbeddedResource, MediaContent, ResourceContents, ResourceLink, StructuredContent,
};
pub use raw_json::RawJson;
pub(crate) use raw_json::decode_string;
pub use support::{ContentSupport, MediaKind};

/// The content of a user message or of a tool result. Clones share the blocks.
///
/// # Examples
///
/// ```
/// use innkeeper_agent::content::{Content, ContentBlock, MediaContent};
///
/// let image = MediaContent { mime_type: Some("image/png".to_owned()), data: "aGVsbG8=".into() };
/// let content = Content::from(vec!["What is this?".into(), ContentBlock::Image(image)]);
/// assert_eq!(content.to_text(), "What is this?\n[image, image/png, 5 bytes]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Content(Arc<[ContentBlock]>);

/// A segment of a content: the text of adjacent blocks, or one medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment<'c> {
    Text(Cow<'c, str>),
    Media(Media<'c>),
}

impl Content {
    /// Returns the blocks in their order.
    pub fn blocks(&self) -> &[ContentBlock] {
        &self.0
    }

    /// Returns the content as text: one line for each image or other binary content, blocks joined
    /// by newlines. Structured content that a text block repeats is omitted.
    pub fn to_text(&self) -> Cow<'_, str> {
        join_lines(self.0.iter().filter_map(ContentBlock::to_text))
    }

    /// Returns the text of several blocks with nothing between them; `None` for one block. A text
    /// that a block cuts off may continue in the next one.
    pub(crate) fn joined_text(&self) -> Option<String> {
        (self.0.len() > 1).then(|| self.0.iter().filter_map(ContentBlock::to_text).collect())
    }

    /// Returns the content with a further block of text.
    pub(crate) fn with_text(&self, text: &str) -> Self {
        self.0.iter().cloned().chain([text.into()]).collect::<Vec<_>>().into()
    }

    /// Returns the size of the blocks in bytes. A single block counts without its struct, so that
    /// the size of a text is its length.
    pub fn byte_size(&self) -> usize {
        let data: usize = self.0.iter().map(ContentBlock::byte_size).sum();
        data + self.0.len().saturating_sub(1) * size_of::<ContentBlock>()
    }

    /// Whether the content has images, audio or documents.
    pub(crate) fn has_media(&self) -> bool {
        self.0.iter().any(|block| block.media().is_some())
    }

    /// Returns the text of the blocks without media, joined by newlines.
    pub(crate) fn text_without_media(&self) -> Cow<'_, str> {
        let blocks = self.0.iter().filter(|block| block.media().is_none());
        join_lines(blocks.filter_map(ContentBlock::to_text))
    }

    /// Returns the media in their order.
    pub(crate) fn media(&self) -> impl Iterator<Item = Media<'_>> {
        self.0.iter().filter_map(ContentBlock::media)
    }

    /// Returns the text and the media in their order. Adjacent texts are one segment.
    pub(crate) fn segments(&self) -> Vec<Segment<'_>> {
        let mut segments = Vec::new();
        for block in self.0.iter() {
            if let Some(media) = block.media() {
                segments.push(Segment::Media(media));
                continue;
            }
            let Some(text) = block.to_text() else { continue };
            if let Some(Segment::Text(last)) = segments.last_mut() {
                let last = last.to_mut();
                last.push('\n');
                last.push_str(&text);
            } else {
                segments.push(Segment::Text(text));
            }
        }
        segments
    }
}

fn join_lines<'c>(mut texts: impl Iterator<Item = Cow<'c, str>>) -> Cow<'c, str> {
    let Some(mut joined) = texts.next() else { return Cow::Borrowed("") };
    for text in texts {
        let joined = joined.to_mut();
        joined.push('\n');
        joined.push_str(&text);
    }
    joined
}

impl Default for Content {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl From<Vec<ContentBlock>> for Content {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Self(blocks.into())
    }
}

impl From<ContentBlock> for Content {
    fn from(block: ContentBlock) -> Self {
        Self(Arc::new([block]))
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        ContentBlock::from(text).into()
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        ContentBlock::from(text).into()
    }
}

impl From<&String> for Content {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Arc<str>> for Content {
    fn from(text: Arc<str>) -> Self {
        ContentBlock::Text(text).into()
    }
}

#[cfg(test)]
mod tests;
