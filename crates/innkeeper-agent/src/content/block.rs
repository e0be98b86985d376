//! One block of a content.

use std::borrow::Cow;
use std::sync::Arc;

use innkeeper_protocol::skim;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{MediaKind, RawJson};

/// One block of a content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text.
    Text(Arc<str>),
    /// An image.
    Image(MediaContent),
    /// A sound recording.
    Audio(MediaContent),
    /// The contents of a resource.
    Resource(EmbeddedResource),
    /// The address of a resource.
    ResourceLink(ResourceLink),
    /// The structured content of a tool result.
    Structured(StructuredContent),
    /// A block of another type, byte for byte.
    Other(RawJson),
}

/// An image or a sound recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaContent {
    /// The MIME type; `None` if the sender named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The data in Base64.
    pub data: Arc<str>,
}

/// The contents of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddedResource {
    /// The URI; empty if the sender named none.
    pub uri: String,
    /// The MIME type; `None` if the sender named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The contents.
    pub contents: ResourceContents,
}

/// The text or the data of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceContents {
    /// Text.
    Text(Arc<str>),
    /// Data in Base64.
    Blob(Arc<str>),
}

/// The address of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceLink {
    /// The URI; `None` if the sender named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The name; `None` if the sender named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The MIME type; `None` if the sender named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// The structured content of a tool result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StructuredContent {
    /// The value.
    pub json: RawJson,
    /// Whether a text block of the result repeats the value. A model then gets the text only.
    pub is_repeated: bool,
}

/// Media of a block, in Base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Media<'c> {
    pub(crate) kind: MediaKind,
    pub(crate) mime_type: Option<&'c str>,
    pub(crate) data: &'c str,
}

impl Media<'_> {
    pub(crate) fn to_data_url(self) -> String {
        format!("data:{};base64,{}", self.mime_type.unwrap_or_default(), self.data)
    }
}

impl ContentBlock {
    /// Parses a content block of MCP; `None` if the value is none. A block of an unknown type stays
    /// byte for byte.
    pub(crate) fn from_raw(raw: &RawValue) -> Option<Self> {
        let members = BlockMembers::from_raw(raw.get())?;
        Some(match members.text("type")?.as_str() {
            "text" => Self::Text(members.text("text")?.into()),
            "image" => Self::Image(MediaContent::from_members(&members)),
            "audio" => Self::Audio(MediaContent::from_members(&members)),
            "resource" => Self::Resource(EmbeddedResource::from_raw(members.get("resource")?)),
            "resource_link" => Self::ResourceLink(ResourceLink {
                uri: members.text("uri"),
                name: members.text("name"),
                mime_type: members.text("mimeType"),
            }),
            _ => Self::Other(raw.into()),
        })
    }

