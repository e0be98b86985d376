//! One message of a person, from the question to the last answer, as a state that inputs drive.
//!
//! Nothing here waits, sends or looks at a clock. [`Turn::begin`] and each input give the next
//! [`Effect`]; whoever drives the turn brings it about and hands in what came of it. However a turn
//! ends, dropped in the middle included, the conversation can go on: every call in it has a result.

mod asking;
mod correction;
mod effect;
mod hearing;
mod setup;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_toolcall::prompt::Attempt;

use crate::conversation::{Conversation, Message, OutOfTurn, ToolResult};
use crate::provider::{Class, Finish, LlmError, Response};
use correction::{Correction, Next};
use hearing::{Heard, Made};

pub use asking::Way;
pub use effect::{Effect, Ended, Mechanism, Planned};
pub use setup::{Limits, Setup, ToolCalling};
pub use tally::{Lesson, Tally};

/// The longest wait a provider may ask for that is waited. Who says more means "not now".
pub const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// The first and the longest pause before a request that failed is sent again.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// How often a request is repeated that failed without a word of the provider.
const REPEATS: u32 = 2;

/// See the [module](self).
#[derive(Debug)]
pub struct Turn<'c> {
    setup: Arc<Setup>,
    conversation: &'c mut Conversation,
    way: Way,
    correction: Correction,
    /// What the model wrote in the attempts of this correction.
    written: Vec<String>,
    /// Whether the model has called a tool in the provider's form: then it knows them.
    calls_natively: bool,
    /// Calls in the provider's form that were none, in the last answer.
    misses: u32,
    retries_left: u32,
    failures: u32,
    running: Vec<(String, String, Option<ToolResult>)>,
    tally: Tally,
    lessons: Vec<Lesson>,
}

impl<'c> Turn<'c> {
    /// Begins with what the person says. Calls that were left open are closed.
    ///
    /// # Errors
    ///
    /// The message is too long to be kept.
    pub fn begin(
        setup: Arc<Setup>,
        conversation: &'c mut Conversation,
        message: &str,
    ) -> Result<(Self, Effect), OutOfTurn> {
        conversation.close(INTERRUPTED);
        conversation.user(message)?;
        let way = setup.first_way();
        let retries_left = setup.limits.retry_budget;
        let correction = Correction::first(&setup);
        let mut turn = Self {
            setup,
            conversation,
            way,
            correction,
            written: Vec::new(),
            calls_natively: false,
            misses: 0,
            retries_left,
            failures: 0,
            running: Vec::new(),
            tally: Tally { usage_is_whole: true, ..Tally::default() },
            lessons: Vec::new(),
        };
        let effect = turn.next_round();
        Ok((turn, effect))
    }

    /// How tools are called now.
    pub fn way(&self) -> Way {
        self.way
    }

    /// What it has come to so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// What there is to learn of it.
    pub fn lessons(&self) -> &[Lesson] {
        &self.lessons
    }

    /// The conversation as it is now.
    pub fn conversation(&self) -> &Conversation {
        self.conversation
    }

    /// The pause is over.
    pub fn resume(&mut self) -> Effect {
        self.ask()
    }

    /// The model answered. `chance`, from 0 to 1, varies the pauses.
    pub fn answered(&mut self, response: &Response, chance: f64) -> Effect {
        self.failures = 0;
        self.tally.answers += 1;
        match response.usage {
            Some(usage) => self.tally.usage = self.tally.usage.plus(usage),
            None => self.tally.usage_is_whole = false,
        }
        if self.way == Way::Native && self.dropped(response) {
            self.way = Way::Prompt;
            return Effect::Pause(Duration::ZERO);
        }
        let mut heard = hearing::hear(&self.setup, response, self.correction.constrained);
        if heard.calls.is_empty()
            && heard.problems.is_empty()
            && let Some(problem) = nothing_in(response)
        {
            heard.problems.push(Attempt::new(problem));
        }
        let native = response.answer.calls().next().is_some();
        self.calls_natively |= native;
        self.check(&mut heard, native);
        if let Some(problem) = merged(std::mem::take(&mut heard.problems)) {
            return self.again(problem, response.answer.shown(), chance);
        }
        if !heard.calls.is_empty() && !native {
            self.learn(response);
        }
        self.written.clear();
        self.take(heard, response)
    }

