//! An answer that is read when all of it is there.

use super::{ANSWER, Fault, Reader};
use crate::provider::{Piece, Response};

/// Gathers the body, which `read` makes an answer of.
pub(crate) struct Whole<R> {
    body: Vec<u8>,
    read: R,
}

impl<R: FnOnce(&[u8]) -> Result<Response, Fault>> Whole<R> {
    pub(crate) fn new(read: R) -> Self {
        Self { body: Vec::new(), read }
    }
}

impl<R: FnOnce(&[u8]) -> Result<Response, Fault> + Send> Reader for Whole<R> {
    fn push(&mut self, bytes: &[u8], _: &mut Vec<Piece>) -> Result<(), Fault> {
        if self.body.len() + bytes.len() > ANSWER {
            return Err(Fault::unreadable(format!("the answer is longer than {ANSWER} bytes")));
        }
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<Response, Fault> {
        let Self { body, read } = *self;
        read(&body)
    }
}
