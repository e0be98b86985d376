//! A world in which everything that can happen to a conversation happens, and is looked at.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use innkeeper_toolcall::Tools;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::drawn::{ARGUMENTS, Draw, IDS, Move, Step, TEXTS, class, models, offered};
use super::spoken::{Bit, Ending, Marks, body, marks};
use super::valid::valid;
use crate::agent::{Agent, Settings};
use crate::conversation::{Budget, Conversation, Message, Part, Said};
use crate::provider::codec::{self, Asking};
use crate::provider::offer::Offer;
use crate::provider::{Capabilities, LlmError, LlmProvider, Request, Response, Wire};
use crate::tools::{Offered, Output, RunError, Running, ToolRunner};
use crate::turn::{Ended, Limits, ToolCalling};

/// What was come through, so that nothing is proved of nothing.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) counts: HashMap<String, usize>,
}

impl Seen {
    fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (what, count) in &other.counts {
            *self.counts.entry(what.clone()).or_default() += count;
        }
    }
}

pub(super) fn is_covered(seen: &Seen) -> bool {
    let ends = ["answered", "cut", "refused", "rounds", "no call", "failed", "dropped"];
    let wires = Wire::ALL.map(|wire| format!("{wire:?} native"));
    let has = |what: &str| seen.counts.get(what).is_some_and(|count| *count >= 3);
    ends.into_iter().all(has) && wires.iter().all(|wire| has(wire)) && has("trimmed")
}

pub(super) struct World {
    settings: Settings,
    shared: Arc<Shared>,
}

struct Shared(Mutex<State>);

struct State {
    wire: Wire,
    model: &'static str,
    offered: Vec<Offered>,
    moves: VecDeque<Move>,
    outcomes: VecDeque<usize>,
    marks: Marks,
    ids: usize,
    /// Offers of one list of tools.
    offers: HashMap<(Wire, bool), (Arc<Tools>, Arc<Offer>)>,
    faults: Vec<String>,
    seen: Seen,
}

impl State {
    fn offer(&mut self, tools: &Arc<Tools>, wire: Wire, strict: bool) -> Arc<Offer> {
        match self.offers.get(&(wire, strict)) {
            Some((of, offer)) if Arc::ptr_eq(of, tools) => offer.clone(),
            Some(_) | None => {
                let offer = Arc::new(Offer::new(tools.clone(), wire, strict));
                self.offers.insert((wire, strict), (tools.clone(), offer.clone()));
                offer
            }
        }
    }

    /// Looks at what would be sent to a model.
    fn look(&mut self, request: &Request, wire: Wire, model: &'static str, paused: bool) {
        let can = Capabilities::of(wire, model);
        let offer = self.offer(&request.tools, wire, can.strict_tools);
        let asking = Asking { request, offer: &offer, model, can: &can, streaming: false };
        let sent = match codec::encode(wire, asking) {
            Ok(outgoing) => String::from_utf8(outgoing.body).unwrap(),
            Err(fault) => return self.faults.push(format!("{wire:?}: {fault:?}")),
        };
        let mut parsed: Value = serde_json::from_str(&sent).unwrap();
        parsed["signs"] = json!(can.sends.signatures);
        if let Err(why) = valid(wire, &parsed, paused) {
            self.faults.push(format!("{wire:?} {model}: {why}\nin {sent}"));
        }
        let natives = natives(request, wire, model);
        let wanted: Vec<_> = natives.iter().flat_map(|native| marks(native)).collect();
        if wanted != marks(&sent) {
            let found = marks(&sent);
            self.faults.push(format!("{wire:?} {model}: {found:?} are not {wanted:?}\nin {sent}"));
        }
        let mut from = 0;
        for native in &natives {
            match sent[from..].find(native.as_str()) {
                Some(at) => from += at + native.len(),
                None => self.faults.push(format!("{wire:?} {model}: {native} is not in {sent}")),
            }
        }
        if !natives.is_empty() {
            self.seen.count(format!("{wire:?} native"));
        }
    }
}

/// The model's own words that have to go back, each in the form in which it goes.
fn natives(request: &Request, wire: Wire, model: &str) -> Vec<String> {
    let mut found = Vec::new();
    for message in &request.messages {
        let Message::Answer(answer) = message else { continue };
        // A thought that nothing follows is refused, and Ollama's message of a thought alone is none.
        let last = answer.parts.iter().rposition(|part| follows(wire, part));
        let ends = match wire {
            Wire::OpenAiResponses | Wire::Anthropic | Wire::Ollama => last.map_or(0, |it| it + 1),
            Wire::OpenAiChat | Wire::GeminiGenerate | Wire::GeminiInteractions => {
                answer.parts.len()
            }
        };
        for part in &answer.parts[..ends] {
            let native = part.native.as_ref().and_then(|it| it.for_model(wire, model));
            let Some(native) = native else { continue };
            match (wire, &part.said) {
                // Their members stand in the message itself.
                (Wire::OpenAiChat | Wire::Ollama, Said::Reasoning(_)) => {
                    let members: HashMap<String, Box<serde_json::value::RawValue>> =
                        serde_json::from_str(native.get()).unwrap();
                    found.extend(members.values().map(|it| it.get().to_owned()));
                }
                _ => found.push(native.get().to_owned()),
            }
        }
    }
    found
}

