//! Native calls, calls in the text of an agent and calls in the text of a chat are decided alike.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::provider::{Response, ScriptedProvider};
use innkeeper_agent::run::ToolCalling;
use innkeeper_agent::safety::{
    ApprovalDecision, ApprovalPolicy, ApprovalRequest, Approver, ToolBlocklist,
};
use innkeeper_agent::{Chat, ChatSettings, tool_output};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use super::{RecordingTools, native_harness};
use crate::setup::{audit_hash, response_stream};

/// The calls of each response of the model.
const SCRIPT: [&[(&str, &str)]; 2] = [
    &[
        ("fs.read", r#"{"path":"a"}"#),
        ("fs.rm", r#"{"path":"denied"}"#),
        ("fs.rm", r#"{"path":"approved"}"#),
        ("clock.nap", r#"{"seconds":1}"#),
    ],
    &[("fs.read", r#"{"path":"gone"}"#), ("fs.read", r#"{"path":"b"}"#)],
];

const BLOCKED: &str = "clock.*";
const CALLS_PER_MINUTE: u32 = 4;

/// Everything that a safety rule decides or leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
struct SafetyTrail {
    /// The tool, the arguments, the success and the result text of each call.
    decisions: Vec<(String, String, bool, String)>,
    /// The requests to the approver.
    approvals: Vec<String>,
    /// The tool, the outcome and the hash of the arguments of each audit event.
    audit: Vec<[String; 3]>,
    /// The calls that reached the tools.
    calls: Vec<(String, Value)>,
}

#[derive(Default)]
struct PathApprover(Mutex<Vec<String>>);

#[async_trait::async_trait]
impl Approver for PathApprover {
    async fn decide(&self, call: ApprovalRequest<'_>) -> ApprovalDecision {
        self.0.lock().unwrap().push(format!("{} {}", call.tool, call.arguments));
        match call.arguments.contains("approved") {
            true => ApprovalDecision::Approve,
            false => ApprovalDecision::Deny("the user said no".to_owned()),
        }
    }
}

/// The audit events of this thread.
#[derive(Clone, Default)]
struct AuditCapture(Arc<Mutex<Vec<[String; 3]>>>);

impl AuditCapture {
    fn install(&self) -> DefaultGuard {
        tracing::subscriber::set_default(tracing_subscriber::registry().with(self.clone()))
    }

    /// Returns the tool and the outcome of each event.
    fn outcomes(&self) -> Vec<String> {
        let events = self.0.lock().unwrap();
        events.iter().map(|[tool, outcome, _]| format!("{tool} {outcome}")).collect()
    }
}

impl<S: tracing::Subscriber> Layer<S> for AuditCapture {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = AuditFields::default();
        event.record(&mut fields);
        if fields.is_tool_executed {
            self.0.lock().unwrap().push(fields.values);
        }
    }
}

#[derive(Default)]
struct AuditFields {
    is_tool_executed: bool,
    values: [String; 3],
}

impl Visit for AuditFields {
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "audit" => self.is_tool_executed = value == "tool_executed",
            "tool" => self.values[0] = value.to_owned(),
            "outcome" => self.values[1] = value.to_owned(),
            "arguments_sha256" => self.values[2] = value.to_owned(),
            _ => {}
        }
    }
}

fn script_text(calls: &[(&str, &str)]) -> String {
    let lines = calls
        .iter()
        .map(|(tool, arguments)| format!(r#"{{"tool": "{tool}", "params": {arguments}}}"#));
    lines.collect::<Vec<_>>().join("\n")
}

async fn run_agent(tool_calling: ToolCalling, replies: Vec<Response>) -> SafetyTrail {
    let (capture, approver) = (AuditCapture::default(), Arc::new(PathApprover::default()));
    let _guard = capture.install();
    let tools = Arc::new(RecordingTools::default());
    let mut settings = AgentSettings {
        blocklist: ToolBlocklist::new([BLOCKED]).unwrap(),
        approval_policy: ApprovalPolicy::Ask,
        ..AgentSettings::default()
    };
    settings.tool_use.tool_calling = tool_calling;
    settings.calls.rate_limit_per_minute = Some(CALLS_PER_MINUTE);
    let replies = replies.into_iter().chain([Response::from_text("Done.")]).map(Ok);
    let model = Arc::new(ScriptedProvider::new(replies));
    let agent = Agent::new(model, tools.clone(), settings).with_approver(approver.clone());
    let report = agent.run("Go.").await;
    assert!(report.is_success(), "{report:?}");
    let decisions = report.tool_calls.into_iter().map(|record| {
        let record = Arc::unwrap_or_clone(record);
        (record.tool, record.arguments.to_string(), record.outcome.success, record.result_text)
    });
    let decisions = decisions.collect();
    let (approvals, audit) =
        (approver.0.lock().unwrap().clone(), capture.0.lock().unwrap().clone());
    SafetyTrail { decisions, approvals, audit, calls: tools.calls() }
}

async fn run_chat() -> SafetyTrail {
    let (capture, approver) = (AuditCapture::default(), Arc::new(PathApprover::default()));
    let _guard = capture.install();
    let tools = Arc::new(RecordingTools::default());
    let settings = ChatSettings {
        blocklist: ToolBlocklist::new([BLOCKED]).unwrap(),
        approval_policy: ApprovalPolicy::Ask,
        call_rate_limit_per_minute: Some(CALLS_PER_MINUTE),
        ..ChatSettings::default()
    };
    let chat = Chat::new(tools.clone(), settings).unwrap().with_approver(approver.clone());
    let mut replies = SCRIPT.map(script_text).into_iter().chain(["Done.".to_owned()]);
    let request_model = |_| {
        let text = replies.next().unwrap();
        async { Ok::<_, Infallible>(response_stream([text])) }
    };
    let result = chat.run(request_model, |_| {}).await.unwrap();
    let decisions = result.executions.into_iter().map(|execution| {
        let (success, text) = match &execution.outcome {
            Ok(output) => (!output.is_error(), tool_output::to_text(output)),
            Err(error) => (false, error.to_string()),
        };
        (execution.tool, execution.arguments.to_string(), success, text)
    });
    let decisions = decisions.collect();
    let (approvals, audit) =
        (approver.0.lock().unwrap().clone(), capture.0.lock().unwrap().clone());
    SafetyTrail { decisions, approvals, audit, calls: tools.calls() }
}

/// Proves: P35
#[tokio::test(start_paused = true)]
async fn a_call_in_text_is_refused_and_audited_like_a_native_call() {
    let native = SCRIPT.map(|calls| Response::from_tool_calls(calls.iter().copied()));
    let native = run_agent(ToolCalling::Native, native.into()).await;
    let text = SCRIPT.map(|calls| Response::from_text(script_text(calls)));
    assert_eq!(run_agent(ToolCalling::Prompt, text.into()).await, native);
    // A chat returns its executions in the order in which they ended.
    let (mut native_sorted, mut chat) = (native.clone(), run_chat().await);
    native_sorted.decisions.sort();
    chat.decisions.sort();
    assert_eq!(chat, native_sorted);

    let reached = [
        ("fs.read".to_owned(), json!({"path": "a"})),
        ("fs.rm".to_owned(), json!({"path": "approved"})),
        ("fs.read".to_owned(), json!({"path": "gone"})),
    ];
    assert_eq!(native.calls, reached);
    assert_eq!(native.approvals, [r#"fs.rm {"path":"denied"}"#, r#"fs.rm {"path":"approved"}"#]);
    let audited: Vec<_> =
        native.audit.iter().map(|[tool, outcome, _]| [&**tool, outcome]).collect();
    assert_eq!(
        audited,
        [
            ["fs.rm", "refused"],
            ["clock.nap", "refused"],
            ["fs.read", "done"],
            ["fs.rm", "done"],
            ["fs.read", "refused"],
            ["fs.read", "failed"],
        ]
    );
    let mut hashes: Vec<_> = native.audit.iter().map(|[.., hash]| hash.clone()).collect();
    let mut expected: Vec<_> =
        SCRIPT.iter().flat_map(|calls| calls.iter()).map(|(_, text)| audit_hash(text)).collect();
    hashes.sort();
    expected.sort();
    assert_eq!(hashes, expected, "each line has the hash of its arguments");
    let refusals: Vec<_> =
        native.decisions.iter().filter(|decision| decision.3.starts_with("not run: ")).collect();
    for (refusal, reason) in
        refusals.iter().zip(["user said no", "may not be called", "rate limit"])
    {
        assert!(refusal.3.contains(reason), "{refusal:?}");
    }
    assert_eq!(refusals.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_when_its_run_is_dropped_is_audited_as_cancelled() {
    let call = ("clock.nap", r#"{"seconds":60}"#);
    let text = script_text(&[call]);
    let limit = Duration::from_secs(1);
    for reply in [Response::from_tool_calls([call]), Response::from_text(text.clone())] {
        let capture = AuditCapture::default();
        let _guard = capture.install();
        let test_env = native_harness([Ok(reply)]);
        assert!(timeout(limit, test_env.agent.run("Go.")).await.is_err());
        assert_eq!(test_env.tools.calls().len(), 1);
        assert_eq!(capture.outcomes(), ["clock.nap cancelled"]);
    }

    let capture = AuditCapture::default();
    let _guard = capture.install();
    let tools = Arc::new(RecordingTools::default());
    let chat = Chat::new(tools.clone(), ChatSettings::default()).unwrap();
    let response = chat.start_run().read_response(response_stream([text])).unwrap();
    sleep(limit).await;
    assert_eq!(tools.calls().len(), 1);
    drop(response);
    sleep(limit).await;
    assert_eq!(capture.outcomes(), ["clock.nap cancelled"]);
}

/// Denies after a pause, so that other calls could run meanwhile.
struct SlowApprover;

#[async_trait::async_trait]
impl Approver for SlowApprover {
    async fn decide(&self, _: ApprovalRequest<'_>) -> ApprovalDecision {
        sleep(Duration::from_secs(5)).await;
        ApprovalDecision::Deny("no".to_owned())
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_decision_delays_the_calls_of_an_agent_and_not_those_of_a_chat() {
    let calls = [("fs.read", r#"{"path": "a"}"#), ("fs.rm", r#"{"path": "b"}"#)];
    let model = ScriptedProvider::new([Ok(Response::from_tool_calls(calls))]);
    let tools = Arc::new(RecordingTools::default());
    let settings =
        AgentSettings { approval_policy: ApprovalPolicy::Ask, ..AgentSettings::default() };
    let agent =
        Agent::new(Arc::new(model), tools.clone(), settings).with_approver(Arc::new(SlowApprover));
    let wait = Duration::from_secs(4);
    assert!(timeout(wait, agent.run("Go.")).await.is_err());
    assert!(tools.calls().is_empty(), "no call runs before all decisions");

    let settings = ChatSettings { approval_policy: ApprovalPolicy::Ask, ..ChatSettings::default() };
    let chat = Chat::new(tools.clone(), settings).unwrap().with_approver(Arc::new(SlowApprover));
    let chunks = response_stream([script_text(&calls)]);
    let response = chat.start_run().read_response(chunks).unwrap();
    assert!(timeout(wait, response.results_as_message()).await.is_err());
    assert_eq!(tools.calls().len(), 1, "an approved call runs at once");
    let message = response.results_as_message().await.unwrap();
    assert!(message.contains("not run: no"), "{message}");
}
