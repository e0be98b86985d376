//! Takes a model's text piece by piece and tells apart what is for the reader and what is a call.
//!
//! Each byte is looked at once, but for a bounded look ahead and for what looked like a call in
//! mid-text and was none. Text leaves at once, except for the end that may still turn out to begin a
//! marker. What is kept is that end, bounded by the longest marker and look ahead, and the open
//! call, bounded by [`Limits`].

mod bytes;
mod context;
mod harmony;
mod markers;
mod open;
mod text;
mod thought;

use std::sync::Arc;

use crate::Tools;
use crate::event::{Event, Finish};
use crate::format::{Format, Mark};
use crate::lexer::Data;
use context::Context;
use harmony::Header;
use markers::Markers;
use open::Open;
use thought::{Pending, Section, Thought};

/// What is kept while it is not clear what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many characters of what may be a call in mid-text are kept until it has named an offered
    /// tool. Past them it is text. 200 by default.
    pub undecided: usize,
    /// How long one call may be in bytes, its markers included. A longer one is text to its end.
    /// 1 MiB by default; what is undecided always has room.
    pub call: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { undecided: 200, call: 1 << 20 }
    }
}

/// How an interceptor reads.
#[derive(Debug, Clone)]
pub struct Options {
    /// The format of the model's calls; whatever turns up by default.
    pub format: Format,
    /// What is kept.
    pub limits: Limits,
    /// The end of the prompt the text continues, where it is known: it tells whether the model is
    /// thinking already. A `<think>` without its end is enough.
    pub prompt: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { format: Format::Detect, limits: Limits::default(), prompt: None }
    }
}

/// Where the interceptor is in the text, for people who debug it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// In text for the reader.
    Narrative,
    /// In something that may become a call.
    MaybeToolStart,
    /// In a call of an offered tool.
    InToolCall,
    /// Behind a call, before any other text.
    AfterToolCall,
    /// In the model's thoughts.
    Reasoning,
}

/// Where events go.
pub type Sink<'s> = dyn FnMut(Event<'_>) + 's;

/// What is being read.
#[derive(Debug)]
enum Mode {
    Text,
    Thought(Thought),
    /// A complete call in a thought: a call only if the thought does not go on.
    Pending(Box<Pending>),
    Section(Section),
    Open(Box<Open>),
    /// JSON that is no call.
    Data(Data),
    Header(Header),
    Message(harmony::Body),
}

/// See the [module](self).
#[derive(Debug)]
pub struct Interceptor {
    tools: Arc<Tools>,
    markers: Markers,
    limits: Limits,
    mode: Mode,
    context: Context,
    /// The end of the last piece, which more text decides about.
    held: String,
    /// The beginning of a letter whose other bytes are still to come; three at most.
    letter: Vec<u8>,
    /// How many calls have begun.
    calls: usize,
    just_called: bool,
    thought_seen: bool,
}

/// How much of the next piece is joined to what is held: more than a marker and its look ahead.
const HELD: usize = 1024;

impl Interceptor {
    /// An interceptor for one answer of a model that was offered these tools.
    pub fn new(tools: Arc<Tools>, options: &Options) -> Self {
        let markers = Markers::new(options.format.markers());
        let mode = first_mode(&markers, options);
        let Limits { undecided, call } = options.limits;
        let undecided = undecided.clamp(1, usize::MAX / 4);
        Self {
            tools,
            markers,
            limits: Limits { call: call.max(4 * undecided), undecided },
            mode,
            context: Context::default(),
            held: String::new(),
            letter: Vec::new(),
            calls: 0,
            just_called: false,
            thought_seen: false,
        }
    }

    /// Takes the next piece of text, cut anywhere, and tells what it adds.
    pub fn push(&mut self, piece: &str, sink: &mut Sink<'_>) {
        let mut rest = piece;
        while !self.held.is_empty() && !rest.is_empty() {
            // Only as much is copied as what is held can need.
            let cut = floor(rest, HELD);
            let mut joined = std::mem::take(&mut self.held);
            joined.push_str(&rest[..cut]);
            rest = &rest[cut..];
            let read = self.read(&joined, None, sink);
            let left = joined.len() - read;
            if left <= cut {
                // What is left is all of this piece: go on without a copy.
                rest = &piece[piece.len() - rest.len() - left..];
                break;
            }
            joined.drain(..read);
            self.held = joined;
        }
        if rest.is_empty() {
            return;
        }
        let read = self.read(rest, None, sink);
        self.held.push_str(&rest[read..]);
    }

    /// Tells what is left: nothing follows. What is held becomes text, an open call `Incomplete`.
    pub fn finish(&mut self, finish: Finish, sink: &mut Sink<'_>) {
        self.end_of_bytes(sink);
        let held = std::mem::take(&mut self.held);
        let read = self.read(&held, Some(finish), sink);
        self.flush(&held[read..], finish, sink);
    }