    /// Returns the media of the block; `None` for content that is or becomes text.
    pub(crate) fn media(&self) -> Option<Media<'_>> {
        match self {
            Self::Image(media) => Some(media.as_media(MediaKind::Image)),
            Self::Audio(media) => Some(media.as_media(MediaKind::Audio)),
            Self::Resource(EmbeddedResource {
                mime_type: Some(mime_type),
                contents: ResourceContents::Blob(data),
                ..
            }) => {
                let kind = match mime_type.split('/').next() {
                    _ if mime_type == "application/pdf" => MediaKind::Document,
                    Some("image") => MediaKind::Image,
                    Some("audio") => MediaKind::Audio,
                    Some(_) | None => return None,
                };
                Some(Media { kind, mime_type: Some(mime_type), data })
            }
            Self::Text(_)
            | Self::Resource(_)
            | Self::ResourceLink(_)
            | Self::Structured(_)
            | Self::Other(_) => None,
        }
    }

    /// Returns the block as text: binary content as one line with its size; `None` for structured
    /// content that another block repeats.
    pub fn to_text(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Image(media) => media.to_line("image").into(),
            Self::Audio(media) => media.to_line("audio").into(),
            Self::Resource(resource) => resource.to_text(),
            Self::ResourceLink(link) => link.to_line().into(),
            Self::Structured(StructuredContent { is_repeated: true, .. }) => return None,
            Self::Structured(structured) => Cow::Borrowed(structured.json.get()),
            Self::Other(raw) => Cow::Borrowed(raw.get()),
        })
    }

    /// Returns the text of the block with the reason why the model does not get its media.
    pub(crate) fn to_text_with_reason(&self, reason: &str) -> String {
        let text = self.to_text().unwrap_or_default();
        format!("{}, not sent: {reason}]", text.strip_suffix(']').unwrap_or(&text))
    }

    /// Returns the size of the data in bytes.
    pub(crate) fn byte_size(&self) -> usize {
        let len = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Self::Text(text) => text.len(),
            Self::Image(media) | Self::Audio(media) => media.data.len() + len(&media.mime_type),
            Self::Resource(resource) => {
                let (ResourceContents::Text(data) | ResourceContents::Blob(data)) =
                    &resource.contents;
                data.len() + resource.uri.len() + len(&resource.mime_type)
            }
            Self::ResourceLink(link) => len(&link.uri) + len(&link.name) + len(&link.mime_type),
            Self::Structured(structured) => structured.json.get().len(),
            Self::Other(raw) => raw.get().len(),
        }
    }
}

impl MediaContent {
    fn from_members(members: &BlockMembers<'_>) -> Self {
        Self {
            mime_type: members.text("mimeType"),
            data: members.text("data").unwrap_or_default().into(),
        }
    }

    fn as_media(&self, kind: MediaKind) -> Media<'_> {
        Media { kind, mime_type: self.mime_type.as_deref(), data: &self.data }
    }

    fn to_line(&self, kind: &str) -> String {
        let mime_type = self.mime_type.as_deref().unwrap_or("of an unknown type");
        format!("[{kind}, {mime_type}, {} bytes]", decoded_len(&self.data))
    }
}

impl EmbeddedResource {
    fn from_raw(resource: &str) -> Self {
        let members = BlockMembers::from_raw(resource).unwrap_or(BlockMembers("{}"));
        let contents = match members.text("text") {
            Some(text) => ResourceContents::Text(text.into()),
            None => ResourceContents::Blob(members.text("blob").unwrap_or_default().into()),
        };
        Self {
            uri: members.text("uri").unwrap_or_default(),
            mime_type: members.text("mimeType"),
            contents,
        }
    }

    fn to_text(&self) -> Cow<'_, str> {
        match &self.contents {
            ResourceContents::Text(text) => Cow::Borrowed(text),
            ResourceContents::Blob(data) => {
                let mime_type = self.mime_type.as_deref().unwrap_or("data");
                format!("[resource {}, {mime_type}, {} bytes]", self.uri, decoded_len(data)).into()
            }
        }
    }
}

impl ResourceLink {
    fn to_line(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        format!("[resource at {}{name}]", self.uri.as_deref().unwrap_or("an unknown address"))
    }
}

/// The members of a block. The other members stay undecoded, so that none of them makes the block
/// unreadable, and so that their number takes no memory.
#[derive(Clone, Copy)]
struct BlockMembers<'r>(&'r str);

impl<'r> BlockMembers<'r> {
    /// Returns the members of an object; `None` for any other value.
    fn from_raw(raw: &'r str) -> Option<Self> {
        raw.starts_with('{').then_some(Self(raw))
    }

    fn get(self, name: &str) -> Option<&'r str> {
        skim::member(self.0, name)
    }

    fn text(self, name: &str) -> Option<String> {
        self.get(name).and_then(skim::decode_string).map(Cow::into_owned)
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// Returns the number of bytes that a Base64 string decodes to.
fn decoded_len(base64: &str) -> usize {
    let bare = base64.trim_end_matches('=').len();
    bare * 3 / 4
}
