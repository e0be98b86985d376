//! Runs an agent through a scenario and checks every request.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use innkeeper_toolcall::Tools;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::request_rules::check_body;
use super::response_bodies::{
    MarkerCounter, ResponseEnd, ResponsePart, find_markers, response_body,
};
use super::scenario::{
    ARGUMENTS, CALL_IDS, ModelAction, PartSpec, ScenarioStep, TEXTS, available_tools, error_kind,
    model_names,
};
use crate::agent::{Agent, AgentSettings};
use crate::content::ContentSupport;
use crate::conversation::{
    ContentPart, Conversation, HistoryBudget, Message, OmittedHistory, PartContent, choose_cut,
    estimate_message_tokens, estimate_tokens, visible_messages,
};
use crate::provider::codec::{self, EncodeRequest};
use crate::provider::tool_encoding::EncodedTools;
use crate::provider::{
    Capabilities, LlmError, LlmErrorKind, LlmProvider, ProviderApi, Request, Response, Usage,
};
use crate::run::{EXAMPLE_QUESTION, RunLimits, RunOutcome, SUMMARY_SYSTEM_PROMPT, ToolCalling};
use crate::tools::{
    AvailableTool, ToolCallFuture, ToolCallOptions, ToolError, ToolOutput, ToolRunner,
};

/// Counts of the outcomes that occurred; a test checks that none is missing.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    pub(super) counts: HashMap<String, usize>,
}

impl Coverage {
    fn count(&mut self, event: impl Into<String>) {
        *self.counts.entry(event.into()).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (event, count) in &other.counts {
            *self.counts.entry(event.clone()).or_default() += count;
        }
    }
}

pub(super) fn is_covered(coverage: &Coverage) -> bool {
    let outcomes = ["answered", "cut", "refused", "rounds", "no call", "failed", "dropped"];
    let wires = ProviderApi::ALL.map(|api| format!("{api:?} native"));
    let is_counted = |event: &str| coverage.counts.get(event).is_some_and(|count| *count >= 3);
    outcomes.into_iter().all(is_counted)
        && wires.iter().all(|api| is_counted(api))
        && ["trimmed", "summarized", "summary failed"].into_iter().all(is_counted)
}

pub(super) struct Simulation {
    settings: AgentSettings,
    shared: Arc<SharedState>,
}

struct SharedState(Mutex<SimulationState>);

struct SimulationState {
    api: ProviderApi,
    model: &'static str,
    available_tools: Vec<AvailableTool>,
    model_actions: VecDeque<ModelAction>,
    tool_outcomes: VecDeque<usize>,
    markers: MarkerCounter,
    generated_ids: usize,
    encodings: HashMap<(ProviderApi, bool), (Arc<Tools>, Arc<EncodedTools>)>,
    problems: Vec<String>,
    coverage: Coverage,
    /// The context window in tokens of the provider.
    window: usize,
    summaries: usize,
    /// Whether the run knows the provider's count of a request: only then it can keep the window.
    window_is_known: bool,
    /// Whether the last response had such a count. The run may be dropped before it reads the count.
    count_was_sent: bool,
}

/// Smallest window that the instructions for a summary and one short excerpt fit into.
const MIN_SUMMARY_WINDOW: usize = 400;

/// Returns the tokens of a request as the provider counts them: more than the run estimates.
fn count_tokens(request: &Request) -> usize {
    let messages = request.messages.iter();
    let estimate = |message| estimate_message_tokens(message, ContentSupport::default());
    let tools = request.tools.iter().map(|tool| {
        estimate_tokens(&tool.name)
            + estimate_tokens(&tool.description)
            + estimate_tokens(&tool.input_schema.to_string())
    });
    let estimated = estimate_tokens(&request.system)
        + tools.sum::<usize>()
        + messages.map(estimate).sum::<usize>();
    (estimated * 3).div_ceil(2)
}

/// Returns whether a request has more than one iteration, and therefore could be shorter.
fn can_be_shorter(request: &Request) -> bool {
    let is_assistant = |message: &Message| matches!(message, Message::Assistant(_));
    let is_example = |message: &Message| match message {
        Message::User(content) => content.to_text() == EXAMPLE_QUESTION,
        Message::Assistant(_) | Message::ToolResults(_) => false,
    };
    // An example of a call precedes the messages of a request with constrained output.
    let example = if request.messages.first().is_some_and(is_example) { 2 } else { 0 };
    let starts = request.messages[example..].windows(2);
    starts.filter(|pair| !is_assistant(&pair[0]) && is_assistant(&pair[1])).count() > 1
}

