//! The message with all responses of a batch.

use bytes::Bytes;

/// Returns responses as one message.
pub(super) fn batch_line(lines: &[Bytes]) -> Bytes {
    let mut all = Vec::new();
    for line in lines {
        add_to_batch(&mut all, line);
    }
    all.extend_from_slice(b"]\n");
    all.into()
}

/// Adds a response to the start of a message with all responses.
pub(crate) fn add_to_batch(message: &mut Vec<u8>, line: &[u8]) {
    message.push(if message.is_empty() { b'[' } else { b',' });
    message.extend_from_slice(line.trim_ascii_end());
}
