//! Reading text for the reader: everything but markers goes through.

use super::markers::Found;
use super::open::Open;
use super::thought::{Section, Thought};
use super::{Interceptor, Mode, Progress, Sink, floor, harmony, tell};
use crate::event::{Event, Finish};
use crate::format::{Lexing, Mark, Marker};

impl Interceptor {
    pub(super) fn text(
        &mut self,
        input: &str,
        end: Option<Finish>,
        sink: &mut Sink<'_>,
    ) -> Progress {
        let mut from = 0;
        while let Some(at) = self.markers.next(input, from) {
            from = at + 1;
            let fresh = &input[..at];
            let matters = |marker| self.counts(marker, fresh) || self.closes_fence(marker, fresh);
            match self.markers.at(&input[at..], end.is_some(), matters) {
                Found::Nothing => {}
                Found::Perhaps => {
                    self.show(fresh, sink);
                    return Progress::wait(at);
                }
                Found::Marker(marker) if self.closes_fence(marker, fresh) => {
                    self.context.in_fence = false;
                    from = at + marker.text.len();
                }
                Found::Marker(marker) => {
                    self.show(fresh, sink);
                    return Progress::on(at + self.begin(marker, sink));
                }
            }
        }
        self.show(input, sink);
        Progress::wait(input.len())
    }

    /// Nothing in JSON that is no call is one.
    pub(super) fn data(&mut self, input: &str, sink: &mut Sink<'_>) -> Progress {
        let Mode::Data(data) = &mut self.mode else { return Progress::on(0) };
        let window = &input[..floor(input, data.room())];
        let (read, ended) = data.read(window);
        let ended = ended || window.is_empty();
        if ended {
            self.mode = Mode::Text;
        }
        self.show(&input[..read], sink);
        if ended || read < input.len() { Progress::on(read) } else { Progress::wait(read) }
    }

    /// Whether a marker means something where it stands. `fresh` is text before it that has not
    /// been shown yet.
    fn counts(&self, marker: Marker, fresh: &str) -> bool {
        if !marker.plain {
            return true;
        }
        if self.context.in_fence || self.tools.is_empty() && matches!(marker.mark, Mark::Call(_)) {
            return false;
        }
        let quoted = || self.context.in_code(fresh) || self.context.in_quotes(fresh);
        match marker.mark {
            Mark::Call(Lexing::Fence) => self.context.begins_block(fresh),
            Mark::Call(Lexing::React) | Mark::Think { .. } => self.context.begins_line(fresh),
            Mark::StrayThinkEnd => !self.thought_seen && !quoted(),
            Mark::Call(_) | Mark::Frame | Mark::Section { .. } | Mark::Header => !quoted(),
        }
    }

    /// Whether a block that is no call ends here.
    fn closes_fence(&self, marker: Marker, fresh: &str) -> bool {
        let fence = marker.mark == Mark::Call(Lexing::Fence);
        fence && self.context.in_fence && self.context.begins_block(fresh)
    }

    /// What the marker says begins; gives how much of the text that has read.
    fn begin(&mut self, marker: Marker, sink: &mut Sink<'_>) -> usize {
        match marker.mark {
            Mark::Think { ends, calls } => {
                tell(marker.text, sink, Event::Frame);
                self.mode = Mode::Thought(Thought::new(&self.markers, ends, calls));
            }
            Mark::StrayThinkEnd | Mark::Frame => {
                self.thought_seen |= marker.mark == Mark::StrayThinkEnd;
                tell(marker.text, sink, Event::Frame);
                // What surrounds it still surrounds what follows.
                return marker.text.len();
            }
            Mark::Section { end } => {
                tell(marker.text, sink, Event::Frame);
                self.mode = Mode::Section(Section::new(&self.markers, end));
            }
            Mark::Call(lexing) => {
                let read = if lexing.reads_marker() { "" } else { marker.text };
                self.mode = Mode::Open(Box::new(Open::new(read, lexing, Mode::Text)));
                return read.len();
            }
            Mark::Header => self.mode = Mode::Header(harmony::Header::from(marker.text)),
        }
        self.context.reset();
        marker.text.len()
    }
}