impl SimulationState {
    /// Checks the length of a request, and returns the error of a provider whose window is too
    /// small.
    fn check_length(&mut self, request: &Request) -> Result<usize, LlmError> {
        self.window_is_known |= std::mem::take(&mut self.count_was_sent);
        let tokens = count_tokens(request);
        if tokens <= self.window || !can_be_shorter(request) {
            return Ok(tokens);
        }
        self.coverage.count("too long");
        if self.window_is_known {
            let window = self.window;
            self.problems.push(format!("{tokens} tokens in a window of {window}: {request:?}"));
        }
        Err(LlmError::new("made up", LlmErrorKind::ContextLength, "too long"))
    }

    /// Checks the length of a request for a summary. The instructions alone exceed the smallest window.
    fn check_summary_length(&mut self, request: &Request) {
        self.window_is_known |= std::mem::take(&mut self.count_was_sent);
        let (tokens, window) = (count_tokens(request), self.window);
        if self.window_is_known && window >= MIN_SUMMARY_WINDOW && tokens > window {
            self.problems.push(format!("a summary of {tokens} tokens in a window of {window}"));
        }
    }

    /// Returns a summary; every third is empty.
    fn summarize(&mut self) -> Response {
        self.summaries += 1;
        let fails = self.summaries.is_multiple_of(3);
        self.coverage.count(if fails { "summary failed" } else { "summarized" });
        Response::from_text(if fails {
            String::new()
        } else {
            format!("Summary {}.", self.summaries)
        })
    }

    fn encode_tools(
        &mut self,
        tools: &Arc<Tools>,
        api: ProviderApi,
        strict: bool,
    ) -> Arc<EncodedTools> {
        match self.encodings.get(&(api, strict)) {
            Some((cached_for, encoded)) if Arc::ptr_eq(cached_for, tools) => encoded.clone(),
            Some(_) | None => {
                let encoded = Arc::new(EncodedTools::new(tools.clone(), api, strict));
                self.encodings.insert((api, strict), (tools.clone(), encoded.clone()));
                encoded
            }
        }
    }

    /// Checks the body that would be sent to a model.
    fn check_request(
        &mut self,
        request: &Request,
        api: ProviderApi,
        model: &'static str,
        paused: bool,
    ) {
        let capabilities = Capabilities::for_model(api, model);
        let strict = capabilities.tools.strict && !request.plain_tools;
        let encoded = self.encode_tools(&request.tools, api, strict);
        let encode_request = EncodeRequest {
            request,
            encoded_tools: &encoded,
            model,
            capabilities: &capabilities,
            streaming: false,
        };
        let sent = match codec::encode(api, encode_request) {
            Ok(outgoing) => String::from_utf8(outgoing.body).unwrap(),
            Err(error) => return self.problems.push(format!("{api:?}: {error:?}")),
        };
        let mut parsed: Value = serde_json::from_str(&sent).unwrap();
        parsed["signs"] = json!(capabilities.quirks.gemini.placeholder_signatures);
        if let Err(reason) = check_body(api, &parsed, paused) {
            self.problems.push(format!("{api:?} {model}: {reason}\nin {sent}"));
        }
        let natives = native_blocks(request, api, model);
        let expected: Vec<_> = natives.iter().flat_map(|native| find_markers(native)).collect();
        if expected != find_markers(&sent) {
            let sent_markers = find_markers(&sent);
            self.problems
                .push(format!("{api:?} {model}: {sent_markers:?} are not {expected:?}\nin {sent}"));
        }
        let mut from = 0;
        for native in &natives {
            match sent[from..].find(native.as_str()) {
                Some(at) => from += at + native.len(),
                None => self.problems.push(format!("{api:?} {model}: {native} is not in {sent}")),
            }
        }
        if !natives.is_empty() {
            self.coverage.count(format!("{api:?} native"));
        }
    }
}

