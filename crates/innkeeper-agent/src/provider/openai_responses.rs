//! OpenAI's Responses.
//!
//! An answer is a list of items, each one part, kept as it came. Nothing is stored at the provider:
//! the items go back with the next request, thoughts among them, encrypted.

mod encode;
mod item;
mod read;
mod stream;

use super::codec::{Fault, Reader, Whole};
use super::openai::Stream;
use stream::Items;

pub(super) use super::openai::fault;
pub(super) use encode::encode;

pub(super) fn reader(model: &str, streaming: bool) -> Box<dyn Reader> {
    let model = model.to_owned();
    if streaming {
        return Box::new(Stream::new(Items::new(model)));
    }
    Box::new(Whole::new(move |body| {
        let text = std::str::from_utf8(body);
        let text = text.map_err(|_| Fault::unreadable("the answer is not UTF-8"))?;
        read::whole(&model, text)
    }))
}

#[cfg(test)]
mod tests;
