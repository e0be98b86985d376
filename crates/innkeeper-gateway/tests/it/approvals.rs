//! Calls that wait for the approval of an operator.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_gateway::pending_questions::store::{
    Changed, MemoryQuestionStore, QuestionAdded, QuestionChange, QuestionList, QuestionStore,
};
use innkeeper_gateway::pending_questions::{
    MAX_ARGUMENT_BYTES, NewQuestion, PendingQuestions, Question, QuestionId, QuestionOptions,
    QuestionState,
};
use innkeeper_gateway::{
    AnswerOutcome, EndpointOptions, Gateway, GatewayBuilder, GatewayOptions, OperatorAnswer,
    StoreFuture,
};
use innkeeper_testkit::{Fixture, Journal};
use serde_json::{Value, json};
use tokio::sync::{Notify, SetOnce};
use tokio::time::timeout;

use crate::setup::{TEST_TIMEOUT, TestClient, TestEnv, TestGateway, text};

/// A store that several gateways use one after the other, as before and after a restart.
pub(crate) struct Approvals {
    store: Arc<MemoryQuestionStore>,
    options: QuestionOptions,
}

impl Approvals {
    pub(crate) fn of(tools: &[&str]) -> Self {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        let options = QuestionOptions { tools, ..QuestionOptions::default() };
        Self { store: Arc::default(), options }
    }

    pub(crate) fn for_elicitations() -> Self {
        let options = QuestionOptions { elicitations: true, ..QuestionOptions::default() };
        Self { store: Arc::default(), options }
    }

    pub(crate) fn builder(&self) -> GatewayBuilder {
        let questions = PendingQuestions::new(self.store.clone(), self.options.clone());
        GatewayBuilder::new(GatewayOptions::default()).questions(questions)
    }

    async fn gateway(&self, test_env: &TestEnv, server: Fixture) -> TestGateway {
        let server = server.journal(&test_env.journal());
        test_env.gateway_with(self.builder(), [server]).await
    }
}

/// Waits for the only open question.
pub(crate) async fn open_question(gateway: &Gateway) -> Question {
    let store = gateway.questions().unwrap().store();
    let looking = async {
        let mut seen = 0;
        loop {
            let page = store.list(QuestionList::Open, None, 10).await.unwrap();
            if let [question] = &page[..] {
                return question.clone();
            }
            assert!(page.is_empty(), "{page:?}");
            seen = store.changes(seen).await.unwrap();
        }
    };
    timeout(TEST_TIMEOUT, looking).await.expect("a question in time")
}

/// Waits until a question has a state.
pub(crate) async fn wait_for(gateway: &Gateway, id: QuestionId, state: QuestionState) -> Question {
    let store = gateway.questions().unwrap().store();
    let looking = async {
        let mut seen = 0;
        loop {
            let question = store.find(id).await.unwrap().unwrap();
            if question.state == state {
                return question;
            }
            seen = store.changes(seen).await.unwrap();
        }
    };
    timeout(TEST_TIMEOUT, looking).await.unwrap_or_else(|_| panic!("{id} is not {state}"))
}

pub(crate) async fn answer(
    gateway: &Gateway,
    id: QuestionId,
    operator: &str,
    answer: OperatorAnswer,
) -> AnswerOutcome {
    gateway.answer_question(id, operator, answer).await.unwrap()
}

async fn approve(gateway: &Gateway, id: QuestionId) {
    let outcome = answer(gateway, id, "ann", OperatorAnswer::Approve).await;
    assert!(matches!(outcome, AnswerOutcome::Won(_)), "{outcome:?}");
}

fn decline(reason: Option<&str>) -> OperatorAnswer {
    OperatorAnswer::Decline { reason: reason.map(ToOwned::to_owned) }
}

fn echo(message: &str) -> Value {
    json!({ "name": "a.echo", "arguments": { "message": message } })
}

fn calls(test_env: &TestEnv) -> usize {
    Journal::read(&test_env.journal()).count("tools/call")
}