/// Returns the native blocks that a request must contain, each as its API sends it.
fn native_blocks(request: &Request, api: ProviderApi, model: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    for message in &request.messages {
        let Message::Assistant(assistant) = message else { continue };
        // Providers reject reasoning without a following part, and Ollama drops a message that has
        // only reasoning.
        let last = assistant.parts.iter().rposition(|part| can_follow_reasoning(api, part));
        let end = match api {
            ProviderApi::OpenAiResponses | ProviderApi::Anthropic | ProviderApi::Ollama => {
                last.map_or(0, |index| index + 1)
            }
            ProviderApi::OpenAiChat
            | ProviderApi::GeminiGenerate
            | ProviderApi::GeminiInteractions => assistant.parts.len(),
        };
        for part in &assistant.parts[..end] {
            let native = part.provider_block.as_ref().and_then(|block| block.for_model(api, model));
            let Some(native) = native else { continue };
            match (api, &part.content) {
                // Their fields are fields of the message itself.
                (ProviderApi::OpenAiChat | ProviderApi::Ollama, PartContent::Reasoning(_)) => {
                    let members: HashMap<String, Box<serde_json::value::RawValue>> =
                        serde_json::from_str(native.get()).unwrap();
                    blocks.extend(members.values().map(|member| member.get().to_owned()));
                }
                _ => blocks.push(native.get().to_owned()),
            }
        }
    }
    blocks
}

fn can_follow_reasoning(api: ProviderApi, part: &ContentPart) -> bool {
    match &part.content {
        PartContent::Reasoning(_) => false,
        PartContent::Text(text) if api == ProviderApi::OpenAiResponses => {
            part.provider_block.is_some() || !text.is_empty()
        }
        PartContent::Text(text) if api == ProviderApi::Ollama => !text.is_empty(),
        PartContent::Text(text) => !text.trim().is_empty(),
        PartContent::ToolCall(_) | PartContent::Other => true,
    }
}

impl Simulation {
    pub(super) fn new(api: usize, calling: usize, budget: usize, summarizes: bool) -> Self {
        let api = ProviderApi::ALL[api];
        let tool_calling = [ToolCalling::Auto, ToolCalling::Native, ToolCalling::Prompt][calling];
        let mut settings = AgentSettings {
            limits: RunLimits {
                max_iterations: 5,
                max_calls: 4,
                retry_budget: 4,
                max_retries: 2,
                ..RunLimits::default()
            },
            system: "Be brief.".to_owned(),
            ..AgentSettings::default()
        };
        settings.tool_use.tool_calling = tool_calling;
        settings.requests.history_budget = Some(HistoryBudget { max_tokens: budget });
        settings.requests.summarize_history = summarizes;
        let state = SimulationState {
            api,
            model: model_names(api)[0],
            available_tools: available_tools(&[(0, false), (1, true), (5, false)]),
            model_actions: VecDeque::new(),
            tool_outcomes: VecDeque::new(),
            markers: MarkerCounter(0),
            generated_ids: 0,
            encodings: HashMap::new(),
            problems: Vec::new(),
            coverage: Coverage::default(),
            window: budget,
            summaries: 0,
            window_is_known: false,
            count_was_sent: false,
        };
        Self { settings, shared: Arc::new(SharedState(Mutex::new(state))) }
    }

