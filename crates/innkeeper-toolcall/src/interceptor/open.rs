//! One call that has begun and not ended.

use super::thought::Pending;
use super::{Interceptor, Mode, Progress, Sink, floor, tell};
use crate::call::{Reason, Rejected, ladder};
use crate::event::{Event, Finish, Incomplete};
use crate::format::Lexing;
use crate::lexer::fence::FENCE;
use crate::lexer::{Data, Lexer, Notes, Said, Step, lexer};
use crate::parse::End;
use crate::resolve::resolve;

/// How much of what is undecided is read at once, in bytes: more than any look ahead.
const WINDOW: usize = 2048;

/// The call with all its text.
pub(super) struct Open {
    lexer: Box<dyn Lexer>,
    lexing: Option<Lexing>,
    /// Everything from the marker on.
    tape: String,
    /// How long the marker is.
    marker: usize,
    /// Where the text goes on behind it.
    back: Mode,
    /// Its index, if its beginning was told.
    index: Option<usize>,
    /// The tool it names.
    name: Option<String>,
    decided: bool,
    /// Whether it was longer than the limit: its rest is text.
    drained: bool,
    end: End,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Open")
            .field("lexing", &self.lexing)
            .field("tape", &self.tape)
            .finish_non_exhaustive()
    }
}

impl Open {
    pub(super) fn new(marker: &str, lexing: Lexing, back: Mode) -> Self {
        Self::with(lexer(lexing), Some(lexing), marker, back)
    }

    /// A call whose lexer is made already; `tape` is what was read of it.
    pub(super) fn with(
        lexer: Box<dyn Lexer>,
        lexing: Option<Lexing>,
        tape: &str,
        back: Mode,
    ) -> Self {
        Self {
            lexer,
            lexing,
            tape: tape.to_owned(),
            marker: tape.len(),
            back,
            index: None,
            name: None,
            decided: false,
            drained: false,
            end: End::Complete,
        }
    }

    pub(super) fn is_decided(&self) -> bool {
        self.decided
    }

    pub(super) fn tape(&self) -> &str {
        &self.tape
    }

    pub(super) fn back(self) -> Mode {
        self.back
    }

    /// Whether prose can look like the beginning of such a call.
    fn is_weak(&self) -> bool {
        matches!(self.lexing, Some(Lexing::Bare | Lexing::Fence | Lexing::Pythonic | Lexing::React))
    }

    fn in_thought(&self) -> bool {
        matches!(self.back, Mode::Thought(_))
    }

    fn body(&self) -> &str {
        self.tape.get(self.marker..).unwrap_or_default()
    }

    /// The end of `input`'s part that may be kept before the call has named an offered tool.
    fn undecided_end(&self, input: &str, limit: usize) -> Option<usize> {
        let room = limit.saturating_sub(self.tape.chars().count());
        input.char_indices().nth(room).map(|(at, _)| at)
    }
}

impl Interceptor {
    pub(super) fn open(
        &mut self,
        input: &str,
        end: Option<Finish>,
        sink: &mut Sink<'_>,
    ) -> Progress {
        let Mode::Open(mut open) = std::mem::replace(&mut self.mode, Mode::Text) else {
            return Progress::on(0);
        };
        let mut notes = Notes::default();
        // What is undecided is read a little at a time: most of it would be read again.
        let undecided = open.is_weak() && !open.decided;
        let room = if undecided { WINDOW.max(4 * self.limits.undecided) } else { input.len() };
        let window = floor(input, room);
        let (input, end, clipped) =
            (&input[..window], end.filter(|_| window == input.len()), window < input.len());
        let step = open.lexer.read(input, end, &mut notes);
        let read = match step {
            Step::More { held } => input.len() - held,
            Step::Done { used } | Step::Fail { used } => used,
        };
        if undecided {
            let limit = open.undecided_end(input, self.limits.undecided);
            let named =
                notes.name.as_ref().is_some_and(|name| resolve(&self.tools, name).is_some());
            let until = if named { notes.at } else { read };
            if let Some(cut) = limit.filter(|cut| *cut < until) {
                let text = open.tape.clone() + &input[..cut];
                let data = text.starts_with(['{', '[']).then(|| Data::behind(&text)).flatten();
                let progress = self.release(*open, &input[..cut], cut, sink);
                if let Some(data) = data {
                    self.mode = Mode::Data(data);
                }
                return progress;
            }
        }
        let room = self.limits.call.saturating_sub(open.tape.len());
        let kept = if read > room { floor(input, room) } else { read };
        if notes.at <= kept {
            self.name(&mut open, &notes, sink);
        }
        if open.drained {
            self.let_out(&open, &input[..read], sink);
        } else {
            if let (Some(index), Some(part)) = (open.index, notes.fragment) {
                let fragment = part.start..part.end.min(kept);
                tell(input.get(fragment).unwrap_or_default(), sink, |fragment| Event::Arguments {
                    index,
                    fragment,
                });
            }
            open.tape.push_str(&input[..kept]);
            if kept < read {
                self.overflow(&mut open, sink);
                self.let_out(&open, &input[kept..read], sink);
            }
        }
        match step {
            Step::More { .. } => {
                self.mode = Mode::Open(open);
                if clipped { Progress::on(read) } else { Progress::wait(read) }
            }
            Step::Done { .. } => {
                self.done(*open, sink);
                Progress::on(read)
            }
            Step::Fail { .. } => {
                let data = open.lexer.data();
                let progress = self.release(*open, "", read, sink);
                if let Some(data) = data {
                    self.mode = Mode::Data(data);
                }
                progress
            }
        }
    }