async fn start_echo(client: &mut TestClient) -> Value {
    client.start("tools/call", echo("hi")).await
}

#[tokio::test]
async fn an_approved_call_runs_once_and_its_client_gets_progress_and_result() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.ec*"]));
    let server = test_env.fixture("a").with("--progress", 1);
    let gateway = approvals.gateway(&test_env, server).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    // Another tool of the server needs no approval.
    assert!(!ada.call("a.pid", json!({})).await.is_empty());
    let params = json!({
        "name": "a.echo",
        "arguments": { "message": "hi" },
        "_meta": { "progressToken": "p" },
    });
    let id = ada.start("tools/call", params).await;
    let question = open_question(&gateway.gateway).await;
    assert_eq!(question.content.params.get(), r#"{"message":"hi"}"#);
    assert_eq!(
        (&*question.content.asker.principal, &*question.content.tool.host_name),
        ("ada", "a.echo")
    );
    assert!(question.content.tool.definition.unwrap().get().contains("Says the message back."));
    let waits = ada.received("notifications/progress").await;
    let before = waits["params"]["progress"].as_f64().unwrap();
    assert!(before < 0.0 && waits["params"]["message"].as_str().unwrap().contains("approval"));
    assert_eq!(calls(&test_env), 1);

    approve(&gateway.gateway, question.id).await;
    let progress = ada.received("notifications/progress").await;
    assert!(progress["params"]["progress"].as_f64().unwrap() > before);
    assert_eq!(text(&ada.response(&id).await["result"]), "hi");
    let done = wait_for(&gateway.gateway, question.id, QuestionState::Done).await;
    assert_eq!(done.answer.by.as_deref(), Some("ann"));
    assert!(done.answer.response.unwrap().get().contains("hi"));
    assert_eq!(calls(&test_env), 2);
}

#[tokio::test]
async fn a_declined_call_sends_nothing_and_the_error_names_tool_question_and_reason() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let gateway = approvals.gateway(&test_env, test_env.fixture("a")).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let id = start_echo(&mut ada).await;
    let question = open_question(&gateway.gateway).await;
    let outcome = answer(&gateway.gateway, question.id, "ann", decline(Some("not today"))).await;
    assert!(matches!(outcome, AnswerOutcome::Won(_)), "{outcome:?}");
    let error = ada.response(&id).await["error"].take();
    let message = error["message"].as_str().unwrap();
    let named = ["`a.echo`", "not today", &question.id.to_string(), "ask the operator"];
    assert!(named.iter().all(|part| message.contains(part)), "{message}");
    assert_eq!((&error["code"], &error["data"]["mayHaveRun"]), (&json!(-32000), &json!(false)));
    assert_eq!(calls(&test_env), 0);
}

/// Attack: remote | two operators answer at the same time, one approves and one declines, then both
/// answer again | one answer wins, the other operator learns whose, and the tool runs at most once |
/// No repeated execution
#[tokio::test]
async fn of_two_operators_one_wins_and_the_other_is_told_who() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let gateway = approvals.gateway(&test_env, test_env.fixture("a")).await;
    let gateway = &gateway;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let id = start_echo(&mut ada).await;
    let question = open_question(&gateway.gateway).await.id;
    let try_answer = async |operator| {
        answer(&gateway.gateway, question, operator, OperatorAnswer::Approve).await
    };
    let outcomes: [AnswerOutcome; 2] = tokio::join!(try_answer("ann"), try_answer("bob")).into();
    let winner = outcomes.iter().find_map(|outcome| match outcome {
        AnswerOutcome::Won(question) => question.answer.by.clone(),
        _ => None,
    });
    let told = outcomes.iter().find_map(|outcome| match outcome {
        AnswerOutcome::Lost(question) => question.answer.by.clone(),
        _ => None,
    });
    assert!(winner.is_some() && winner == told, "{outcomes:?}");
    assert_eq!(text(&ada.response(&id).await["result"]), "hi");
    wait_for(&gateway.gateway, question, QuestionState::Done).await;
    for late in [OperatorAnswer::Approve, decline(None)] {
        let outcome = answer(&gateway.gateway, question, "cid", late).await;
        let AnswerOutcome::Lost(question) = outcome else { panic!("{outcome:?}") };
        assert_eq!(question.answer.by, winner);
    }
    assert_eq!(calls(&test_env), 1);
}

