//! The body of a response: its text without the cuts, and the cuts again.

use std::borrow::Cow;

use super::edits::{apply, move_positions};
use super::secrets::{MAX_PASSES, Secrets};
use super::strings::Strings;
use crate::file::{Chunk, ChunkData};

pub(super) struct Body {
    text: String,
    /// The beginning of a character whose rest never arrived.
    tail: Vec<u8>,
    /// The end of each chunk.
    cuts: Vec<usize>,
}

/// A body that can be searched but not changed.
pub(super) struct BinaryBody {
    bytes: Vec<u8>,
}

/// Joins the chunks; `None` if one of them is no Base64.
pub(super) fn join(chunks: &[Chunk]) -> Option<Result<Body, BinaryBody>> {
    let mut bytes = Vec::new();
    let mut cuts = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        bytes.extend_from_slice(&chunk.data.to_bytes()?);
        cuts.push(bytes.len());
    }
    let body = match String::from_utf8(bytes) {
        Ok(text) => Ok(Body { text, tail: Vec::new(), cuts }),
        Err(error) => {
            let cut = error.utf8_error();
            let mut bytes = error.into_bytes();
            let tail = bytes.split_off(cut.valid_up_to());
            match (cut.error_len(), String::from_utf8(bytes)) {
                (None, Ok(text)) => Ok(Body { text, tail, cuts }),
                (_, Ok(text)) => Err(BinaryBody { bytes: [text.as_bytes(), &tail].concat() }),
                (_, Err(error)) => {
                    Err(BinaryBody { bytes: [error.as_bytes(), &tail[..]].concat() })
                }
            }
        }
    };
    Some(body)
}

impl Body {
    pub(super) fn strings(&self) -> Strings<'_> {
        Strings::from_body(&self.text)
    }

    /// Replaces the secrets. Returns whether something changed.
    pub(super) fn redact(&mut self, secrets: &Secrets) -> bool {
        for pass in 0..MAX_PASSES {
            let edits = self.strings().edits(secrets);
            if edits.is_empty() {
                return pass > 0;
            }
            self.text = apply(&self.text, &edits);
            move_positions(&mut self.cuts, &edits);
        }
        true
    }

    /// Puts the cuts back. Chunks with the same bytes stay as they are.
    pub(super) fn write_chunks(&self, chunks: &mut [Chunk]) {
        let bytes: Cow<'_, [u8]> = if self.tail.is_empty() {
            Cow::Borrowed(self.text.as_bytes())
        } else {
            Cow::Owned([self.text.as_bytes(), &self.tail].concat())
        };
        let mut begin = 0;
        for (chunk, end) in chunks.iter_mut().zip(&self.cuts) {
            let piece = &bytes[begin..*end];
            if chunk.data.to_bytes().is_none_or(|before| *before != *piece) {
                chunk.data = ChunkData::from_bytes(piece);
            }
            begin = *end;
        }
    }
}

impl BinaryBody {
    /// Returns a secret in the bytes, or in what of them is text.
    pub(super) fn find_secret(&self, secrets: &Secrets) -> Option<usize> {
        let text = String::from_utf8_lossy(&self.bytes);
        let in_bytes = secrets.find(&self.bytes).first().map(|found| found.secret);
        in_bytes.or_else(|| Strings::from_body(&text).find_leak(secrets))
    }

    /// Shows what is text to the detector.
    pub(super) fn collect(&self, secrets: &mut Secrets, known: usize) -> Option<usize> {
        let text = String::from_utf8_lossy(&self.bytes);
        Strings::from_body(&text).collect(secrets, known)
    }
}