fn follows(wire: Wire, part: &Part) -> bool {
    match &part.said {
        Said::Reasoning(_) => false,
        Said::Text(text) if wire == Wire::OpenAiResponses => {
            part.native.is_some() || !text.is_empty()
        }
        Said::Text(text) if wire == Wire::Ollama => !text.is_empty(),
        Said::Text(text) => !text.trim().is_empty(),
        Said::Call(_) | Said::Other => true,
    }
}

impl World {
    pub(super) fn new(wire: usize, calling: usize, budget: usize) -> Self {
        let wire = Wire::ALL[wire];
        let calling = [ToolCalling::Auto, ToolCalling::Native, ToolCalling::Prompt][calling];
        let settings = Settings {
            calling,
            budget: Some(Budget { tokens: budget }),
            limits: Limits { max_iterations: 5, max_calls: 4, retry_budget: 4 },
            max_retries: 2,
            system: "Be brief.".to_owned(),
            ..Settings::default()
        };
        let state = State {
            wire,
            model: models(wire)[0],
            offered: offered(&[(0, false), (1, true), (5, false)]),
            moves: VecDeque::new(),
            outcomes: VecDeque::new(),
            marks: Marks(0),
            ids: 0,
            offers: HashMap::new(),
            faults: Vec::new(),
            seen: Seen::default(),
        };
        Self { settings, shared: Arc::new(Shared(Mutex::new(state))) }
    }

    /// What is wrong after the course.
    pub(super) fn go(&self, course: &[Step]) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let mut agent = Agent::new(self.shared.clone(), self.shared.clone(), self.settings.clone());
        for step in course {
            runtime.block_on(self.step(&mut agent, step));
            self.look(agent.conversation());
            let state = self.shared.0.lock().unwrap();
            if !state.faults.is_empty() {
                return state.faults.clone();
            }
        }
        Vec::new()
    }

    pub(super) fn seen(&self) -> Seen {
        std::mem::take(&mut self.shared.0.lock().unwrap().seen)
    }

    async fn step(&self, agent: &mut Agent, step: &Step) {
        match step {
            Step::Clear => agent.clear(),
            Step::Tools(tools) => self.shared.0.lock().unwrap().offered = offered(tools),
            Step::Switch(wire, model) => {
                let mut state = self.shared.0.lock().unwrap();
                state.wire = Wire::ALL[*wire];
                state.model = models(state.wire)[*model];
            }
            Step::Say { streaming, polls, moves, outcomes } => {
                {
                    let mut state = self.shared.0.lock().unwrap();
                    state.moves = moves.iter().cloned().collect();
                    state.outcomes = outcomes.iter().copied().collect();
                }
                let before = agent.conversation().messages().len();
                let report = if *streaming {
                    polled(agent.run_streaming("And now?", |_| {}), *polls).await
                } else {
                    polled(agent.run("And now?"), *polls).await
                };
                let mut state = self.shared.0.lock().unwrap();
                let said = agent.conversation().messages().len() > before;
                if !said && *polls != Some(0) {
                    state.faults.push("what the person said is lost".to_owned());
                }
                let end = match report.map(|report| report.ended) {
                    None => "dropped",
                    Some(Ended::Answered) => "answered",
                    Some(Ended::Cut) => "cut",
                    Some(Ended::Refused) => "refused",
                    Some(Ended::OutOfRounds) => "rounds",
                    Some(Ended::NoCall { .. }) => "no call",
                    Some(Ended::Failed(_)) => "failed",
                    Some(Ended::Unasked { reason }) => {
                        state.faults.push(reason);
                        "unasked"
                    }
                };
                state.seen.count(end);
            }
        }
    }

    /// Looks at the conversation as it stands, and as each wire would get it, whole and cut.
    fn look(&self, conversation: &Conversation) {
        let mut state = self.shared.0.lock().unwrap();
        let messages = conversation.messages();
        if let Err(why) = paired(messages) {
            state.faults.push(why);
        }
        let tools: Tools = state.offered.iter().map(|it| it.tool.clone()).collect();
        let tools = Arc::new(tools);
        let mut whole = messages.to_vec();
        whole.push(Message::User("Go on.".into()));
        for tokens in [30, 150, 600, 1_000_000] {
            let messages = Budget { tokens }.fit(&whole, 0);
            if messages.len() < whole.len() {
                state.seen.count("trimmed");
            }
            let request = Request { messages, tools: tools.clone(), ..Request::default() };
            for wire in Wire::ALL {
                state.look(&request, wire, models(wire)[tokens % 4 / 2], false);
            }
        }
    }
}