#[tokio::test]
async fn a_call_that_nobody_approves_in_time_sends_nothing() {
    let (test_env, mut approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    approvals.options.expiry = Duration::from_millis(300);
    let gateway = approvals.gateway(&test_env, test_env.fixture("a")).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let id = start_echo(&mut ada).await;
    let question = open_question(&gateway.gateway).await.id;
    let error = ada.response(&id).await["error"].take();
    assert!(error["message"].as_str().unwrap().contains("in time"), "{error}");
    let outcome = answer(&gateway.gateway, question, "ann", OperatorAnswer::Approve).await;
    let AnswerOutcome::Lost(expired) = outcome else { panic!("{outcome:?}") };
    assert_eq!(expired.state, QuestionState::Expired);
    assert_eq!(calls(&test_env), 0);
}

/// Sends a call of the modern era, with a state if there is one. Returns the response.
async fn modern_call(client: &mut TestClient, message: &str, state: Option<&Value>) -> Value {
    let mut params = echo(message);
    if let Some(state) = state {
        params["requestState"] = state.clone();
    }
    client.respond("tools/call", params).await
}

async fn modern_state(client: &mut TestClient) -> Value {
    let mut response = modern_call(client, "hi", None).await;
    assert_eq!(response["result"]["resultType"], "input_required", "{response}");
    response["result"]["requestState"].take()
}

/// Attack: remote | a client replays the state of an approved call, sends it with other arguments, and
/// invents states; another client sends the state of the first | the tool runs once, and only its own
/// client gets the result | Isolation
#[tokio::test]
async fn the_state_of_a_call_gives_its_result_to_its_own_client_alone_and_runs_nothing() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let gateway = approvals.gateway(&test_env, test_env.fixture("a")).await;
    let mut ada = gateway.modern("ada", json!({}));
    let mut eve = gateway.modern("eve", json!({}));
    let state = modern_state(&mut ada).await;
    let question = open_question(&gateway.gateway).await.id;
    let invented = json!(format!("innkeeper-approval:{}", QuestionId::random()));
    let other = json!("innkeeper-approval:");
    let mut refusals = Vec::new();
    for (is_eve, message, state) in [
        (true, "hi", &state),
        (true, "hi", &invented),
        (false, "ho", &state),
        (false, "hi", &other),
        (false, "hi", &json!("xyz")),
    ] {
        let client = if is_eve { &mut eve } else { &mut ada };
        let mut response = modern_call(client, message, Some(state)).await;
        refusals.push(response["error"].take());
    }
    assert!(refusals[0]["message"].as_str().unwrap().contains("belongs to no call"));
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{refusals:?}");
    approve(&gateway.gateway, question).await;
    for _ in 0..3 {
        let response = modern_call(&mut ada, "hi", Some(&state)).await;
        assert_eq!(text(&response["result"]), "hi");
        assert_eq!(response["result"]["resultType"], "complete");
    }
    assert_eq!(modern_call(&mut eve, "hi", Some(&state)).await["error"], refusals[0]);
    assert_eq!(calls(&test_env), 1);
}

#[tokio::test]
async fn a_call_that_waits_when_its_gateway_ends_runs_once_in_the_next_gateway() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let before = approvals.gateway(&test_env, test_env.fixture("a")).await;
    let state = modern_state(&mut before.modern("ada", json!({}))).await;
    let question = open_question(&before.gateway).await.id;
    before.host.shutdown().await;
    drop(before);

    let after = approvals.gateway(&test_env, test_env.fixture("a")).await;
    let mut ada = after.modern("ada", json!({}));
    let waiting = modern_call(&mut ada, "hi", Some(&state));
    let (response, ()) = tokio::join!(waiting, approve(&after.gateway, question));
    assert_eq!(text(&response["result"]), "hi");
    assert_eq!(calls(&test_env), 1);
}