    /// The model gave no answer.
    pub fn failed(&mut self, mut error: LlmError, chance: f64) -> Effect {
        *self.tally.failures.entry(error.class.name()).or_default() += 1;
        if error.class == Class::NoTools && self.way == Way::Native && self.setup.may_prompt() {
            self.way = Way::Prompt;
            return Effect::Pause(Duration::ZERO);
        }
        if error.class == Class::Malformed {
            // The call may be in what the server could not read.
            let Some(written) = error.written.take() else {
                return self.again(Attempt::new(&*error.message), String::new(), chance);
            };
            let response = Response { finish: Finish::Malformed, ..Response::text(written) };
            return self.answered(&response, chance);
        }
        if matches!(error.class, Class::RateLimited { .. }) {
            // Nothing was sent.
            self.tally.requests -= 1;
        }
        if matches!(error.class, Class::Connection | Class::TimedOut | Class::Unreadable) {
            self.tally.usage_is_whole = false;
        }
        let after = error.class.wait();
        let waits = after.is_none_or(|after| after <= LONGEST_WAIT);
        // What is not there, or does not answer, rarely comes about by asking.
        let most = match matches!(error.class, Class::Later { .. }) {
            true => self.retries_left,
            false => REPEATS.saturating_sub(self.failures).min(self.retries_left),
        };
        if !error.class.may_be_repeated() || !waits || most == 0 {
            return Effect::End(Ended::Failed(error));
        }
        let own = correction::pause(FIRST_PAUSE, self.failures, chance).min(LONGEST_PAUSE);
        self.failures += 1;
        self.retries_left -= 1;
        self.tally.repeated += 1;
        Effect::Pause(after.unwrap_or_default().max(own))
    }

    /// A call has run, or was refused: what the model is told of it.
    pub fn ran(&mut self, id: &str, text: String, is_error: bool) -> Effect {
        let open = self.running.iter_mut().find(|(own, _, result)| own == id && result.is_none());
        let Some((id, name, result)) = open else { return Effect::Wait };
        let (id, name) = (id.clone(), name.clone());
        *result = Some(ToolResult { id, name, text, is_error });
        if self.running.iter().any(|(_, _, result)| result.is_none()) {
            return Effect::Wait;
        }
        self.settle(INTERRUPTED);
        self.next_round()
    }

    /// Takes up an answer without problems.
    fn take(&mut self, heard: Heard, response: &Response) -> Effect {
        let Heard { answer, calls, .. } = heard;
        let retries = self.correction.attempts.len() as u32 + self.misses;
        let constrained = self.correction.constrained;
        self.correction = Correction::default();
        self.misses = 0;
        let reasoning = match answer.reasoning() {
            thought if thought.is_empty() => answer.shown(),
            thought => thought,
        };
        // The turn closes what it opens, so that nothing is open here.
        if self.conversation.answer(answer).is_err() {
            return Effect::End(Ended::Unasked { reason: "a call is open".to_owned() });
        }
        if calls.is_empty() {
            return match response.finish {
                Finish::Length | Finish::ContextFull => Effect::End(Ended::Cut),
                Finish::Refused => Effect::End(Ended::Refused),
                Finish::Paused => self.next_round(),
                Finish::Stop | Finish::ToolCalls | Finish::Malformed | Finish::Other(_) => {
                    Effect::End(Ended::Answered)
                }
            };
        }
        let ids: Vec<(String, String)> =
            self.conversation.open_calls().map(|it| (it.id.clone(), it.name.clone())).collect();
        let too_many = calls.len() > self.setup.limits.max_calls;
        let refused_whole = response.finish == Finish::Refused;
        let mut planned = Vec::new();
        for ((id, name), Made { call, mechanism }) in ids.into_iter().zip(calls) {
            let fits = call.map_err(|rejected| self.setup.refusal(&rejected)).and_then(|call| {
                let problems = self.setup.kept_out(&call).or_else(|| self.setup.violations(&call));
                problems.map_or(Ok(call), Err)
            });
            let refused = match fits {
                Ok(_) if refused_whole => Some(DECLINED.to_owned()),
                Ok(_) if too_many => Some(self.setup.too_many()),
                Ok(call) => {
                    let mechanism =
                        if retries > 0 && !constrained { Mechanism::Corrected } else { mechanism };
                    let (id, reasoning) = (id.clone(), reasoning.clone());
                    planned.push(Planned { id, call, mechanism, retries, reasoning });
                    None
                }
                Err(why) => Some(why),
            };
            let result = refused.map(|text| {
                self.misses += 1;
                ToolResult { id: id.clone(), name: name.clone(), text, is_error: true }
            });
            self.running.push((id, name, result));
        }
        if refused_whole {
            self.settle(DECLINED);
            return Effect::End(Ended::Refused);
        }
        if planned.is_empty() {
            self.settle(INTERRUPTED);
            return self.next_round();
        }
        Effect::Run(planned)
    }

    /// Calls that were found in text are all run or none: what is wrong with one is a problem of the
    /// answer. One in the provider's own form is answered by itself.
    fn check(&self, heard: &mut Heard, native: bool) {
        if native {
            return;
        }
        for made in &heard.calls {
            if let Ok(call) = &made.call
                && let Some(problem) =
                    self.setup.kept_out(call).or_else(|| self.setup.violations(call))
            {
                heard.problems.push(Attempt::new(problem));
            }
        }
        if heard.calls.len() > self.setup.limits.max_calls {
            heard.problems.push(Attempt::new(self.setup.too_many()));
        }
    }