/// Every call has exactly one result, directly behind its answer.
fn paired(messages: &[Message]) -> Result<(), String> {
    let mut ids = std::collections::HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::Results(results) => {
                let answered: Vec<_> = results.iter().map(|it| it.id.as_str()).collect();
                if answered.is_empty() || answered != open {
                    return Err(format!("results {answered:?} behind {open:?}"));
                }
                open.clear();
            }
            Message::User(_) | Message::Answer(_) if !open.is_empty() => {
                return Err(format!("{open:?} have no results"));
            }
            Message::User(_) => {}
            Message::Answer(answer) => {
                open = answer.calls().map(|call| call.id.as_str()).collect();
                if !open.iter().all(|id| !id.is_empty() && ids.insert(*id)) {
                    return Err(format!("ids that are not one each: {open:?}"));
                }
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} have no results at the end")) }
}

/// Polls so often, then drops.
async fn polled<F: Future>(future: F, polls: Option<usize>) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls.unwrap_or(usize::MAX);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// A point at which whoever waits may go away.
async fn a_while() {
    tokio::task::yield_now().await;
}

impl State {
    fn bits(&mut self, draws: &[Draw], offer: &Offer) -> Vec<Bit> {
        let mut bits = Vec::new();
        for draw in draws {
            bits.push(match draw {
                Draw::Text(at) => Bit::Text(TEXTS[*at].to_owned()),
                Draw::Thought(0) => Bit::Thought(String::new()),
                Draw::Thought(_) => Bit::Thought("I think.".to_owned()),
                Draw::Call { id, tool, arguments } => {
                    // Anthropic refuses the letters of some ids, and so never makes them.
                    let odd = self.wire == Wire::Anthropic && *id == 3;
                    let id = IDS.get(if odd { 4 } else { *id }).filter(|id| **id != "call_own");
                    let id = id.map_or_else(
                        || {
                            self.ids += 1;
                            format!("call_own{}", self.ids)
                        },
                        |id| (*id).to_owned(),
                    );
                    let list = offer.list();
                    let known = (!list.is_empty()).then(|| list[tool % list.len()].alias.clone());
                    let name = match tool {
                        0 => "no such tool!".to_owned(),
                        1 => String::new(),
                        2 => "fs_read".to_owned(),
                        _ => known.unwrap_or_else(|| "fs.read".to_owned()),
                    };
                    let arguments = ARGUMENTS.get(*arguments).unwrap_or(&ARGUMENTS[0]);
                    Bit::Call { id, name, arguments: (*arguments).to_owned() }
                }
            });
        }
        bits
    }

    /// What the model answers now.
    fn answer(&mut self, request: &Request) -> Result<Response, LlmError> {
        let (wire, model) = (self.wire, self.model);
        let can = Capabilities::of(wire, model);
        let offer = self.offer(&request.tools, wire, can.strict_tools);
        let (bits, ending) = match self.moves.pop_front() {
            None => (vec![Bit::Text("That is all.".to_owned())], Ending::Normal),
            Some(Move::Say { bits, ending }) => (self.bits(&bits, &offer), ending),
            Some(Move::Fail(number)) => {
                let error = LlmError::new("made up", class(number), "it fails");
                let written = (number == 10).then(|| TEXTS[4].into());
                return Err(LlmError { written, ..error });
            }
        };
        let said = body(wire, &bits, ending, &mut self.marks);
        let mut reader = codec::reader(wire, model, false);
        let failed = |fault: codec::Fault| LlmError::new("made up", fault.class, fault.message);
        reader.push(said.as_bytes(), &mut Vec::new()).map_err(failed)?;
        let mut response = reader.end().map_err(failed)?;
        offer.put_back(&mut response);
        Ok(response)
    }
}

#[async_trait]
impl LlmProvider for Shared {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        a_while().await;
        let answer = {
            let mut state = self.0.lock().unwrap();
            let (wire, model) = (state.wire, state.model);
            let paused = matches!(request.messages.last(), Some(Message::Answer(_)));
            state.look(&request, wire, model, paused);
            state.answer(&request)
        };
        a_while().await;
        answer
    }

    fn name(&self) -> &'static str {
        "made up"
    }

    fn model(&self) -> &str {
        self.0.lock().unwrap().model
    }

    fn capabilities(&self) -> Capabilities {
        let state = self.0.lock().unwrap();
        Capabilities::of(state.wire, state.model)
    }
}

impl ToolRunner for Shared {
    fn offered(&self) -> Vec<Offered> {
        self.0.lock().unwrap().offered.clone()
    }

    fn run<'r>(&'r self, name: &'r str, _: Value) -> Running<'r> {
        Box::pin(async move {
            a_while().await;
            let outcome = self.0.lock().unwrap().outcomes.pop_front();
            if outcome == Some(1) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            if outcome == Some(2) {
                let (tool, source) = (name.to_owned(), "it broke".into());
                return Err(RunError::Runner { tool, source });
            }
            let text = if outcome == Some(3) { String::new() } else { "é".repeat(30) };
            let result = json!({"content": [{"type": "text", "text": text}]});
            Ok(Output::new(to_raw_value(&result).unwrap(), outcome == Some(4)))
        })
    }
}