    /// Where the interceptor is after the last piece.
    pub fn state(&self) -> State {
        match &self.mode {
            Mode::Text | Mode::Section(_) | Mode::Header(_) | Mode::Message(_)
                if !self.held.is_empty() =>
            {
                State::MaybeToolStart
            }
            Mode::Text if self.just_called => State::AfterToolCall,
            Mode::Text | Mode::Data(_) => State::Narrative,
            Mode::Thought(_) | Mode::Pending(_) => State::Reasoning,
            Mode::Section(_) => State::AfterToolCall,
            Mode::Open(open) if open.is_decided() => State::InToolCall,
            Mode::Open(_) | Mode::Header(_) => State::MaybeToolStart,
            Mode::Message(body) if body.is_reasoning() => State::Reasoning,
            Mode::Message(_) => State::Narrative,
        }
    }

    /// Reads on until the rest is too short to decide about; gives how much was read.
    fn read(&mut self, input: &str, end: Option<Finish>, sink: &mut Sink<'_>) -> usize {
        let mut at = 0;
        let mut asked_at_end = false;
        while at < input.len() || end.is_some() && !asked_at_end {
            let rest = &input[at..];
            asked_at_end = rest.is_empty();
            let step = match &mut self.mode {
                Mode::Text => self.text(rest, end, sink),
                Mode::Thought(_) => self.thought(rest, end, sink),
                Mode::Pending(_) => self.pending(rest, end, sink),
                Mode::Section(_) => self.section(rest, end, sink),
                Mode::Open(_) => self.open(rest, end, sink),
                Mode::Data(_) => self.data(rest, sink),
                Mode::Header(_) => self.header(rest, end, sink),
                Mode::Message(_) => self.message(rest, end, sink),
            };
            at += step.read;
            if !step.again {
                break;
            }
        }
        at
    }

    /// Gives away what no more text will come for.
    fn flush(&mut self, rest: &str, finish: Finish, sink: &mut Sink<'_>) {
        match std::mem::replace(&mut self.mode, Mode::Text) {
            Mode::Text | Mode::Data(_) => self.show(rest, sink),
            Mode::Thought(_) => tell(rest, sink, Event::Reasoning),
            Mode::Pending(pending) if finish == Finish::Stop => {
                self.commit(*pending, sink);
                tell(rest, sink, Event::Frame);
            }
            Mode::Pending(pending) => {
                // The thought might have gone on.
                let Pending { open, behind } = *pending;
                self.cut(open, &(behind + rest), finish, sink);
            }
            Mode::Section(section) => section.end(rest, sink),
            Mode::Open(open) => self.cut(*open, rest, finish, sink),
            Mode::Header(header) => header.cut(rest, finish, sink),
            Mode::Message(body) => body.cut(rest, sink),
        }
    }

    /// Text for the reader.
    fn show(&mut self, text: &str, sink: &mut Sink<'_>) {
        if text.is_empty() {
            return;
        }
        self.context.push(text);
        self.just_called = self.just_called && text.trim().is_empty();
        sink(Event::Text(text));
    }
}

/// What one state did with its input.
#[derive(Debug, Clone, Copy)]
struct Progress {
    read: usize,
    /// Whether the rest can be read at once; otherwise it is too short to decide about.
    again: bool,
}

impl Progress {
    const fn on(read: usize) -> Self {
        Self { read, again: true }
    }

    const fn wait(read: usize) -> Self {
        Self { read, again: false }
    }
}

/// An event for text, unless there is none.
fn tell<'t>(text: &'t str, sink: &mut Sink<'_>, event: impl FnOnce(&'t str) -> Event<'t>) {
    if !text.is_empty() {
        sink(event(text));
    }
}

/// The greatest boundary between letters that is not past `at`.
fn floor(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// What the prompt leaves open.
fn first_mode(markers: &Markers, options: &Options) -> Mode {
    let prompt = options.prompt.as_deref().unwrap_or_default();
    let thought = markers.iter().find_map(|marker| match marker.mark {
        Mark::Think { ends, calls } => {
            let after = &prompt[prompt.rfind(marker.text)?..];
            let open = ends.iter().all(|end| !after.contains(end));
            open.then(|| Thought::new(markers, ends, calls))
        }
        Mark::StrayThinkEnd | Mark::Frame | Mark::Section { .. } | Mark::Call(_) | Mark::Header => {
            None
        }
    });
    match thought {
        Some(thought) => Mode::Thought(thought),
        None if options.format == Format::Harmony || prompt.ends_with("<|start|>assistant") => {
            Mode::Header(Header::begun())
        }
        None => Mode::Text,
    }
}
