//! Properties of framing: independence of chunks, and a complete byte count.

use innkeeper_protocol::framing::{Frame, LineFramer, MAX_HEAD_BYTES};
use proptest::prelude::*;

const BOM: &[u8] = b"\xEF\xBB\xBF";

#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnedFrame {
    Line(Vec<u8>),
    TooLong(Vec<u8>),
}

impl From<Frame<'_>> for OwnedFrame {
    fn from(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Line(line) => Self::Line(line.to_vec()),
            Frame::TooLong { head } => Self::TooLong(head.to_vec()),
        }
    }
}

/// Reads `input` in chunks of the given sizes, repeated cyclically.
fn framed(input: &[u8], limit: usize, sizes: &[usize]) -> (Vec<OwnedFrame>, u64) {
    let mut framer = LineFramer::new(limit);
    let (mut frames, mut rest) = (Vec::new(), input);
    for size in sizes.iter().cycle() {
        let space = framer.read_buffer();
        let n = (space.capacity() - space.len()).min(*size).min(rest.len());
        space.extend_from_slice(&rest[..n]);
        rest = &rest[n..];
        while let Some(frame) = framer.next_frame() {
            frames.push(frame.into());
        }
        if rest.is_empty() {
            break;
        }
    }
    while let Some(frame) = framer.finish() {
        frames.push(frame.into());
    }
    (frames, framer.discarded())
}

/// Reference implementation over the entire input.
fn expected(input: &[u8], limit: usize) -> (Vec<OwnedFrame>, u64) {
    let (mut frames, mut discarded) = (Vec::new(), 0);
    for line in input.split(|byte| *byte == b'\n') {
        if line.len() > limit {
            discarded += line.len() as u64;
            let head = &line[..limit.min(MAX_HEAD_BYTES)];
            frames.push(OwnedFrame::TooLong(head.strip_prefix(BOM).unwrap_or(head).to_vec()));
            continue;
        }
        let line = line.strip_prefix(BOM).unwrap_or(line);
        if !line.trim_ascii().is_empty() {
            frames.push(OwnedFrame::Line(line.strip_suffix(b"\r").unwrap_or(line).to_vec()));
        }
    }
    (frames, discarded)
}

fn input(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    let chunk = prop_oneof![
        3 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just(BOM.to_vec()),
        1 => Just(b" \t".to_vec()),
        1 => Just("\u{1F600}".into()),
        1 => (0..longest).prop_map(|length| vec![b'x'; length]),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(chunk, 0..24).prop_map(|chunks| chunks.concat())
}

proptest! {
    /// Proves: TR3.2, TR3.7
    #[test]
    fn lines_do_not_depend_on_the_chunks(
        input in input(60),
        limit in 0_usize..80,
        sizes in prop::collection::vec(1_usize..40, 1..8),
    ) {
        let expected = expected(&input, limit);
        prop_assert_eq!(&framed(&input, limit, &[usize::MAX]), &expected);
        prop_assert_eq!(&framed(&input, limit, &[1]), &expected);
        prop_assert_eq!(&framed(&input, limit, &sizes), &expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn lines_longer_than_a_read_do_not_depend_on_the_chunks(
        input in input(300_000),
        limit in 60_000_usize..400_000,
        sizes in prop::collection::vec(1_usize..100_000, 1..8),
    ) {
        let expected = expected(&input, limit);
        prop_assert!(framed(&input, limit, &[usize::MAX]) == expected);
        prop_assert!(framed(&input, limit, &sizes) == expected);
    }
}
