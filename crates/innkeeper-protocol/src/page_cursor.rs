//! The cursor of a list that a server reads from memory.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::value::RawValue;

use crate::envelope::code;
use crate::{skim, text};

/// The format of the encoded bytes, so that a later format is not mistaken for this format.
const FORMAT: u8 = 1;
/// The format, the offset, the fingerprint and the checksum.
const ENCODED_BYTES: usize = 1 + 8 + 8 + 4;
/// The length of an encoded cursor in characters.
const ENCODED_CHARS: usize = ENCODED_BYTES / 3 * 4;

/// A position in one state of a list. Clients see an opaque text (2026-07-28, Pagination).
///
/// The checksum detects damaged texts, and is no signature: a client can compute a cursor with any
/// offset. A cursor must therefore give access to no item that the list does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCursor {
    /// The number of items on the pages before.
    pub offset: u64,
    /// A value that differs between the states of the list, such as a hash or a counter.
    pub fingerprint: u64,
}

/// The error for a cursor that the server did not create, or not for this state of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageCursorError {
    /// The value is not a cursor of this server, or is damaged.
    #[error("invalid `cursor`: not a cursor of this server")]
    Invalid,
    /// The list has changed since the server created the cursor.
    #[error("invalid `cursor`: the list has changed; read the list from its start")]
    Outdated,
}

impl PageCursorError {
    /// Returns the code of the error response, [`code::INVALID_PARAMS`] (2026-07-28, Pagination,
    /// Error Handling).
    pub fn code(&self) -> i64 {
        code::INVALID_PARAMS
    }
}

impl PageCursor {
    /// Returns the text of the cursor: 28 characters of the URL-safe base64 alphabet.
    pub fn encode(&self) -> String {
        let mut bytes = [0; ENCODED_BYTES];
        let (content, checksum_bytes) = bytes.split_at_mut(ENCODED_BYTES - 4);
        content[0] = FORMAT;
        content[1..9].copy_from_slice(&self.offset.to_be_bytes());
        content[9..].copy_from_slice(&self.fingerprint.to_be_bytes());
        checksum_bytes.copy_from_slice(&checksum(content).to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads the text of a cursor.
    ///
    /// # Errors
    ///
    /// Returns [`PageCursorError::Invalid`] if [`PageCursor::encode`] did not write the text.
    pub fn decode(text: &str) -> Result<Self, PageCursorError> {
        if text.len() != ENCODED_CHARS {
            return Err(PageCursorError::Invalid);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| PageCursorError::Invalid)?;
        Self::from_bytes(&bytes).ok_or(PageCursorError::Invalid)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (content, checksum_bytes) = bytes.split_last_chunk()?;
        let (&format, numbers) = content.split_first()?;
        let (offset, fingerprint) = numbers.split_first_chunk()?;
        let is_own = format == FORMAT && *checksum_bytes == checksum(content).to_be_bytes();
        is_own.then_some(Self {
            offset: u64::from_be_bytes(*offset),
            fingerprint: u64::from_be_bytes(fingerprint.try_into().ok()?),
        })
    }

    /// Reads the member `cursor` of the `params` of a list request. Returns `None` for the first
    /// page: without params, without a cursor, and with `null`.
    ///
    /// # Errors
    ///
    /// Returns [`PageCursorError::Invalid`] if the member is not a cursor of this server.
    pub fn from_params(params: Option<&RawValue>) -> Result<Option<Self>, PageCursorError> {
        let cursor = params.and_then(|params| skim::member(params.get(), "cursor"));
        let Some(raw) = cursor.filter(|raw| *raw != "null") else { return Ok(None) };
        let text = text::decode_string(raw).ok_or(PageCursorError::Invalid)?;
        Self::decode(&text).map(Some)
    }

    /// Returns the offset, for the list with `fingerprint`. The caller compares the offset with the
    /// length of the list.
    ///
    /// # Errors
    ///
    /// Returns [`PageCursorError::Outdated`] if the cursor belongs to another state of the list.
    pub fn offset_in(&self, fingerprint: u64) -> Result<u64, PageCursorError> {
        if self.fingerprint == fingerprint {
            Ok(self.offset)
        } else {
            Err(PageCursorError::Outdated)
        }
    }
}

/// FNV-1a with 32 bits. Each change of one byte changes the sum.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{ENCODED_BYTES, ENCODED_CHARS, PageCursor, PageCursorError, checksum};

    const CURSOR: PageCursor = PageCursor { offset: 200, fingerprint: u64::MAX };

    #[test]
    fn a_cursor_is_read_back() {
        let text = CURSOR.encode();
        assert_eq!(text.len(), ENCODED_CHARS);
        assert!(
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
            "{text}"
        );
        assert_eq!(PageCursor::decode(&text), Ok(CURSOR));
        assert_eq!(CURSOR.offset_in(u64::MAX), Ok(200));
    }

    #[test]
    fn a_cursor_with_any_changed_character_is_invalid() {
        let text = CURSOR.encode();
        for at in 0..text.len() {
            for other in ["A", "_", "=", " "] {
                let mut changed = text.clone();
                changed.replace_range(at..=at, other);
                if changed != text {
                    assert_eq!(PageCursor::decode(&changed), Err(PageCursorError::Invalid));
                }
            }
            assert_eq!(PageCursor::decode(&text[..at]), Err(PageCursorError::Invalid));
        }
        let error = PageCursor::decode(&format!("{text}A")).unwrap_err();
        assert_eq!((error, error.code()), (PageCursorError::Invalid, -32602));
        for foreign in ["", "eyJwYWdlIjogMn0=", "äääääääääääääää", &"A".repeat(ENCODED_CHARS)]
        {
            assert_eq!(PageCursor::decode(foreign), Err(PageCursorError::Invalid), "{foreign}");
        }
    }

    #[test]
    fn a_cursor_of_another_format_is_invalid() {
        let with_format = |format| {
            let mut bytes = [0; ENCODED_BYTES];
            bytes[0] = format;
            let sum = checksum(&bytes[..17]);
            bytes[17..].copy_from_slice(&sum.to_be_bytes());
            PageCursor::from_bytes(&bytes)
        };
        assert_eq!(with_format(1), Some(PageCursor { offset: 0, fingerprint: 0 }));
        assert_eq!(with_format(2), None);
    }

    #[test]
    fn a_cursor_of_another_state_of_the_list_is_outdated() {
        let error = CURSOR.offset_in(5).unwrap_err();
        assert_eq!((error, error.code()), (PageCursorError::Outdated, -32602));
    }

    #[test]
    fn the_cursor_of_a_list_request_is_read() {
        let read = |params: &str| {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            PageCursor::from_params(Some(&params))
        };
        assert_eq!(PageCursor::from_params(None), Ok(None));
        assert_eq!(read("{}"), Ok(None));
        assert_eq!(read(r#"{"cursor":null}"#), Ok(None));
        assert_eq!(read(&format!(r#"{{"cursor":"{}"}}"#, CURSOR.encode())), Ok(Some(CURSOR)));
        for params in [r#"{"cursor":""}"#, r#"{"cursor":5}"#, r#"{"cursor":{}}"#] {
            assert_eq!(read(params), Err(PageCursorError::Invalid), "{params}");
        }
    }
}
