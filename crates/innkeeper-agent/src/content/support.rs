//! The kinds of media that a model takes.

use serde::{Deserialize, Serialize};

/// A kind of media in a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// An image.
    Image,
    /// A sound recording.
    Audio,
    /// A document: a PDF file.
    Document,
}

impl MediaKind {
    /// Returns the name in texts for a model.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Document => "document",
        }
    }
}

/// The kinds of media that a model takes. A model gets a line of text for any other content. The
/// default is the minimum that every model supports: text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentSupport {
    /// Whether the model takes images.
    pub images: bool,
    /// Whether the model takes audio.
    pub audio: bool,
    /// Whether the model takes PDF documents.
    pub documents: bool,
    /// Whether a tool result may contain the images and documents that the model takes. Otherwise
    /// they follow in a user message, as audio always does.
    pub media_in_tool_results: bool,
}

impl ContentSupport {
    /// Whether the model takes media of this kind.
    pub fn accepts(&self, kind: MediaKind) -> bool {
        match kind {
            MediaKind::Image => self.images,
            MediaKind::Audio => self.audio,
            MediaKind::Document => self.documents,
        }
    }

    /// Whether a tool result may contain media of this kind.
    pub fn accepts_in_tool_result(&self, kind: MediaKind) -> bool {
        self.media_in_tool_results
            && match kind {
                MediaKind::Image | MediaKind::Document => self.accepts(kind),
                MediaKind::Audio => false,
            }
    }
}
