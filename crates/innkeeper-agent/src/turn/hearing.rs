//! What an answer says: text for the reader, calls, and what was meant as a call and is none.

use innkeeper_toolcall::event::{Event, Finish as Ended};
use innkeeper_toolcall::prompt::Attempt;
use innkeeper_toolcall::{Arguments, Call, End, Format, Interceptor, Options, Rejected, ladder};

use super::{Mechanism, Setup};
use crate::conversation::{Answer, Part, Said, ToolCall};
use crate::provider::{Finish, Response};

/// An answer, understood.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// What goes into the conversation: calls found in text stand as calls in it.
    pub(super) answer: Answer,
    /// What each call of the answer is, in their order.
    pub(super) calls: Vec<Made>,
    /// What in the text was meant as a call and is none.
    pub(super) problems: Vec<Attempt>,
}

/// A call of an answer.
#[derive(Debug)]
pub(super) struct Made {
    /// The call, or why it is none.
    pub(super) call: Result<Call, Rejected>,
    /// How it was made.
    pub(super) mechanism: Mechanism,
}

/// Understands an answer. In its text calls are looked for where it has none in the provider's form.
pub(super) fn hear(setup: &Setup, response: &Response, constrained: bool) -> Heard {
    let tools = &setup.tools;
    let said = response.answer.calls().count();
    let native = said > 0;
    let mut heard = Heard::default();
    let cut = is_cut(&response.finish);
    for part in &response.answer.parts {
        match &part.said {
            Said::Call(call) => {
                // Only the last one can be what the answer was cut in.
                let last = heard.calls.len() + 1 == said;
                let end = if cut && last { End::Cut } else { End::Complete };
                let call = ladder(tools, &call.name, Arguments::Text(&call.arguments), end);
                let mechanism = match &call {
                    Ok(call) if !call.repairs.is_empty() => Mechanism::Repaired,
                    Ok(_) | Err(_) => Mechanism::Native,
                };
                heard.calls.push(Made { call, mechanism });
                heard.answer.parts.push(part.clone());
            }
            Said::Text(text) if !native && !tools.is_empty() => {
                let ended = if cut { Ended::Length } else { Ended::Stop };
                heard.text(setup, part, text, ended, constrained);
            }
            Said::Text(_) | Said::Reasoning(_) | Said::Other => {
                heard.answer.parts.push(part.clone());
            }
        }
    }
    heard
}

/// Whether what the answer ends in may lack its end.
fn is_cut(finish: &Finish) -> bool {
    match finish {
        Finish::Length
        | Finish::ContextFull
        | Finish::Refused
        | Finish::Malformed
        | Finish::Other(_) => true,
        Finish::Stop | Finish::ToolCalls | Finish::Paused => false,
    }
}

impl Heard {
    /// Takes the calls out of a text.
    fn text(&mut self, setup: &Setup, part: &Part, text: &str, ended: Ended, constrained: bool) {
        let before = self.calls.len();
        // What a server is held to is plain JSON, whatever the model's own form is.
        let format = if constrained { Format::Detect } else { setup.format };
        let options = Options { format, ..Options::default() };
        let mut interceptor = Interceptor::new(setup.tools.clone(), &options);
        let mut parts = Parts::default();
        let mut take = |event: Event<'_>| self.take(setup, &mut parts, &event, constrained);
        interceptor.push(text, &mut take);
        interceptor.finish(ended, &mut take);
        let thinks = parts.0.iter().any(|part| matches!(part.said, Said::Reasoning(_)));
        if self.calls.len() == before && (!thinks || part.native.is_some()) {
            // As it came, word for word.
            self.answer.parts.push(part.clone());
        } else {
            self.answer.parts.extend(parts.0);
        }
    }

    fn take(&mut self, setup: &Setup, parts: &mut Parts, event: &Event<'_>, constrained: bool) {
        match event {
            Event::Text(text) => parts.say(Said::Text, text),
            Event::Reasoning(text) => parts.say(Said::Reasoning, text),
            Event::Frame(_) | Event::CallStart { .. } | Event::Arguments { .. } => {}
            Event::Call { call, .. } => {
                let arguments = call.arguments.to_string();
                let (id, name) = (String::new(), call.name.clone());
                parts.0.push(Part::new(Said::Call(ToolCall { id, name, arguments })));
                let mechanism = match (constrained, call.repairs.is_empty()) {
                    (true, _) => Mechanism::Constrained,
                    (false, true) => Mechanism::Recovered,
                    (false, false) => Mechanism::Repaired,
                };
                self.calls.push(Made { call: Ok((*call).clone()), mechanism });
            }
            Event::Rejected { rejected, text, .. } => {
                parts.say(Said::Text, text);
                self.problems.push(Attempt::new(setup.refusal(rejected)));
            }
            Event::Incomplete { text, .. } => {
                parts.say(Said::Text, text);
                self.problems.push(Attempt::new("the call ends before it is complete"));
            }
        }
    }
}

/// Parts of a text, pieces of one kind put together.
#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn say(&mut self, kind: fn(String) -> Said, piece: &str) {
        if piece.is_empty() {
            return;
        }
        match (self.0.last_mut().map(|part| &mut part.said), kind(String::new())) {
            (Some(Said::Text(text)), Said::Text(_))
            | (Some(Said::Reasoning(text)), Said::Reasoning(_)) => text.push_str(piece),
            _ => self.0.push(Part::new(kind(piece.to_owned()))),
        }
    }
}
