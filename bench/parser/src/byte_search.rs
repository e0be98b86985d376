//! Byte searches over the same chunks: the lower bound of one pass over the text.

use std::hint::black_box;

use crate::{BenchParser, chunks};

/// A search for one absent byte.
pub(crate) struct MemchrSearch;

impl BenchParser for MemchrSearch {
    fn parse(&mut self, text: &str, piece: usize) -> Result<usize, String> {
        let mut told = 0;
        for piece in chunks(text, piece) {
            let found = memchr::memchr(black_box(b'\0'), piece.as_bytes());
            told += black_box(found).unwrap_or(piece.len());
        }
        Ok(told)
    }
}

/// A search for three absent bytes.
pub(crate) struct Memchr3Search;

impl BenchParser for Memchr3Search {
    fn parse(&mut self, text: &str, piece: usize) -> Result<usize, String> {
        let mut told = 0;
        for piece in chunks(text, piece) {
            let found = memchr::memchr3(black_box(b'\0'), 1, 2, piece.as_bytes());
            told += black_box(found).unwrap_or(piece.len());
        }
        Ok(told)
    }
}