/// Attack: data | a server changes the definition of a tool after an operator saw a question about
/// the old one | the call ends without a request, and client and operator learn why | Complete checks
#[tokio::test]
async fn a_call_whose_definition_has_changed_since_the_question_does_not_run() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let tools = |text: &str| json!([{ "name": "echo", "description": text, "inputSchema": { "type": "object" } }]);
    let server = test_env.fixture("a").with("--tools", tools("Says the message."));
    let before = approvals.gateway(&test_env, server).await;
    let state = modern_state(&mut before.modern("ada", json!({}))).await;
    let question = open_question(&before.gateway).await.id;
    before.host.shutdown().await;
    drop(before);

    let server = test_env.fixture("a").with("--tools", tools("Deletes everything."));
    let after = approvals.gateway(&test_env, server).await;
    let outcome = answer(&after.gateway, question, "ann", OperatorAnswer::Approve).await;
    let AnswerOutcome::Lost(ended) = outcome else { panic!("{outcome:?}") };
    assert_eq!(ended.state, QuestionState::Ended);
    assert!(ended.answer.reason.unwrap().contains("the definition of `a.echo` has changed"));
    let mut ada = after.modern("ada", json!({}));
    let response = modern_call(&mut ada, "hi", Some(&state)).await;
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.contains("has changed"), "{message}");
    assert_eq!(calls(&test_env), 0);
}

#[tokio::test]
async fn a_client_that_cancels_its_call_ends_the_question() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let gateway = approvals.gateway(&test_env, test_env.fixture("a")).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let id = start_echo(&mut ada).await;
    let question = open_question(&gateway.gateway).await.id;
    ada.notify("notifications/cancelled", json!({ "requestId": id })).await;
    let ended = wait_for(&gateway.gateway, question, QuestionState::Ended).await;
    assert_eq!(ended.answer.reason.as_deref(), Some("the client cancelled the call"));
    assert_eq!(calls(&test_env), 0);
}

#[tokio::test]
async fn a_call_of_a_client_that_has_left_runs_and_its_result_is_kept() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let gateway = approvals.gateway(&test_env, test_env.fixture("a")).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    start_echo(&mut ada).await;
    let question = open_question(&gateway.gateway).await.id;
    ada.vanish().await;
    approve(&gateway.gateway, question).await;
    let done = wait_for(&gateway.gateway, question, QuestionState::Done).await;
    assert!(done.answer.response.unwrap().get().contains("hi"));
    assert_eq!(calls(&test_env), 1);
}

/// Attack: remote | a client calls a tool that needs an approval by another name: over an endpoint with
/// flat names, and through `call_tool` | each way waits for the approval | Approval first
#[tokio::test]
async fn no_other_name_of_a_tool_avoids_the_approval() {
    for pattern in ["a.echo", "echo"] {
        let test_env = TestEnv::new();
        let approvals = Approvals::of(&[pattern]);
        let server = test_env.fixture("a").journal(&test_env.journal());
        let endpoint = EndpointOptions { search: true, ..EndpointOptions::default() };
        let connection_servers = vec!["a".to_owned()];
        let options = GatewayOptions { endpoint, connection_servers, ..GatewayOptions::default() };
        let questions = PendingQuestions::new(approvals.store.clone(), approvals.options.clone());
        let builder = GatewayBuilder::new(options).questions(questions);
        let gateway = test_env.gateway_with(builder, [server]).await;
        let mut flat = gateway.connect_to_server("ada", "a");
        let mut found = gateway.initialized("ada", json!({})).await;
        let arguments = json!({ "message": "hi" });
        flat.start("tools/call", json!({ "name": "echo", "arguments": arguments })).await;
        let first = open_question(&gateway.gateway).await;
        assert_eq!((&*first.content.tool.item, &*first.content.tool.host_name), ("echo", "a.echo"));
        approve(&gateway.gateway, first.id).await;
        wait_for(&gateway.gateway, first.id, QuestionState::Done).await;
        assert_eq!(calls(&test_env), 1);
        let inner = json!({ "name": "a.echo", "arguments": arguments });
        found.start("tools/call", json!({ "name": "call_tool", "arguments": inner })).await;
        let second = open_question(&gateway.gateway).await;
        assert_eq!(&*second.content.tool.item, "a.echo");
        assert_eq!(calls(&test_env), 1);
    }
}