    /// Asks again after an answer that was no call, if that may help.
    fn again(&mut self, problem: Attempt, written: String, chance: f64) -> Effect {
        self.written.push(written);
        let next = if self.retries_left == 0 {
            self.correction.attempts.push(problem);
            Next::GiveUp
        } else {
            self.correction.failed(&self.setup, problem, chance)
        };
        match next {
            Next::Again(pause) => {
                self.retries_left -= 1;
                self.tally.corrections += 1;
                Effect::Pause(pause)
            }
            Next::Constrain => {
                self.retries_left -= 1;
                self.tally.corrections += 1;
                self.correction.constrained = true;
                Effect::Pause(Duration::ZERO)
            }
            Next::GiveUp => {
                let attempts = std::mem::take(&mut self.correction.attempts);
                Effect::End(Ended::NoCall { attempts })
            }
        }
    }

    fn learn(&mut self, response: &Response) {
        let written = std::mem::take(&mut self.written);
        let problems = self.correction.attempts.iter().map(|attempt| attempt.problem.clone());
        let attempts: Vec<_> = written.into_iter().zip(problems).collect();
        if !attempts.is_empty() {
            let asked =
                self.conversation.messages().iter().rev().find_map(|message| match message {
                    Message::User(text) => Some(text.to_string()),
                    Message::Answer(_) | Message::Results(_) => None,
                });
            let (asked, corrected) = (asked.unwrap_or_default(), response.answer.shown());
            self.lessons.push(Lesson { asked, attempts, corrected });
        }
    }

    /// Whether the server read so little that the tools cannot have been in it.
    fn dropped(&self, response: &Response) -> bool {
        let read = response.usage.map(|usage| usage.prompt_tokens);
        let least = asking::weight(&self.setup.tools) as u64 / 2;
        self.setup.capabilities.may_drop_tools
            && !self.calls_natively
            && response.answer.calls().next().is_none()
            && least > LEAST_TOLD
            && read.is_some_and(|read| read > 0 && read < least)
            && self.setup.may_prompt()
    }

    fn next_round(&mut self) -> Effect {
        if self.tally.iterations >= self.setup.limits.max_iterations {
            return Effect::End(Ended::OutOfRounds);
        }
        self.tally.iterations += 1;
        self.ask()
    }

    fn ask(&mut self) -> Effect {
        let way = if self.correction.constrained { Way::Prompt } else { self.way };
        let attempts = &self.correction.attempts;
        match asking::request(&self.setup, self.conversation, way, attempts) {
            Ok(mut request) => {
                request.temperature = self.correction.temperature(&self.setup);
                if self.correction.constrained {
                    request.constraint = self.setup.constraint();
                    request.messages.splice(..0, asking::worked(&self.setup));
                }
                self.tally.requests += 1;
                Effect::Ask(Box::new(request))
            }
            Err(error) => Effect::End(Ended::Unasked { reason: error.to_string() }),
        }
    }

    /// Puts the results of the calls into the conversation; `why` stands for those that are missing.
    fn settle(&mut self, why: &str) {
        let results = std::mem::take(&mut self.running).into_iter().map(|(id, name, result)| {
            let missing = || ToolResult { id, name, text: why.to_owned(), is_error: true };
            result.unwrap_or_else(missing)
        });
        if self.conversation.results(results.collect()).is_err() {
            self.conversation.close(why);
        }
    }
}

/// Who drives the turn went away.
impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.settle(INTERRUPTED);
    }
}

/// What the model is told of a call whose end nobody waited for.
const INTERRUPTED: &str = "interrupted: it is not known whether this ran to its end";

/// What the model is told of a call in an answer that was declined.
const DECLINED: &str = "not run: the answer was declined";

/// Below so many tokens of tools it cannot be told whether they were dropped.
const LEAST_TOLD: u64 = 20;

/// What is wrong with an answer in which nothing was said or called.
fn nothing_in(response: &Response) -> Option<&'static str> {
    let says = !response.answer.shown().trim().is_empty();
    match response.finish {
        Finish::Malformed => Some("the call could not be read"),
        Finish::ToolCalls => Some("a call was announced and is not there"),
        Finish::Stop | Finish::Other(_) if !says => Some("the answer is empty"),
        Finish::Stop
        | Finish::Other(_)
        | Finish::Length
        | Finish::ContextFull
        | Finish::Refused
        | Finish::Paused => None,
    }
}

/// All problems of one answer as one.
fn merged(problems: Vec<Attempt>) -> Option<Attempt> {
    let texts: Vec<_> = problems.into_iter().map(|problem| problem.problem).collect();
    (!texts.is_empty()).then(|| Attempt::new(texts.join("; ")))
}
