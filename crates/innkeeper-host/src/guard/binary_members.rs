//! Finds the members with base64 data of an image, a recording or a binary file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::text_nodes::decode;
use crate::text::PathSegment;

/// Length of the base64 text that is checked at once; a multiple of four.
const CHUNK_LEN: usize = 4096;

/// The candidates of the open objects. The type of data follows from members before or after the
/// data, so that the end of the object decides.
#[derive(Debug, Default)]
pub(super) struct BinaryMembers<'j> {
    objects: Vec<OpenObject<'j>>,
}

#[derive(Debug, Default)]
struct OpenObject<'j> {
    /// The number of segments of its path.
    depth: usize,
    data: Option<&'j str>,
    blob: Option<&'j str>,
    /// Whether its `type` is a type with base64 in `data`.
    has_media_type: bool,
    /// Whether its `mimeType` is not text, with base64 in `blob`.
    has_binary_mime_type: bool,
}

impl<'j> BinaryMembers<'j> {
    pub(super) fn start_object(&mut self, depth: usize) {
        self.objects.push(OpenObject { depth, ..OpenObject::default() });
    }

    /// Considers a string of the innermost object. Returns whether the end of the object decides
    /// about the string.
    pub(super) fn defer(&mut self, path: &[PathSegment<'_>], raw: &'j str) -> bool {
        let Some((PathSegment::Name(name), parents)) = path.split_last() else { return false };
        let Some(object) = self.objects.last_mut().filter(|object| object.depth == parents.len())
        else {
            return false;
        };
        let slot = match &**name {
            "data" => &mut object.data,
            "blob" => &mut object.blob,
            "type" => {
                object.has_media_type = matches!(&*decode(raw), "image" | "audio");
                return false;
            }
            "mimeType" => {
                object.has_binary_mime_type = !is_text(&decode(raw));
                return false;
            }
            _ => return false,
        };
        let is_first = slot.is_none();
        if is_first {
            *slot = Some(raw);
        }
        is_first
    }

    /// Closes the innermost object. Returns the deferred strings that are text: data is binary if
    /// its object says so and if the data is valid base64, whatever its neighbours claim. With two
    /// members of the same name, the object says nothing.
    pub(super) fn end_object(
        &mut self,
        has_duplicate: bool,
    ) -> impl Iterator<Item = (&'static str, &'j str)> {
        let OpenObject { data, blob, has_media_type, has_binary_mime_type, .. } =
            self.objects.pop().unwrap_or_default();
        let text = |name, raw: Option<&'j str>, has_binary_type: bool| {
            let is_typed = has_binary_type && !has_duplicate;
            raw.filter(|raw| !(is_typed && is_base64(&decode(raw)))).map(|raw| (name, raw))
        };
        let data = text("data", data, has_media_type);
        data.into_iter().chain(text("blob", blob, has_binary_mime_type))
    }
}

/// Returns whether a text is base64, without decoding the whole text at once.
fn is_base64(text: &str) -> bool {
    let mut decoded = [0; CHUNK_LEN / 4 * 3];
    let chunks = text.as_bytes().chunks(CHUNK_LEN);
    let last = chunks.len().saturating_sub(1);
    chunks.enumerate().all(|(index, chunk)| {
        // Only the end of the text may be padded.
        (index == last || !chunk.contains(&b'='))
            && STANDARD.decode_slice(chunk, &mut decoded).is_ok()
    })
}

/// Returns whether files of this MIME type are text.
fn is_text(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let texts = ["json", "xml", "yaml", "javascript", "toml", "sql", "html", "csv", "markdown"];
    kind.trim_start().starts_with("text/") || texts.iter().any(|text| kind.contains(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_is_base64_if_it_decodes_as_a_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..10_000), at in 0..20_000usize,
            odd in prop::sample::select(vec!["", "=", "A", " ", "AA==", "ä"]),
        ) {
            let mut text = STANDARD.encode(bytes);
            text.insert_str(at.min(text.len()), odd);
            prop_assert_eq!(is_base64(&text), STANDARD.decode(&text).is_ok());
        }
    }

    #[test]
    fn padding_inside_a_long_text_is_no_base64() {
        let inside = format!("{}AA=={}", "A".repeat(CHUNK_LEN - 4), "A".repeat(8));
        assert!(!is_base64(&inside));
        assert!(is_base64(&format!("{}AA==", "A".repeat(CHUNK_LEN))));
    }
}
