//! The body of a response, up to a size limit.

use bytes::Bytes;
use futures_util::TryStreamExt as _;

use super::client::{ChunkStream, HttpError};

/// A body that ends with an error one byte above its limit, so that no client can send more.
pub(super) struct ResponseBody {
    chunks: ChunkStream,
    max_bytes: usize,
    received_bytes: usize,
}

impl ResponseBody {
    pub(super) fn new(chunks: ChunkStream, max_bytes: usize) -> Self {
        Self { chunks, max_bytes, received_bytes: 0 }
    }

    /// Returns the next chunk, or `None` at the end. Dropping the future loses no chunk.
    pub(super) async fn next_chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let Some(chunk) = self.chunks.try_next().await? else { return Ok(None) };
        self.received_bytes = self.received_bytes.saturating_add(chunk.len());
        if self.received_bytes > self.max_bytes {
            return Err(HttpError::TooLarge { max_bytes: self.max_bytes });
        }
        Ok(Some(chunk))
    }
}

/// Reads a body up to a maximum number of bytes, and ignores the rest.
pub(super) async fn read_prefix(
    mut chunks: ChunkStream,
    max_bytes: usize,
) -> Result<Vec<u8>, HttpError> {
    let mut prefix = Vec::new();
    while let Some(chunk) = chunks.try_next().await? {
        let remaining = max_bytes - prefix.len();
        prefix.extend_from_slice(&chunk[..chunk.len().min(remaining)]);
        if prefix.len() == max_bytes {
            break;
        }
    }
    Ok(prefix)
}
