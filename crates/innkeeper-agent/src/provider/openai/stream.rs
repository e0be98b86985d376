//! An answer that was asked for in pieces, however its server sends it.

use super::Balance;
use crate::provider::codec::{ANSWER, Events, Fault, Reader};
use crate::provider::{Piece, Response};

/// What makes an answer of what comes.
pub(in crate::provider) trait Gather: Send {
    /// Takes an event: its name, and its data, which is not empty.
    fn event(&mut self, name: &str, data: &str, pieces: &mut Vec<Piece>) -> Result<(), Fault>;

    /// Takes an answer that is there at once.
    fn whole(&mut self, body: &str, pieces: &mut Vec<Piece>) -> Result<Response, Fault>;

    /// Whether the answer has said that it is at its end.
    fn is_over(&self) -> bool;

    /// Nothing more comes.
    fn end(self) -> Result<Response, Fault>;
}

/// The reader over it.
pub(in crate::provider) struct Stream<G> {
    form: Form,
    gather: G,
}

enum Form {
    Unknown,
    Events(Events),
    /// Servers that do not stream answer with all at once, and failures may come so.
    Object {
        body: Vec<u8>,
        balance: Balance,
    },
    Whole(Response),
}

impl<G> Stream<G> {
    pub(in crate::provider) fn new(gather: G) -> Self {
        Self { form: Form::Unknown, gather }
    }
}

impl<G: Gather> Reader for Stream<G> {
    fn push(&mut self, mut bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        if let Form::Unknown = self.form {
            bytes = bytes.trim_ascii_start();
            self.form = match bytes.first() {
                None => return Ok(()),
                Some(b'{') => Form::Object { body: Vec::new(), balance: Balance::default() },
                Some(_) => Form::Events(Events::new()),
            };
        }
        let gather = &mut self.gather;
        match &mut self.form {
            Form::Unknown | Form::Whole(_) => Ok(()),
            Form::Events(events) => events.push(bytes, |name, data| match data.trim() {
                "" => Ok(()),
                data => gather.event(name, data, pieces),
            }),
            Form::Object { body, balance } => {
                if body.len() + bytes.len() > ANSWER {
                    let message = format!("the answer is longer than {ANSWER} bytes");
                    return Err(Fault::unreadable(message));
                }
                let end = balance.push(bytes);
                body.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
                if end.is_some() {
                    let text = std::str::from_utf8(body);
                    let text = text.map_err(|_| Fault::unreadable("the answer is not UTF-8"))?;
                    self.form = Form::Whole(gather.whole(text, pieces)?);
                }
                Ok(())
            }
        }
    }

    fn is_over(&self) -> bool {
        match self.form {
            Form::Whole(_) => true,
            Form::Unknown | Form::Events(_) | Form::Object { .. } => self.gather.is_over(),
        }
    }

    fn end(self: Box<Self>) -> Result<Response, Fault> {
        match self.form {
            Form::Whole(response) => Ok(response),
            Form::Unknown | Form::Events(_) | Form::Object { .. } => self.gather.end(),
        }
    }
}