    /// Runs the scenario and returns the problems found.
    pub(super) fn run(&self, course: &[ScenarioStep]) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let agent = Agent::new(self.shared.clone(), self.shared.clone(), self.settings.clone());
        for step in course {
            runtime.block_on(self.apply(&agent, step));
            self.check_conversation(&agent.conversation());
            let state = self.shared.0.lock().unwrap();
            if !state.problems.is_empty() {
                return state.problems.clone();
            }
        }
        Vec::new()
    }

    pub(super) fn take_coverage(&self) -> Coverage {
        std::mem::take(&mut self.shared.0.lock().unwrap().coverage)
    }

    async fn apply(&self, agent: &Agent, step: &ScenarioStep) {
        match step {
            ScenarioStep::Clear => {
                agent.clear();
                self.shared.0.lock().unwrap().window_is_known = false;
            }
            ScenarioStep::SetTools(tools) => {
                self.shared.0.lock().unwrap().available_tools = available_tools(tools);
            }
            ScenarioStep::SwitchModel(api, model) => {
                let mut state = self.shared.0.lock().unwrap();
                state.api = ProviderApi::ALL[*api];
                state.model = model_names(state.api)[*model];
            }
            ScenarioStep::SendMessage { streaming, polls, model_actions, tool_outcomes } => {
                {
                    let mut state = self.shared.0.lock().unwrap();
                    state.model_actions = model_actions.iter().cloned().collect();
                    state.tool_outcomes = tool_outcomes.iter().copied().collect();
                    state.count_was_sent = false;
                }
                let before = agent.conversation().messages().len();
                let report = if *streaming {
                    poll_times(agent.run_streaming("And now?", |_| {}), *polls).await
                } else {
                    poll_times(agent.run("And now?"), *polls).await
                };
                let mut state = self.shared.0.lock().unwrap();
                let is_recorded = agent.conversation().messages().len() > before;
                if !is_recorded && *polls != Some(0) {
                    state.problems.push("what the person said is lost".to_owned());
                }
                let outcome = match report.map(|report| report.outcome) {
                    None => "dropped",
                    Some(RunOutcome::Completed) => "answered",
                    Some(RunOutcome::Truncated) => "cut",
                    Some(RunOutcome::Refused) => "refused",
                    Some(RunOutcome::IterationLimit) => "rounds",
                    Some(RunOutcome::Interrupted) => "interrupted",
                    Some(RunOutcome::LoopDetected) => "loop",
                    Some(RunOutcome::CallFailed) => "call failed",
                    Some(RunOutcome::NoValidCall { .. }) => "no call",
                    Some(RunOutcome::Failed(_)) => "failed",
                    Some(RunOutcome::NotSent { reason }) => {
                        state.problems.push(reason);
                        "unasked"
                    }
                };
                state.coverage.count(outcome);
            }
        }
    }

    /// Checks the conversation, and its encoding for each API, complete and trimmed.
    fn check_conversation(&self, conversation: &Conversation) {
        let mut state = self.shared.0.lock().unwrap();
        let messages = conversation.messages();
        if let Err(reason) = check_pairing(messages) {
            state.problems.push(reason);
        }
        let tools: Tools =
            state.available_tools.iter().map(|available| available.tool.clone()).collect();
        let tools = Arc::new(tools);
        let mut full_history = messages.to_vec();
        full_history.push(Message::User("Go on.".into()));
        for max_tokens in [30, 150, 600, 1_000_000] {
            let estimate =
                |message: &Message| estimate_message_tokens(message, ContentSupport::default());
            let cut = choose_cut(&full_history, 0, max_tokens, estimate);
            let omitted =
                OmittedHistory { messages: cut.unwrap_or_default(), ..OmittedHistory::default() };
            let messages = visible_messages(&full_history, &omitted);
            if cut.is_some() {
                state.coverage.count("trimmed");
            }
            let request = Request { messages, tools: tools.clone(), ..Request::default() };
            for api in ProviderApi::ALL {
                state.check_request(&request, api, model_names(api)[max_tokens % 4 / 2], false);
            }
        }
    }
}

/// Checks that every call has exactly one result, directly after its message.
fn check_pairing(messages: &[Message]) -> Result<(), String> {
    let mut ids = std::collections::HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::ToolResults(results) => {
                let result_ids: Vec<_> = results.iter().map(|result| result.id.as_str()).collect();
                if result_ids.is_empty() || result_ids != open {
                    return Err(format!("results {result_ids:?} behind {open:?}"));
                }
                open.clear();
            }
            Message::User(_) | Message::Assistant(_) if !open.is_empty() => {
                return Err(format!("{open:?} have no results"));
            }
            Message::User(_) => {}
            Message::Assistant(assistant) => {
                open = assistant.calls().map(|call| call.id.as_str()).collect();
                if !open.iter().all(|id| !id.is_empty() && ids.insert(*id)) {
                    return Err(format!("ids that are not one each: {open:?}"));
                }
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} have no results at the end")) }
}