#[tokio::test]
async fn arguments_that_are_too_large_for_a_question_are_an_error() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let gateway = approvals.gateway(&test_env, test_env.fixture("a")).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let fitting = MAX_ARGUMENT_BYTES - r#"{"message":""}"#.len();
    let response = ada.respond("tools/call", echo(&"x".repeat(fitting + 1))).await;
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.contains("smaller arguments"), "{message}");
    ada.start("tools/call", echo(&"x".repeat(fitting))).await;
    let question = open_question(&gateway.gateway).await;
    assert_eq!(question.content.params.get().len(), MAX_ARGUMENT_BYTES);
    assert_eq!(calls(&test_env), 0);
}

/// Attack: remote | an operator approves a call after its client lost the permission for the tool | the
/// call ends without a request | Isolation
#[tokio::test]
async fn a_call_that_the_client_may_no_longer_make_does_not_run() {
    use innkeeper_gateway::policy::ToolPolicy;
    use innkeeper_host::config::ToolFilter;

    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let before = approvals.gateway(&test_env, test_env.fixture("a")).await;
    modern_state(&mut before.modern("ada", json!({}))).await;
    let question = open_question(&before.gateway).await.id;
    before.host.shutdown().await;
    drop(before);
    let rules = ToolFilter { deny: vec!["a.echo".to_owned()], ..ToolFilter::default() };
    let builder = approvals.builder().policy(ToolPolicy::new([], rules));
    let server = test_env.fixture("a").journal(&test_env.journal());
    let after = test_env.gateway_with(builder, [server]).await;
    let outcome = answer(&after.gateway, question, "ann", OperatorAnswer::Approve).await;
    let AnswerOutcome::Lost(ended) = outcome else { panic!("{outcome:?}") };
    assert_eq!(ended.answer.reason.as_deref(), Some("the client may no longer use `a.echo`"));
    assert_eq!(calls(&test_env), 0);
}

#[tokio::test]
async fn an_operator_learns_that_the_server_of_a_call_is_not_ready_and_the_question_waits_on() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let before = approvals.gateway(&test_env, test_env.fixture("a")).await;
    modern_state(&mut before.modern("ada", json!({}))).await;
    let question = open_question(&before.gateway).await.id;
    before.host.shutdown().await;
    let outcome = answer(&before.gateway, question, "ann", OperatorAnswer::Approve).await;
    assert!(matches!(outcome, AnswerOutcome::NotNow(_)), "{outcome:?}");
    assert_eq!(open_question(&before.gateway).await.id, question);
}

/// Attack: remote | a call whose process claimed it and was killed is approved again | the call does not
/// run again, and its client learns that the outcome is unknown | No repeated execution
#[tokio::test]
async fn a_call_that_another_process_claimed_does_not_run_here() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.*"]));
    let gateway = approvals.gateway(&test_env, test_env.fixture("a")).await;
    modern_state(&mut gateway.modern("ada", json!({}))).await;
    let question = open_question(&gateway.gateway).await.id;
    let claim = QuestionChange::claim("bob", "another process");
    gateway.gateway.questions().unwrap().store().change(question, &claim).await.unwrap();
    let outcome = answer(&gateway.gateway, question, "ann", OperatorAnswer::Approve).await;
    let AnswerOutcome::Lost(running) = outcome else { panic!("{outcome:?}") };
    assert_eq!(running.claimed_by.as_deref(), Some("another process"));
    assert_eq!(calls(&test_env), 0);
}

