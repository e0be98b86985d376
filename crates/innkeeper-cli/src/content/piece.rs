//! One piece of a result, in the form in which people read it.

use innkeeper_protocol::{decode_base64, skim};

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

/// Returns a string member of an object in JSON text.
fn text_member(object: &str, key: &str) -> Option<String> {
    skim::member(object, key).and_then(skim::decode_string).map(Into::into)
}

impl Blob {
    fn new(contents: &str, base64: &str) -> Self {
        let text = |key: &str| text_member(contents, key);
        Self { mime_type: text("mimeType"), uri: text("uri"), data: decode_base64(base64) }
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
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::ResourceText { .. } | Self::Blob(_) | Self::Link { .. } | Self::Other(_) => None,
        }
    }

    /// Reads the JSON text of a content block of a tool result or of a prompt message. A block of
    /// another type stays byte for byte.
    pub(crate) fn from_block(block: &str) -> Self {
        let text = |key: &str| text_member(block, key);
        let piece = match text("type").as_deref() {
            Some("text") => text("text").map(Self::Text),
            Some("image" | "audio") => text("data").map(|data| Self::Blob(Blob::new(block, &data))),
            Some("resource") => skim::member(block, "resource").map(Self::from_resource),
            Some("resource_link") => text("uri").map(|uri| {
                let keys = ["title", "name", "mimeType", "description"];
                let mut words: Vec<String> = keys.iter().filter_map(|key| text(key)).collect();
                words.dedup();
                Self::Link { uri, label: words.join(", ") }
            }),
            Some(_) | None => None,
        };
        piece.unwrap_or_else(|| Self::Other(block.to_owned()))
    }

    /// Reads the JSON text of the contents of a resource.
    pub(crate) fn from_resource(contents: &str) -> Self {
        let text = |key: &str| text_member(contents, key);
        if let Some(content) = text("text") {
            return Self::ResourceText { uri: text("uri").unwrap_or_default(), text: content };
        }
        match text("blob") {
            Some(blob) => Self::Blob(Blob::new(contents, &blob)),
            None => Self::Other(contents.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn from_block(block: &Value) -> ContentPiece {
        ContentPiece::from_block(&block.to_string())
    }

    #[test]
    fn a_block_of_another_type_keeps_its_digits() {
        let block = r#"{"type":"x", "n":12345678901234567890123}"#;
        assert_eq!(ContentPiece::from_block(block), ContentPiece::Other(block.to_owned()));
    }

    #[test]
    fn each_type_of_block_becomes_a_piece() {
        let text = from_block(&json!({"type": "text", "text": "a"}));
        assert_eq!(text, ContentPiece::Text("a".to_owned()));
        let image = json!({"type": "image", "mimeType": "image/png", "data": "aGV\nsbG8"});
        let ContentPiece::Blob(blob) = from_block(&image) else { panic!("{image}") };
        assert_eq!(blob.data.as_deref(), Some(&b"hello"[..]));
        assert_eq!(blob.describe(), "image/png, 5 bytes");
        let link = json!({
            "type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"
        });
        let expected =
            ContentPiece::Link { uri: "file:///a".to_owned(), label: "a, text/plain".to_owned() };
        assert_eq!(from_block(&link), expected);
        let resource = json!({"type": "resource", "resource": {"uri": "fx://a", "blob": "YQ=="}});
        let ContentPiece::Blob(blob) = from_block(&resource) else { panic!("{resource}") };
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
            assert_eq!(from_block(&block), expected);
        }
        let image = json!({"type": "image", "data": "%%"});
        assert!(matches!(from_block(&image), ContentPiece::Blob(Blob { data: None, .. })));
    }
}
