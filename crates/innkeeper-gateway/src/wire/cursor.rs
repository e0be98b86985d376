//! Cursors of aggregated lists.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) offset: u64,
    pub(crate) fingerprint: u64,
}

impl Cursor {
    pub(crate) fn encode(self) -> String {
        let mut bytes = self.offset.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.fingerprint.to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(crate) fn decode(text: &str) -> Result<Self, ()> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(drop)?;
        let bytes: [u8; 16] = bytes.try_into().map_err(drop)?;
        let number = |part: &[u8]| u64::from_be_bytes(part.try_into().unwrap_or_default());
        Ok(Self { offset: number(&bytes[..8]), fingerprint: number(&bytes[8..]) })
    }
}