/// A store whose responses to changes arrive late, as over a network.
#[derive(Debug, Default)]
struct LateStore {
    store: MemoryQuestionStore,
    /// Notified when a change is made.
    changed: Notify,
    /// Set when the responses may arrive.
    arrives: SetOnce<()>,
}

impl QuestionStore for LateStore {
    fn add<'a>(
        &'a self,
        id: QuestionId,
        question: &'a NewQuestion,
        expiry: Duration,
    ) -> StoreFuture<'a, QuestionAdded> {
        self.store.add(id, question, expiry)
    }

    fn find(&self, id: QuestionId) -> StoreFuture<'_, Option<Question>> {
        self.store.find(id)
    }

    fn list(
        &self,
        list: QuestionList,
        before: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Question>> {
        self.store.list(list, before, limit)
    }

    fn count_open(&self) -> StoreFuture<'_, usize> {
        self.store.count_open()
    }

    fn change<'a>(
        &'a self,
        id: QuestionId,
        change: &'a QuestionChange,
    ) -> StoreFuture<'a, Changed> {
        Box::pin(async move {
            let changed = self.store.change(id, change).await;
            self.changed.notify_one();
            self.arrives.wait().await;
            changed
        })
    }

    fn renew(&self, id: QuestionId) -> StoreFuture<'_, bool> {
        self.store.renew(id)
    }

    fn changes(&self, seen: u64) -> StoreFuture<'_, u64> {
        self.store.changes(seen)
    }
}

/// Attack: remote | the browser of an operator leaves between the approval and the response of the store |
/// the call runs once, and its client gets the result | No repeated execution
#[tokio::test]
async fn a_call_runs_if_its_operator_leaves_during_the_approval() {
    let test_env = TestEnv::new();
    let store = Arc::new(LateStore::default());
    let options = Approvals::of(&["a.*"]).options;
    let builder = GatewayBuilder::new(GatewayOptions::default())
        .questions(PendingQuestions::new(store.clone(), options));
    let server = test_env.fixture("a").journal(&test_env.journal());
    let gateway = test_env.gateway_with(builder, [server]).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let call = start_echo(&mut ada).await;
    let id = open_question(&gateway.gateway).await.id;
    tokio::select! {
        biased;
        _ = gateway.gateway.answer_question(id, "ann", OperatorAnswer::Approve) => {
            panic!("the store has not responded");
        }
        () = store.changed.notified() => {}
    }
    store.arrives.set(()).unwrap();
    assert_eq!(text(&ada.response(&call).await["result"]), "hi");
    wait_for(&gateway.gateway, id, QuestionState::Done).await;
    assert_eq!(calls(&test_env), 1);
}

/// Attack: remote | a client calls a stopped server while an operator approves another call of it | the
/// server starts once, and neither call waits for the end of the other | No unbounded wait
#[tokio::test]
async fn an_approved_call_and_another_call_share_the_start_of_their_server() {
    let (test_env, approvals) = (TestEnv::new(), Approvals::of(&["a.ec*"]));
    let server = test_env.fixture("a").with("--init-delay", 300).config_key("idleTimeout", 0.05);
    let gateway = approvals.gateway(&test_env, server).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let mut bob = gateway.initialized("bob", json!({})).await;
    let call = start_echo(&mut ada).await;
    let question = open_question(&gateway.gateway).await;
    test_env.wait_for_processes(0).await;
    let both = async {
        tokio::join!(approve(&gateway.gateway, question.id), bob.call("a.pid", json!({})))
    };
    timeout(TEST_TIMEOUT, both).await.expect("both calls run");
    assert_eq!(text(&ada.response(&call).await["result"]), "hi");
}
