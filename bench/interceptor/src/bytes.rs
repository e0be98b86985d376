//! A byte search over the same pieces: what looking at each byte costs at least.

use std::hint::black_box;

use crate::{Peer, pieces};

/// A search for one byte that is not there.
pub(crate) struct Memchr;

impl Peer for Memchr {
    fn read(&mut self, text: &str, piece: usize) -> Result<usize, String> {
        let mut told = 0;
        for piece in pieces(text, piece) {
            let found = memchr::memchr(black_box(b'\0'), piece.as_bytes());
            told += black_box(found).unwrap_or(piece.len());
        }
        Ok(told)
    }
}

/// A search for three bytes that are not there.
pub(crate) struct Memchr3;

impl Peer for Memchr3 {
    fn read(&mut self, text: &str, piece: usize) -> Result<usize, String> {
        let mut told = 0;
        for piece in pieces(text, piece) {
            let found = memchr::memchr3(black_box(b'\0'), 1, 2, piece.as_bytes());
            told += black_box(found).unwrap_or(piece.len());
        }
        Ok(told)
    }
}
