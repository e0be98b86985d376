//! Harmony's messages: a header that says who speaks to whom, then a body.

use super::open::Open;
use super::{Interceptor, Mode, Progress, Sink, tell};
use crate::event::{Event, Finish, Incomplete};
use crate::lexer::message::{ENDS, Message};
use crate::lexer::{Begins, begins, follows};

/// What ends a header.
const MESSAGE: &str = "<|message|>";

/// The longest header; the longest real one has a tool's name and a content type.
const HEADER: usize = 1024;

/// A header that is being read.
#[derive(Debug)]
pub(super) struct Header {
    text: String,
    /// Whether the prompt began it, so that what follows may also be plain text.
    from_prompt: bool,
}

impl Header {
    pub(super) fn from(marker: &str) -> Self {
        Self { text: marker.to_owned(), from_prompt: false }
    }

    /// The header whose beginning is the end of the prompt.
    pub(super) fn begun() -> Self {
        Self { text: String::new(), from_prompt: true }
    }

    /// Whom the message is for and on which channel it is.
    fn read(&self) -> (Option<&str>, &str) {
        let recipient = self.text.split_once("to=").map(|(_, rest)| word(rest));
        let channel = self.text.rsplit_once("<|channel|>").map_or("", |(_, rest)| word(rest));
        // Some models address themselves.
        (
            recipient.filter(|name| !name.is_empty() && *name != "assistant" && *name != "user"),
            channel,
        )
    }

    /// The text ends in the header.
    pub(super) fn cut(self, rest: &str, finish: Finish, sink: &mut Sink<'_>) {
        let text = self.text.clone() + rest;
        let reason = match finish {
            Finish::Stop => Incomplete::Stopped,
            Finish::Length => Incomplete::Length,
            Finish::Interrupted => Incomplete::Interrupted,
        };
        match self.read() {
            (Some(_), _) => sink(Event::Incomplete { index: None, reason, text: &text }),
            (None, _) => tell(&text, sink, Event::Text),
        }
    }
}

/// The first word, which a marker ends too.
fn word(text: &str) -> &str {
    text.split(|letter: char| letter.is_whitespace() || letter == '<').next().unwrap_or_default()
}

/// A message that is no call.
#[derive(Debug)]
pub(super) struct Body {
    reasoning: bool,
}

impl Body {
    pub(super) fn is_reasoning(&self) -> bool {
        self.reasoning
    }

    /// Nothing follows.
    pub(super) fn cut(&self, rest: &str, sink: &mut Sink<'_>) {
        tell(rest, sink, if self.reasoning { Event::Reasoning } else { Event::Text });
    }
}

impl Interceptor {
    pub(super) fn header(
        &mut self,
        input: &str,
        end: Option<Finish>,
        sink: &mut Sink<'_>,
    ) -> Progress {
        let Mode::Header(header) = &mut self.mode else { return Progress::on(0) };
        if header.from_prompt && header.text.is_empty() {
            let first = input.trim_start();
            let ways = [begins(first, "<|"), begins(first, "to=")];
            if ways.contains(&Begins::Perhaps)
                && !ways.contains(&Begins::Yes)
                && end.is_none()
                && input.len() < HEADER
            {
                return Progress::wait(0);
            }
            if !ways.contains(&Begins::Yes) {
                self.mode = Mode::Text;
                return Progress::on(0);
            }
        }
        let mut at = 0;
        while let Some(letter) = input[at..].chars().next() {
            let rest = &input[at..];
            match begins(rest, MESSAGE) {
                Begins::Yes => {
                    header.text.push_str(MESSAGE);
                    self.begin_message(sink);
                    return Progress::on(at + MESSAGE.len());
                }
                Begins::Perhaps if end.is_none() => return Progress::wait(at),
                Begins::Perhaps | Begins::No => {}
            }
            // A message that ends before its header did, or another that begins: garbled.
            let garbled = ["<|end|>", "<|start|>", "<|return|>", "<|call|>"];
            let ends = garbled.iter().any(|token| begins(rest, token) == Begins::Yes);
            let long = header.text.len() >= HEADER;
            if long || ends && !header.text.is_empty() {
                let text = std::mem::take(&mut header.text);
                let event = if long { Event::Text } else { Event::Frame };
                tell(&text, sink, event);
                self.mode = Mode::Text;
                return Progress::on(at);
            }
            if end.is_none() && garbled.iter().any(|token| begins(rest, token) == Begins::Perhaps) {
                return Progress::wait(at);
            }
            header.text.push(letter);
            at += letter.len_utf8();
        }
        Progress::wait(at)
    }

    fn begin_message(&mut self, sink: &mut Sink<'_>) {
        let Mode::Header(header) = std::mem::replace(&mut self.mode, Mode::Text) else { return };
        self.context.reset();
        let (recipient, channel) = header.read();
        self.mode = match recipient {
            Some(name) => {
                let lexer = Box::new(Message::new(name));
                Mode::Open(Box::new(Open::with(lexer, None, &header.text, Mode::Text)))
            }
            None => {
                tell(&header.text, sink, Event::Frame);
                Mode::Message(Body { reasoning: channel == "analysis" })
            }
        };
    }

    pub(super) fn message(
        &mut self,
        input: &str,
        end: Option<Finish>,
        sink: &mut Sink<'_>,
    ) -> Progress {
        let Mode::Message(body) = &self.mode else { return Progress::on(0) };
        let reasoning = body.reasoning;
        let mut from = 0;
        while let Some(hit) = memchr::memchr(b'<', &input.as_bytes()[from..]) {
            let at = from + hit;
            let (found, length) = message_end(&input[at..], end);
            match found {
                Begins::No => from = at + 1,
                Begins::Perhaps => {
                    Body { reasoning }.cut(&input[..at], sink);
                    return Progress::wait(at);
                }
                Begins::Yes => {
                    Body { reasoning }.cut(&input[..at], sink);
                    tell(&input[at..at + length], sink, Event::Frame);
                    self.mode = Mode::Text;
                    return Progress::on(at + length);
                }
            }
        }
        Body { reasoning }.cut(input, sink);
        Progress::wait(input.len())
    }
}

/// Whether a message ends here. A token that ends messages is text where none can begin behind it.
fn message_end(rest: &str, end: Option<Finish>) -> (Begins, usize) {
    let ended = end.map(|_| true);
    let mut found = Begins::No;
    for token in &ENDS[..3] {
        match begins(rest, token) {
            Begins::Yes => {
                return (
                    follows(&rest[token.len()..], &["<|start|>", "<|channel|>"], ended),
                    token.len(),
                );
            }
            Begins::Perhaps if end.is_none() => found = Begins::Perhaps,
            Begins::Perhaps | Begins::No => {}
        }
    }
    match begins(rest, "<|start|>assistant") {
        Begins::Yes => (Begins::Yes, 0),
        Begins::Perhaps if end.is_none() => (Begins::Perhaps, 0),
        Begins::Perhaps | Begins::No => (found, 0),
    }
}
