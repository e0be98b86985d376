//! Conversations that exceed the context window.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use innkeeper_agent::agent::{Agent, AgentEvent, AgentSettings};
use innkeeper_agent::conversation::{Conversation, HistoryBudget, Message, estimate_tokens};
use innkeeper_agent::provider::{
    Capabilities, LlmError, LlmProvider, Request, Response, ScriptedProvider, TokenLimits,
};

use super::RecordingTools;

/// A model that calls a tool for each user message, then answers. A request for a summary gets the
/// number of the summary.
#[derive(Default)]
struct Talker {
    requests: Mutex<Vec<Request>>,
    summaries: Mutex<usize>,
}

#[async_trait]
impl LlmProvider for Talker {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        if request.tools.is_empty() {
            let mut summaries = self.summaries.lock().unwrap();
            *summaries += 1;
            assert!(tokens_of(&request) <= BUDGET, "a request for a summary fits too");
            return Ok(Response::from_text(format!("Summary {summaries}.")));
        }
        let number = self.requests.lock().unwrap().len();
        let has_results = matches!(request.messages.last(), Some(Message::ToolResults(_)));
        self.requests.lock().unwrap().push(request);
        let arguments = format!(r#"{{"path": "{number} {}"}}"#, "x".repeat(300));
        Ok(match has_results {
            true => Response::from_text(format!("answer {number}")),
            false => Response::from_tool_calls([("fs.read", &*arguments)]),
        })
    }

    fn name(&self) -> &'static str {
        "talker"
    }

    fn supports_tools(&self) -> bool {
        true
    }
}

const BUDGET: usize = 3000;

fn text_of(message: &Message) -> String {
    match message {
        Message::User(content) => content.to_text().into_owned(),
        Message::Assistant(assistant) => {
            let calls = assistant.calls().map(|call| call.name.clone() + &call.arguments);
            assistant.visible_text() + &calls.collect::<String>()
        }
        Message::ToolResults(results) => {
            results.iter().map(|result| result.content.to_text()).collect()
        }
    }
}

fn tokens_of(request: &Request) -> usize {
    let messages = request.messages.iter().map(|message| estimate_tokens(&text_of(message)));
    estimate_tokens(&request.system) + messages.sum::<usize>()
}

/// Proves: G50
#[tokio::test(start_paused = true)]
async fn two_hundred_turns_stay_under_the_budget_and_the_last_results_are_verbatim() {
    let model = Arc::new(Talker::default());
    let history_budget = Some(HistoryBudget { max_tokens: BUDGET });
    let mut settings = AgentSettings::default();
    settings.requests.history_budget = history_budget;
    let agent = Agent::new(model.clone(), Arc::new(RecordingTools::default()), settings);
    let mut events = 0;
    for turn in 0..200 {
        let report = agent
            .run_streaming(format!("question {turn}"), |event| {
                events += usize::from(matches!(event, AgentEvent::HistorySummaryStarted { .. }));
            })
            .await;
        assert!(report.is_success(), "{report:?}");
    }
    let conversation = agent.conversation();
    let requests = model.requests.lock().unwrap();
    let summaries = *model.summaries.lock().unwrap();
    assert_eq!((conversation.messages().len(), requests.len()), (800, 400));
    assert_eq!(events, summaries);
    // A budget that slides would need a summary for nearly each of the turns.
    assert!((10..60).contains(&summaries), "{summaries}");
    for (index, request) in requests.iter().enumerate() {
        assert!(tokens_of(request) <= BUDGET, "request {index}");
        let newest = format!("question {}", index / 2);
        let texts: Vec<_> = request.messages.iter().map(text_of).collect();
        assert!(texts.iter().any(|text| text.ends_with(&newest)), "request {index}: {texts:?}");
        for (at, message) in request.messages.iter().enumerate() {
            let has_calls =
                matches!(message, Message::Assistant(it) if it.calls().next().is_some());
            let has_results = matches!(request.messages.get(at + 1), Some(Message::ToolResults(_)));
            assert_eq!(has_calls, has_results, "request {index}");
        }
    }
    // The last results are as the tool returned them.
    let last = requests.last().unwrap();
    let results = last.messages.iter().filter(|it| matches!(it, Message::ToolResults(_)));
    let all = conversation.messages().iter().filter(|it| matches!(it, Message::ToolResults(_)));
    let (results, all): (Vec<_>, Vec<_>) = (results.collect(), all.collect());
    assert!(results.len() >= 3, "{}", results.len());
    assert_eq!(results, all[all.len() - results.len()..]);
    let first = text_of(&last.messages[0]);
    assert!(first.contains(&format!("Summary {summaries}.")), "{first}");
}

#[tokio::test(start_paused = true)]
async fn a_stored_conversation_continues_with_its_summary() {
    let model = Arc::new(Talker::default());
    let history_budget = Some(HistoryBudget { max_tokens: BUDGET });
    let mut settings = AgentSettings::default();
    settings.requests.history_budget = history_budget;
    let new_agent =
        || Agent::new(model.clone(), Arc::new(RecordingTools::default()), settings.clone());
    let agent = new_agent();
    while *model.summaries.lock().unwrap() == 0 {
        assert!(agent.run("question").await.is_success());
    }
    let stored = serde_json::to_string(&agent.conversation()).unwrap();
    let conversation: Conversation = serde_json::from_str(&stored).unwrap();
    let continued = new_agent().with_conversation(conversation);
    assert!(continued.run("And now?").await.is_success());
    assert_eq!(*model.summaries.lock().unwrap(), 1);
    let requests = model.requests.lock().unwrap();
    let first = text_of(&requests[requests.len() - 1].messages[0]);
    assert!(first.contains("Summary 1."), "{first}");
}

#[test]
fn the_context_of_a_request_is_the_smaller_one_of_the_window_and_the_limit_of_the_settings() {
    let context = |context_tokens, budget: Option<usize>| {
        let capabilities = Capabilities {
            tokens: TokenLimits { context: context_tokens, ..TokenLimits::default() },
            ..Capabilities::default()
        };
        let provider = ScriptedProvider::new([]).with_capabilities(capabilities);
        let mut settings = AgentSettings::default();
        settings.requests.history_budget = budget.map(|max_tokens| HistoryBudget { max_tokens });
        settings.requests.max_tokens = 200;
        Agent::new(Arc::new(provider), Arc::new(RecordingTools::default()), settings)
            .context_tokens()
    };
    assert_eq!(context(None, None), None);
    assert_eq!(context(Some(8192), None), Some(8192));
    assert_eq!(context(None, Some(6000)), Some(6200));
    assert_eq!(context(Some(8192), Some(6000)), Some(6200));
    assert_eq!(context(Some(4096), Some(6000)), Some(4096));
}
