//! Reading a model's thoughts, calls in thoughts, and lists of calls between markers of their own.

use super::markers::{Found, Markers};
use super::open::Open;
use super::{Interceptor, Mode, Progress, Sink, tell};
use crate::event::{Event, Finish};
use crate::format::{Lexing, Mark};
use crate::lexer::blank;

/// What stands between the calls of a section and is kept until it is clear whether one follows.
const NOISE: usize = 4096;

/// The model is thinking.
#[derive(Debug, Clone)]
pub(super) struct Thought {
    markers: Markers,
}

impl Thought {
    /// A thought up to one of `ends`. In some formats the model may forget the end before it calls.
    pub(super) fn new(markers: &Markers, ends: &[&'static str], calls: bool) -> Self {
        Self { markers: markers.within(ends, |mark| calls && is_marked_call(mark)) }
    }
}

/// Whether a mark begins a call that has markers of its own.
fn is_marked_call(mark: Mark) -> bool {
    match mark {
        Mark::Call(Lexing::Bare | Lexing::Fence | Lexing::Pythonic | Lexing::React) => false,
        Mark::Call(_) => true,
        Mark::Think { .. }
        | Mark::StrayThinkEnd
        | Mark::Frame
        | Mark::Section { .. }
        | Mark::Header => false,
    }
}

/// A complete call in a thought.
#[derive(Debug)]
pub(super) struct Pending {
    /// The call, its thought to go back to.
    pub(super) open: Open,
    /// What came behind it.
    pub(super) behind: String,
}

impl Pending {
    pub(super) fn new(open: Open) -> Self {
        Self { open, behind: String::new() }
    }
}

/// Calls in a list of their own.
#[derive(Debug)]
pub(super) struct Section {
    markers: Markers,
    /// Text that is no call.
    noise: String,
    called: bool,
}

impl Section {
    pub(super) fn new(markers: &Markers, end: &'static str) -> Self {
        Self {
            markers: markers.within(&[end], is_marked_call),
            noise: String::new(),
            called: false,
        }
    }

    /// Nothing follows, not even the section's end.
    pub(super) fn end(mut self, rest: &str, sink: &mut Sink<'_>) {
        self.noise.push_str(rest);
        self.release(true, sink);
    }

    /// Gives the noise away. At the end of a section without a call the reader has to see it.
    fn release(&mut self, last: bool, sink: &mut Sink<'_>) {
        let noise = std::mem::take(&mut self.noise);
        if last && !self.called && !noise.trim().is_empty() {
            sink(Event::Text(&noise));
        } else {
            tell(&noise, sink, Event::Frame);
        }
    }
}

impl Interceptor {
    pub(super) fn thought(
        &mut self,
        input: &str,
        end: Option<Finish>,
        sink: &mut Sink<'_>,
    ) -> Progress {
        let Mode::Thought(thought) = &self.mode else { return Progress::on(0) };
        let mut from = 0;
        while let Some(at) = thought.markers.next(input, from) {
            from = at + 1;
            let marker = match thought.markers.at(&input[at..], end.is_some(), |_| true) {
                Found::Nothing => continue,
                Found::Perhaps => {
                    tell(&input[..at], sink, Event::Reasoning);
                    return Progress::wait(at);
                }
                Found::Marker(marker) => marker,
            };
            tell(&input[..at], sink, Event::Reasoning);
            match marker.mark {
                Mark::Call(lexing) => {
                    let back = Mode::Thought(thought.clone());
                    self.mode = Mode::Open(Box::new(Open::new(marker.text, lexing, back)));
                }
                Mark::StrayThinkEnd
                | Mark::Think { .. }
                | Mark::Frame
                | Mark::Section { .. }
                | Mark::Header => {
                    tell(marker.text, sink, Event::Frame);
                    self.thought_seen = true;
                    self.context.reset();
                    self.mode = Mode::Text;
                }
            }
            return Progress::on(at + marker.text.len());
        }
        tell(input, sink, Event::Reasoning);
        Progress::wait(input.len())
    }

    /// A call in a thought counts when the thought does not go on behind it.
    pub(super) fn pending(
        &mut self,
        input: &str,
        end: Option<Finish>,
        sink: &mut Sink<'_>,
    ) -> Progress {
        let Mode::Pending(pending) = &mut self.mode else { return Progress::on(0) };
        let room = self.limits.call;
        let skipped = blank(input);
        pending.behind.push_str(&input[..skipped]);
        if skipped == input.len() && pending.behind.len() <= room {
            return Progress::wait(skipped);
        }
        match self.markers.at(&input[skipped..], end.is_some(), |_| true) {
            Found::Perhaps => return Progress::wait(skipped),
            Found::Marker(marker) if marker.mark == Mark::Frame && pending.behind.len() <= room => {
                pending.behind.push_str(marker.text);
                return Progress::on(skipped + marker.text.len());
            }
            Found::Marker(_) | Found::Nothing => {}
        }
        let goes_on = !matches!(
            self.markers.at(&input[skipped..], end.is_some(), |_| true),
            Found::Marker(marker) if is_marked_call(marker.mark)
        );
        if let Mode::Pending(pending) = std::mem::replace(&mut self.mode, Mode::Text) {
            if goes_on {
                tell(pending.open.tape(), sink, Event::Reasoning);
                tell(&pending.behind, sink, Event::Reasoning);
                self.mode = pending.open.back();
            } else {
                self.commit(*pending, sink);
            }
        }
        Progress::on(skipped)
    }

    /// The call was one, and the thought ended with it.
    pub(super) fn commit(&mut self, pending: Pending, sink: &mut Sink<'_>) {
        let Pending { open, behind } = pending;
        self.give(&open, sink);
        tell(&behind, sink, Event::Frame);
        self.mode = Mode::Text;
    }

    pub(super) fn section(
        &mut self,
        input: &str,
        end: Option<Finish>,
        sink: &mut Sink<'_>,
    ) -> Progress {
        let Mode::Section(mut section) = std::mem::replace(&mut self.mode, Mode::Text) else {
            return Progress::on(0);
        };
        let mut from = 0;
        while let Some(at) = section.markers.next(input, from) {
            from = at + 1;
            match section.markers.at(&input[at..], end.is_some(), |_| true) {
                Found::Nothing => {}
                Found::Perhaps => {
                    section.noise.push_str(&input[..at]);
                    self.mode = Mode::Section(section);
                    return Progress::wait(at);
                }
                Found::Marker(marker) => {
                    section.noise.push_str(&input[..at]);
                    if let Mark::Call(lexing) = marker.mark {
                        section.release(false, sink);
                        section.called = true;
                        self.mode = Mode::Open(Box::new(Open::new(
                            marker.text,
                            lexing,
                            Mode::Section(section),
                        )));
                    } else {
                        section.release(true, sink);
                        tell(marker.text, sink, Event::Frame);
                        self.context.reset();
                    }
                    return Progress::on(at + marker.text.len());
                }
            }
        }
        section.noise.push_str(input);
        if section.noise.len() > NOISE {
            if !section.called && !section.noise.trim().is_empty() {
                // Nobody lists calls here: what follows is for the reader.
                self.show(&section.noise, sink);
                return Progress::wait(input.len());
            }
            section.release(false, sink);
        }
        self.mode = Mode::Section(section);
        Progress::wait(input.len())
    }
}
