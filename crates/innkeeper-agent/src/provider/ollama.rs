//! Ollama's `/api/chat`.

mod answer;
mod body;
pub(super) use body::CONTEXT;
mod fault;

use super::codec::{Asking, Fault, Outgoing, Reader, Whole};

pub(super) fn encode(asking: Asking<'_>) -> Result<Outgoing, Fault> {
    body::encode(asking)
}

pub(super) fn reader(model: &str, streaming: bool) -> Box<dyn Reader> {
    let model = model.to_owned();
    if streaming {
        Box::new(answer::Stream::new(model))
    } else {
        Box::new(Whole::new(move |body| answer::read(body, model)))
    }
}

pub(super) fn fault(status: u16, body: &[u8]) -> Fault {
    fault::read(status, body)
}

#[cfg(test)]
mod tests;
