//! An answer that comes in chunks.

use super::read::{Gathered, whole};
use crate::provider::codec::{Fault, Fields};
use crate::provider::openai::{Gather, told};
use crate::provider::{Piece, Response};

pub(super) struct Chunks {
    model: String,
    gathered: Gathered,
    /// The end of the stream was told.
    done: bool,
}

impl Chunks {
    pub(super) fn new(model: String) -> Self {
        Self { gathered: Gathered::new(model.clone()), model, done: false }
    }
}

impl Gather for Chunks {
    fn event(&mut self, name: &str, data: &str, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        if self.done {
            return Ok(());
        }
        if data == "[DONE]" {
            self.done = true;
            if self.gathered.is_over(true) {
                self.gathered.settle(pieces);
            }
            return Ok(());
        }
        let Some(fields) = Fields::parse(data) else {
            let what = if name == "error" { data } else { "a chunk is no JSON object" };
            return Err(self.gathered.failed(Fault::unreadable(what)));
        };
        if name == "error" {
            return Err(self.gathered.failed(told(&fields)));
        }
        let taken = self.gathered.take(&fields, false, pieces);
        taken.map_err(|fault| self.gathered.failed(fault))
    }

    fn whole(&mut self, body: &str, pieces: &mut Vec<Piece>) -> Result<Response, Fault> {
        whole(std::mem::take(&mut self.model), body, pieces)
    }

    fn is_over(&self) -> bool {
        self.done && self.gathered.is_over(true)
    }

    /// Servers differ in whether they tell the end of the stream beside that of the answer.
    fn end(self) -> Result<Response, Fault> {
        if self.gathered.is_over(self.done) {
            Ok(self.gathered.into_response())
        } else {
            Err(self.gathered.broken_off())
        }
    }
}