/// Polls the future at most `polls` times, then drops it.
async fn poll_times<F: Future>(future: F, polls: Option<usize>) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut remaining = polls.unwrap_or(usize::MAX);
    poll_fn(|context| {
        if remaining == 0 {
            return Poll::Ready(None);
        }
        remaining -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Lets the scenario drop the run at this point.
async fn yield_point() {
    tokio::task::yield_now().await;
}

impl SimulationState {
    fn response_parts(&mut self, draws: &[PartSpec], encoded: &EncodedTools) -> Vec<ResponsePart> {
        let mut content = Vec::new();
        for draw in draws {
            content.push(match draw {
                PartSpec::Text(at) => ResponsePart::Text(TEXTS[*at].to_owned()),
                PartSpec::Reasoning(0) => ResponsePart::Reasoning(String::new()),
                PartSpec::Reasoning(_) => ResponsePart::Reasoning("I think.".to_owned()),
                PartSpec::Call { id, tool, arguments } => {
                    // Anthropic rejects some characters in ids, and never generates such ids.
                    let odd = self.api == ProviderApi::Anthropic && *id == 3;
                    let id =
                        CALL_IDS.get(if odd { 4 } else { *id }).filter(|id| **id != "call_own");
                    let id = id.map_or_else(
                        || {
                            self.generated_ids += 1;
                            format!("call_own{}", self.generated_ids)
                        },
                        |id| (*id).to_owned(),
                    );
                    let list = encoded.as_slice();
                    let tool_name =
                        (!list.is_empty()).then(|| list[tool % list.len()].alias.clone());
                    let name = match tool {
                        0 => "no such tool!".to_owned(),
                        1 => String::new(),
                        2 => "fs_read".to_owned(),
                        _ => tool_name.unwrap_or_else(|| "fs.read".to_owned()),
                    };
                    let arguments = ARGUMENTS.get(*arguments).unwrap_or(&ARGUMENTS[0]);
                    ResponsePart::Call { id, name, arguments: (*arguments).to_owned() }
                }
            });
        }
        content
    }

    fn respond(&mut self, request: &Request) -> Result<Response, LlmError> {
        let (api, model) = (self.api, self.model);
        let capabilities = Capabilities::for_model(api, model);
        let strict = capabilities.tools.strict && !request.plain_tools;
        let encoded = self.encode_tools(&request.tools, api, strict);
        let (content, end) = match self.model_actions.pop_front() {
            None => (vec![ResponsePart::Text("That is all.".to_owned())], ResponseEnd::Normal),
            Some(ModelAction::Respond { parts: content, ending }) => {
                (self.response_parts(&content, &encoded), ending)
            }
            Some(ModelAction::Fail(number)) => {
                let error = LlmError::new("made up", error_kind(number), "it fails");
                let partial_output = (number == 10).then(|| TEXTS[4].into());
                return Err(LlmError { partial_output, ..error });
            }
        };
        let body = response_body(api, &content, end, &mut self.markers);
        let mut reader = codec::response_decoder(api, model, &encoded, false);
        let to_llm_error = |api_error: codec::ApiError| {
            LlmError::new("made up", api_error.kind, api_error.message)
        };
        reader.push(body.as_bytes(), &mut Vec::new()).map_err(to_llm_error)?;
        let mut response = reader.finish().map_err(to_llm_error)?;
        encoded.restore_names(&mut response);
        Ok(response)
    }
}

#[async_trait]
impl LlmProvider for SharedState {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        yield_point().await;
        let result = {
            let mut state = self.0.lock().unwrap();
            let (api, model) = (state.api, state.model);
            let paused = matches!(request.messages.last(), Some(Message::Assistant(_)));
            state.check_request(&request, api, model, paused);
            if request.system == SUMMARY_SYSTEM_PROMPT {
                state.check_summary_length(&request);
                Ok(state.summarize())
            } else {
                state.check_length(&request).and_then(|tokens| {
                    let mut response = state.respond(&request)?;
                    let prompt_tokens = tokens as u64;
                    response.usage = Some(Usage { prompt_tokens, ..Usage::default() });
                    state.count_was_sent = tokens * 16 / 3 >= state.window;
                    Ok(response)
                })
            }
        };
        yield_point().await;
        result
    }

    fn name(&self) -> &'static str {
        "made up"
    }

    fn model(&self) -> &str {
        self.0.lock().unwrap().model
    }

    fn capabilities(&self) -> Capabilities {
        let state = self.0.lock().unwrap();
        Capabilities::for_model(state.api, state.model)
    }
}

impl ToolRunner for SharedState {
    fn list_tools(&self) -> Vec<AvailableTool> {
        self.0.lock().unwrap().available_tools.clone()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        _: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        Box::pin(async move {
            yield_point().await;
            let outcome = self.0.lock().unwrap().tool_outcomes.pop_front();
            if outcome == Some(1) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            if outcome == Some(2) {
                let (tool, source) = (name.to_owned(), "it broke".into());
                return Err(ToolError::Runner { tool, source });
            }
            let text = if outcome == Some(3) { String::new() } else { "é".repeat(30) };
            let result = json!({"content": [{"type": "text", "text": text}]});
            Ok(ToolOutput::new(to_raw_value(&result).unwrap(), outcome == Some(4)))
        })
    }
}
