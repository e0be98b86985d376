//! Fuzz target: splits bytes into frames. Chunked and unchunked input give the same frames.
//!
//! The first byte of the input is the limit, the second byte the chunk size, and the third byte the
//! number of repetitions of the rest, so that short inputs span several reads.

use innkeeper_protocol::framing::{Frame, LineFramer};

/// Frames, each with whether the frame is complete.
type Frames = Vec<(bool, Vec<u8>)>;

fn read_frames(stream: &[u8], limit: usize, chunk: usize) -> (Frames, u64) {
    let owned = |frame: Frame<'_>| match frame {
        Frame::Line(line) => (true, line.to_vec()),
        Frame::TooLong { head } => (false, head.to_vec()),
    };
    let mut framer = LineFramer::new(limit);
    let mut frames = Vec::new();
    let mut rest = stream;
    while !rest.is_empty() {
        let space = framer.read_buffer();
        let n = (space.capacity() - space.len()).min(chunk).min(rest.len());
        space.extend_from_slice(&rest[..n]);
        rest = &rest[n..];
        while let Some(frame) = framer.next_frame() {
            frames.push(owned(frame));
        }
    }
    while let Some(frame) = framer.finish() {
        frames.push(owned(frame));
    }
    (frames, framer.discarded())
}

/// Splits the input into lines.
pub fn framing(input: &[u8]) {
    let [limit, chunk, times, text @ ..] = input else { return };
    let stream = text.repeat(usize::from(*times) + 1);
    let limit = usize::from(*limit) * 16;
    let chunk = usize::from(*chunk) * usize::from(*chunk) + 1;
    let unsplit = read_frames(&stream, limit, usize::MAX);
    assert_eq!(unsplit, read_frames(&stream, limit, chunk));

    let (frames, discarded) = unsplit;
    let total_bytes: usize = frames.iter().filter(|frame| frame.0).map(|frame| frame.1.len()).sum();
    assert!(total_bytes as u64 + discarded <= stream.len() as u64);
    for (is_complete, bytes) in &frames {
        assert!(bytes.len() <= limit && !bytes.contains(&b'\n'));
        assert!(!is_complete || !bytes.trim_ascii().is_empty());
    }
}
