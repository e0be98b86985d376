//! The same bytes whole and in chunks must make the same frames.
//!
//! The first byte of the input sets the limit, the second the size of a chunk, the third how often
//! the rest is repeated, so that short inputs reach past one read as well.

use innkeeper_protocol::framing::{Frame, LineFramer};

/// Frames with a tag for their kind.
type Frames = Vec<(bool, Vec<u8>)>;

fn framed(stream: &[u8], limit: usize, chunk: usize) -> (Frames, u64) {
    let owned = |frame: Frame<'_>| match frame {
        Frame::Line(line) => (true, line.to_vec()),
        Frame::TooLong { head } => (false, head.to_vec()),
    };
    let mut framer = LineFramer::new(limit);
    let (mut frames, mut rest) = (Vec::new(), stream);
    while !rest.is_empty() {
        let space = framer.space();
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

/// Cuts the input into lines.
pub fn framing(input: &[u8]) {
    let [limit, chunk, times, text @ ..] = input else { return };
    let stream = text.repeat(usize::from(*times) + 1);
    let limit = usize::from(*limit) * 16;
    let chunk = usize::from(*chunk) * usize::from(*chunk) + 1;
    let whole = framed(&stream, limit, usize::MAX);
    assert_eq!(whole, framed(&stream, limit, chunk));

    let (frames, discarded) = whole;
    let kept: usize = frames.iter().filter(|frame| frame.0).map(|frame| frame.1.len()).sum();
    assert!(kept as u64 + discarded <= stream.len() as u64);
    for (whole, bytes) in &frames {
        assert!(bytes.len() <= limit && !bytes.contains(&b'\n'));
        assert!(!whole || !bytes.trim_ascii().is_empty());
    }
}