    /// The call has named its tool.
    fn name(&mut self, open: &mut Open, notes: &Notes, sink: &mut Sink<'_>) {
        let Some(said) = &notes.name else { return };
        let tools = std::sync::Arc::clone(&self.tools);
        let Some(found) = resolve(&tools, said) else {
            open.name = Some(said.clone());
            return;
        };
        open.decided = true;
        open.name = Some(found.tool.name.clone());
        if !notes.listed && !open.in_thought() && !open.drained && open.index.is_none() {
            let index = self.calls;
            self.calls += 1;
            open.index = Some(index);
            sink(Event::CallStart { index, name: &found.tool.name });
        }
    }

    /// Text that is no call, wherever it stands.
    fn let_out(&mut self, open: &Open, text: &str, sink: &mut Sink<'_>) {
        if open.in_thought() {
            tell(text, sink, Event::Reasoning);
        } else {
            self.show(text, sink);
        }
    }

    /// The call is longer than is kept.
    fn overflow(&mut self, open: &mut Open, sink: &mut Sink<'_>) {
        let text = std::mem::take(&mut open.tape);
        open.drained = true;
        if open.in_thought() {
            tell(&text, sink, Event::Reasoning);
            return;
        }
        let limit = self.limits.call;
        let rejected = rejected(open, Reason::TooLong(limit));
        sink(Event::Rejected { index: open.index, rejected: &rejected, text: &text });
        self.context.push(&text);
    }

    /// What was read is no call; `more` belongs to it, and `read` bytes of the input are done with.
    fn release(
        &mut self,
        mut open: Open,
        more: &str,
        read: usize,
        sink: &mut Sink<'_>,
    ) -> Progress {
        open.tape.push_str(more);
        // A block of which only a part is a call is an example of one.
        let example = open.lexing == Some(Lexing::Fence);
        let meant = open.lexer.meant() && (open.decided || !open.is_weak()) && !example;
        let meant = meant || open.index.is_some();
        let ticks = open.tape.lines().filter(|line| line.trim_start().starts_with(FENCE)).count();
        if open.drained {
        } else if meant && !open.in_thought() {
            let rejected =
                rejected(&open, Reason::Form("it does not go on as a call does".to_owned()));
            sink(Event::Rejected { index: open.index, rejected: &rejected, text: &open.tape });
            self.context.push(&open.tape);
        } else {
            let text = std::mem::take(&mut open.tape);
            self.let_out(&open, &text, sink);
        }
        if example {
            self.context.in_fence = ticks % 2 == 1;
        }
        self.mode = open.back;
        Progress::on(read)
    }

    fn done(&mut self, open: Open, sink: &mut Sink<'_>) {
        if open.drained {
            self.mode = open.back;
        } else if open.in_thought() {
            self.mode = Mode::Pending(Box::new(Pending::new(open)));
        } else {
            self.give(&open, sink);
            self.mode = open.back;
        }
    }

    /// Tells what a complete call says.
    pub(super) fn give(&mut self, open: &Open, sink: &mut Sink<'_>) {
        let said = match open.lexer.calls(open.body(), open.end) {
            Ok(said) if said.is_empty() && open.is_weak() => return self.show(&open.tape, sink),
            Ok(said) if said.is_empty() => Err(Reason::Form("there is no call in it".to_owned())),
            Err(_) if open.is_weak() && !open.decided => return self.show(&open.tape, sink),
            other => other,
        };
        self.context.reset();
        let said = match said {
            Ok(said) => said,
            Err(reason) => {
                let rejected = rejected(open, reason);
                return sink(Event::Rejected {
                    index: open.index,
                    rejected: &rejected,
                    text: &open.tape,
                });
            }
        };
        let mut index = open.index;
        let mut text = open.tape.as_str();
        for said in said {
            let call = ladder(&self.tools, &said.name, said.arguments, open.end);
            match call {
                Ok(mut call) => {
                    call.repairs.splice(0..0, said.repairs);
                    let index = index.take().unwrap_or_else(|| {
                        self.calls += 1;
                        self.calls - 1
                    });
                    self.just_called = true;
                    sink(Event::Call { index, call: &call, text });
                }
                Err(rejected) => {
                    sink(Event::Rejected { index: index.take(), rejected: &rejected, text });
                }
            }
            text = "";
        }
    }

    /// The text ends in the call.
    pub(super) fn cut(&mut self, mut open: Open, rest: &str, finish: Finish, sink: &mut Sink<'_>) {
        if open.drained {
            return self.let_out(&open, rest, sink);
        }
        let whole = open.tape.len() + rest.len() <= self.limits.call;
        if finish == Finish::Stop && open.decided && whole && open.lexer.stopped(rest.len()) {
            open.end = End::Stopped;
            let text = open.tape.clone() + rest;
            let said = open.lexer.calls(text.get(open.marker..).unwrap_or_default(), open.end);
            let call =
                |said: Said<'_>| ladder(&self.tools, &said.name, said.arguments, End::Stopped);
            if said.is_ok_and(|said| said.into_iter().all(|said| call(said).is_ok())) {
                open.tape = text;
                return self.give(&open, sink);
            }
        }
        open.tape.push_str(rest);
        if open.is_weak() && !open.decided {
            return self.show(&open.tape, sink);
        }
        let reason = match finish {
            Finish::Stop => Incomplete::Stopped,
            Finish::Length => Incomplete::Length,
            Finish::Interrupted => Incomplete::Interrupted,
        };
        sink(Event::Incomplete { index: open.index, reason, text: &open.tape });
    }
}

fn rejected(open: &Open, reason: Reason) -> Rejected {
    Rejected { name: open.name.clone().unwrap_or_default(), reason, suggestions: Vec::new() }
}
