//! Framing: the same lines whatever the chunks, and every byte accounted for.

use innkeeper_protocol::framing::{Frame, HEAD_LIMIT, LineFramer};
use proptest::prelude::*;

const MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Clone, Debug, PartialEq, Eq)]
enum Owned {
    Line(Vec<u8>),
    TooLong(Vec<u8>),
}

impl From<Frame<'_>> for Owned {
    fn from(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Line(line) => Self::Line(line.to_vec()),
            Frame::TooLong { head } => Self::TooLong(head.to_vec()),
        }
    }
}

/// Reads `input` in chunks of the given sizes, over and over.
fn framed(input: &[u8], limit: usize, sizes: &[usize]) -> (Vec<Owned>, u64) {
    let mut framer = LineFramer::new(limit);
    let (mut frames, mut rest) = (Vec::new(), input);
    for size in sizes.iter().cycle() {
        let space = framer.space();
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

/// The same, said plainly about the whole input.
fn expected(input: &[u8], limit: usize) -> (Vec<Owned>, u64) {
    let (mut frames, mut discarded) = (Vec::new(), 0);
    for line in input.split(|byte| *byte == b'\n') {
        if line.len() > limit {
            discarded += line.len() as u64;
            let head = &line[..limit.min(HEAD_LIMIT)];
            frames.push(Owned::TooLong(head.strip_prefix(MARK).unwrap_or(head).to_vec()));
            continue;
        }
        let line = line.strip_prefix(MARK).unwrap_or(line);
        if !line.trim_ascii().is_empty() {
            frames.push(Owned::Line(line.strip_suffix(b"\r").unwrap_or(line).to_vec()));
        }
    }
    (frames, discarded)
}

fn input(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just(MARK.to_vec()),
        1 => Just(b" \t".to_vec()),
        1 => Just("\u{1F600}".into()),
        1 => (0..longest).prop_map(|length| vec![b'x'; length]),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
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
