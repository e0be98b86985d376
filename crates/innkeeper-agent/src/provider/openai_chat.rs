//! OpenAI's Chat Completions, as OpenAI and every server that speaks like it have it.
//!
//! A message is read leniently and in one way, whether it comes whole or in pieces: `read.rs` takes
//! what a choice says, `calls.rs` puts its calls together, `details.rs` thoughts that go back as they
//! came. The parts of an answer are in one order: thoughts, text, calls.

mod calls;
mod details;
mod encode;
mod read;
mod stream;

use super::codec::{Fault, Reader, Whole};
use super::openai::Stream;
use stream::Chunks;

pub(super) use super::openai::fault;
pub(super) use encode::encode;

pub(super) fn reader(model: &str, streaming: bool) -> Box<dyn Reader> {
    let model = model.to_owned();
    if streaming {
        return Box::new(Stream::new(Chunks::new(model)));
    }
    Box::new(Whole::new(move |body| {
        let text = std::str::from_utf8(body);
        let text = text.map_err(|_| Fault::unreadable("the answer is not UTF-8"))?;
        read::whole(model, text, &mut Vec::new())
    }))
}

#[cfg(test)]
mod tests;
