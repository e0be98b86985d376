//! One piece of a result, in the form in which people read it.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

/// Decodes base64 with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A piece of a result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ContentPiece {
    /// Text.
    Text(String),
    /// The text of a resource.
    ResourceText { uri: String, text: String },
    /// An image, a sound, or the data of a resource.
    Blob(Blob),
    /// The address of a resource, with its name, type and description.
    Link { uri: String, label: String },
    /// A block of another type as JSON.
    Other(String),
}

/// Binary data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(super) mime_type: Option<String>,
    /// The address of the resource.
    pub(super) uri: Option<String>,
    /// `None` if the base64 text is invalid.
    pub(super) data: Option<Vec<u8>>,
}

impl Blob {
    fn new(contents: &Value, base64: &str) -> Self {
        let text = |key: &str| contents[key].as_str().map(str::to_owned);
        let base64: String = base64.split_ascii_whitespace().collect();
        Self { mime_type: text("mimeType"), uri: text("uri"), data: BASE64.decode(base64).ok() }
    }

    /// Returns the address, the type and the size.
    pub(super) fn describe(&self) -> String {
        let size = self.data.as_ref().map(|data| match data.len() {
            1 => "1 byte".to_owned(),
            bytes => format!("{bytes} bytes"),
        });
        let mime_type = self.mime_type.as_deref().unwrap_or("data");
        let parts = [self.uri.as_deref(), Some(mime_type), size.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl ContentPiece {
    /// Returns the text of a text block.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::ResourceText { .. } | Self::Blob(_) | Self::Link { .. } | Self::Other(_) => None,
        }
    }

    /// Reads a content block of a tool result or of a prompt message.
    pub(crate) fn from_block(block: &Value) -> Self {
        let text = |key: &str| block[key].as_str();
        match (text("type"), text("text"), text("data")) {
            (Some("text"), Some(text), _) => Self::Text(text.to_owned()),
            (Some("image" | "audio"), _, Some(data)) => Self::Blob(Blob::new(block, data)),
            (Some("resource"), ..) => Self::from_resource(&block["resource"]),
            (Some("resource_link"), ..) if text("uri").is_some() => {
                let keys = ["title", "name", "mimeType", "description"];
                let mut words: Vec<&str> = keys.iter().filter_map(|key| text(key)).collect();
                words.dedup();
                Self::Link {
                    uri: text("uri").unwrap_or_default().to_owned(),
                    label: words.join(", "),
                }
            }
            _ => Self::Other(block.to_string()),
        }
    }

    /// Reads the contents of a resource.
    pub(crate) fn from_resource(contents: &Value) -> Self {
        let text = |key: &str| contents[key].as_str();
        match (text("text"), text("blob")) {
            (Some(text), _) => Self::ResourceText {
                uri: contents["uri"].as_str().unwrap_or_default().to_owned(),
                text: text.to_owned(),
            },
            (None, Some(blob)) => Self::Blob(Blob::new(contents, blob)),
            (None, None) => Self::Other(contents.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_type_of_block_becomes_a_piece() {
        let text = ContentPiece::from_block(&json!({"type": "text", "text": "a"}));
        assert_eq!(text, ContentPiece::Text("a".to_owned()));
        let image = json!({"type": "image", "mimeType": "image/png", "data": "aGV\nsbG8"});
        let ContentPiece::Blob(blob) = ContentPiece::from_block(&image) else { panic!("{image}") };
        assert_eq!(blob.data.as_deref(), Some(&b"hello"[..]));
        assert_eq!(blob.describe(), "image/png, 5 bytes");
        let link = json!({
            "type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"
        });
        let expected =
            ContentPiece::Link { uri: "file:///a".to_owned(), label: "a, text/plain".to_owned() };
        assert_eq!(ContentPiece::from_block(&link), expected);
        let resource = json!({"type": "resource", "resource": {"uri": "fx://a", "blob": "YQ=="}});
        let ContentPiece::Blob(blob) = ContentPiece::from_block(&resource) else {
            panic!("{resource}")
        };
        assert_eq!(blob.describe(), "fx://a, data, 1 byte");
    }

    #[test]
    fn an_unknown_or_incomplete_block_stays_json() {
        for block in [
            json!({"type": "hologram", "x": 1}),
            json!({"type": "text"}),
            json!({"type": "image"}),
            json!({"type": "resource_link"}),
            json!(5),
        ] {
            let expected = ContentPiece::Other(block.to_string());
            assert_eq!(ContentPiece::from_block(&block), expected);
        }
        let image = json!({"type": "image", "data": "%%"});
        assert!(matches!(
            ContentPiece::from_block(&image),
            ContentPiece::Blob(Blob { data: None, .. })
        ));
    }
}
