//! Tests of whose question it is, without a server: a call ends when its value is dropped.

use std::future::pending;

use futures_util::poll;
use innkeeper_host::{CallReference, CallbackError, CallbackResult, RemoteClient};
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::method;
use serde_json::{Value, json};

use super::*;
use crate::sink::MessageSink;

const SECOND: Duration = Duration::from_secs(1);

fn client(principal: &str) -> CallClient {
    CallClient::new(Principal::new(principal), None)
}

fn session(principal: &str) -> (Arc<Client>, CallClient) {
    let principal = Principal::new(principal);
    let client = Arc::new(Client::new(principal.clone(), 0, MessageSink::None));
    let of_call = CallClient::new(principal, Some(&client));
    (client, of_call)
}

/// A call at the server; `hold` is what the host has of it.
struct Call {
    running: RunningCall,
    hold: Arc<dyn CallHold>,
}

/// Starts a call that is asked through a callback, by a client that declares forms.
fn start_with(
    owners: &Arc<QuestionOwners>,
    client: &CallClient,
    callback: Arc<dyn Callback>,
) -> Call {
    let capabilities = RawValue::from_string(r#"{"elicitation":{}}"#.to_owned()).unwrap();
    let mut options = CallOptions {
        callback: Some(callback),
        client: RemoteClient { capabilities: Some(capabilities.into()), ..RemoteClient::default() },
        ..CallOptions::default()
    };
    let running = owners.start(client.clone(), true, &mut options);
    Call { running, hold: options.client.hold.take().unwrap() }
}

/// Starts a call whose client answers a question with the label of the call.
fn start(owners: &Arc<QuestionOwners>, client: &CallClient, label: &'static str) -> Call {
    start_with(owners, client, Arc::new(move |_: ServerRequest| async move { Ok(json!(label)) }))
}

fn question(method: &str) -> ServerRequest {
    ServerRequest {
        server: "files".into(),
        key: None,
        method: method.into(),
        params: None,
        call: CallReference::Unknown,
    }
}

fn ask(owners: &Arc<QuestionOwners>) -> CallbackFuture {
    owners.ask(question(method::ELICITATION_CREATE))
}

/// Asserts that a call answered.
fn assert_answer(answer: CallbackResult, label: &str) {
    assert_eq!(answer.unwrap().get(), json!(label).to_string());
}

/// Asserts that no client was asked, and that the error says what to do.
fn assert_refused(answer: CallbackResult, reason: &str) {
    let error = answer.unwrap_err();
    for part in ["`files`", reason, r#""share": "principal""#, "`session`"] {
        assert!(error.message.contains(part), "{part}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_reaches_the_latest_call_of_the_only_client_at_once() {
    let owners = Arc::<QuestionOwners>::default();
    let _calls =
        [start(&owners, &client("ada"), "first"), start(&owners, &client("ada"), "second")];
    let started = Instant::now();
    assert_answer(ask(&owners).await, "second");
    assert_eq!(started.elapsed(), Duration::ZERO);
}

/// Attack: remote | a server over a pipe asks while calls of two principals are in flight | the
/// question waits, and reaches the client whose call goes on | Own response
#[tokio::test(start_paused = true)]
async fn a_question_waits_until_only_one_client_can_own_it() {
    let owners = Arc::<QuestionOwners>::default();
    let slow = start(&owners, &client("ada"), "ada");
    let _asking = start(&owners, &client("bob"), "bob");
    let mut question = ask(&owners);
    tokio::time::advance(3 * SECOND).await;
    assert!(poll!(&mut question).is_pending());
    drop(slow);
    assert_answer(question.await, "bob");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_starts_after_a_question_is_no_suspect() {
    let owners = Arc::<QuestionOwners>::default();
    let _first = start(&owners, &client("ada"), "ada");
    let question = ask(&owners);
    let _later = start(&owners, &client("bob"), "bob");
    assert_answer(question.await, "ada");
}

#[tokio::test(start_paused = true)]
async fn two_sessions_of_a_principal_wait_for_each_other_without_the_delay_of_late_questions() {
    let owners = Arc::<QuestionOwners>::default();
    let ((_first, first), (_second, second)) = (session("ada"), session("ada"));
    let (slow, _asking) = (start(&owners, &first, "first"), start(&owners, &second, "second"));
    let mut question = ask(&owners);
    assert!(poll!(&mut question).is_pending());
    let started = Instant::now();
    drop(slow);
    assert_answer(question.await, "second");
    assert_eq!(started.elapsed(), Duration::ZERO);
}

/// Attack: remote | a client has a call that never ends while the server asks another client | the
/// question is refused after a minute | No unbounded wait
#[tokio::test(start_paused = true)]
async fn a_question_that_several_clients_may_own_is_refused_after_a_minute() {
    let owners = Arc::<QuestionOwners>::default();
    let _calls = [start(&owners, &client("ada"), "ada"), start(&owners, &client("bob"), "bob")];
    let started = Instant::now();
    assert_refused(ask(&owners).await, "several clients are in flight");
    assert_eq!(started.elapsed(), MAX_UNDECIDED_TIME);
    assert!(owners.state().undecided.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_question_without_a_call_is_refused() {
    let owners = Arc::<QuestionOwners>::default();
    assert_refused(ask(&owners).await, "no call");
    let (slow, asking) =
        (start(&owners, &client("ada"), "ada"), start(&owners, &client("bob"), "bob"));
    let mut question = ask(&owners);
    assert!(poll!(&mut question).is_pending());
    drop((slow, asking));
    assert_refused(question.await, "no call");
}

#[tokio::test(start_paused = true)]
async fn of_two_questions_in_two_calls_the_newest_is_refused_and_the_other_is_answered() {
    let owners = Arc::<QuestionOwners>::default();
    let (ada, bob) = (start(&owners, &client("ada"), "ada"), start(&owners, &client("bob"), "bob"));
    let mut first = ask(&owners);
    assert!(poll!(&mut first).is_pending());
    let started = Instant::now();
    assert_refused(ask(&owners).await, "same time");
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(poll!(&mut first).is_pending());
    drop(bob);
    assert_answer(first.await, "ada");
    drop(ada);
}

#[tokio::test(start_paused = true)]
async fn questions_wait_for_calls_that_ask_nothing_and_only_the_newest_of_a_dead_end_is_refused() {
    let owners = Arc::<QuestionOwners>::default();
    let (ada, bob) = (start(&owners, &client("ada"), "ada"), start(&owners, &client("bob"), "bob"));
    let mut first = ask(&owners);
    let (eve, slow) =
        (start(&owners, &client("eve"), "eve"), start(&owners, &client("dan"), "dan"));
    let mut second = ask(&owners);
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    let mut third = ask(&owners);
    assert!(poll!(&mut third).is_pending(), "one of four calls may end");
    drop(slow);
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    assert_refused(third.await, "same time");
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    drop(eve);
    assert!(poll!(&mut first).is_pending());
    assert_refused(second.await, "same time");
    drop(bob);
    assert_answer(first.await, "ada");
    drop(ada);
}

/// Attack: data | after the response to one client, the server asks with the data of that client
/// while a short call of another principal runs | no client gets the question | Own response
#[tokio::test(start_paused = true)]
async fn a_late_question_is_held_and_refused_when_the_call_in_flight_ends() {
    let owners = Arc::<QuestionOwners>::default();
    let _ = start(&owners, &client("ada"), "ada");
    let short = start(&owners, &client("bob"), "bob");
    let mut late = ask(&owners);
    tokio::time::advance(LATE_QUESTION_TIME - Duration::from_millis(1)).await;
    assert!(poll!(&mut late).is_pending());
    drop(short);
    assert_refused(late.await, "have ended");
}

/// Attack: data | the server asks and responds to the same call at once, without waiting for the
/// answer, while a call of another principal runs | the question is held | Own response
#[tokio::test(start_paused = true)]
async fn a_question_of_a_call_that_does_not_wait_for_the_answer_is_held() {
    let owners = Arc::<QuestionOwners>::default();
    let careless = start(&owners, &client("ada"), "ada");
    let other = start(&owners, &client("bob"), "bob");
    let mut question = ask(&owners);
    assert!(poll!(&mut question).is_pending());
    drop(careless);
    assert!(poll!(&mut question).is_pending());
    drop(other);
    assert_refused(question.await, "have ended");
}

#[tokio::test(start_paused = true)]
async fn a_held_question_reaches_a_call_that_goes_on() {
    let owners = Arc::<QuestionOwners>::default();
    let _ = start(&owners, &client("ada"), "ada");
    for (passed, delay) in [
        (Duration::ZERO, LATE_QUESTION_TIME),
        (ENDED_CALL_TIME - 2 * LATE_QUESTION_TIME, LATE_QUESTION_TIME),
        (2 * LATE_QUESTION_TIME, Duration::ZERO),
    ] {
        tokio::time::advance(passed).await;
        let call = start(&owners, &client("bob"), "bob");
        let started = Instant::now();
        assert_answer(ask(&owners).await, "bob");
        assert_eq!(started.elapsed(), delay, "{passed:?}");
        drop(call);
    }
}

#[tokio::test(start_paused = true)]
async fn of_the_ended_calls_the_last_of_another_principal_counts() {
    let owners = Arc::<QuestionOwners>::default();
    let end = |name| drop(start(&owners, &client(name), "call"));
    let ended_beside =
        |name: &str| owners.state().other_ended(&Principal::new(name), Instant::now());
    assert!(!ended_beside("ada"));
    end("ada");
    end("ada");
    assert!(!ended_beside("ada") && ended_beside("bob"));
    tokio::time::advance(ENDED_CALL_TIME / 2).await;
    end("bob");
    assert!(ended_beside("ada") && ended_beside("bob") && ended_beside("eve"));
    tokio::time::advance(ENDED_CALL_TIME / 2).await;
    assert!(ended_beside("ada") && !ended_beside("bob"));
    end("bob");
    end("ada");
    assert!(ended_beside("ada") && ended_beside("bob"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_declare_the_capability_is_not_asked() {
    let owners = Arc::<QuestionOwners>::default();
    let ada = start(&owners, &client("ada"), "ada");
    let sampling = owners.ask(question(method::SAMPLING_CREATE_MESSAGE)).await;
    assert_eq!(sampling.unwrap_err().code, code::METHOD_NOT_FOUND);
    let _silent = owners.start(client("bob"), true, &mut CallOptions::default());
    let mut waiting = ask(&owners);
    assert!(
        poll!(&mut waiting).is_pending(),
        "a call of a client that answers nothing can ask, too"
    );
    drop(ada);
    assert_eq!(waiting.await.unwrap_err().code, code::METHOD_NOT_FOUND);
}

/// Attack: data | a server ignores the cancellation of a call and asks for the call while a call of
/// another principal runs | the question is refused until the server responds | Own response
#[tokio::test(start_paused = true)]
async fn a_call_that_its_client_abandoned_stays_a_suspect_until_the_server_responds() {
    let owners = Arc::<QuestionOwners>::default();
    let Call { running, hold } = start(&owners, &client("ada"), "ada");
    let _other = start(&owners, &client("bob"), "bob");
    let mut question = ask(&owners);
    drop(running);
    tokio::time::advance(MAX_UNDECIDED_TIME - SECOND).await;
    assert!(poll!(&mut question).is_pending());
    let mut second = ask(&owners);
    tokio::time::advance(SECOND).await;
    assert_refused(question.await, "several clients");
    assert!(poll!(&mut second).is_pending());
    drop(hold);
    assert_answer(second.await, "bob");
}

/// Attack: remote | a client abandons more calls than the host remembers | the server counts as
/// processing them, and no other principal gets a question | Own response
#[tokio::test(start_paused = true)]
async fn an_abandoned_call_that_the_host_forgets_stays_a_suspect_for_its_time() {
    let owners = Arc::<QuestionOwners>::default();
    let abandoned = start(&owners, &client("ada"), "ada");
    abandoned.hold.forget(10 * MAX_UNDECIDED_TIME);
    drop(abandoned);
    let ada = start(&owners, &client("ada"), "ada");
    assert_answer(ask(&owners).await, "ada");
    drop(ada);
    let bob = start(&owners, &client("bob"), "bob");
    assert_refused(ask(&owners).await, "several clients");
    assert!(!bob.running.owns_log_messages());
    tokio::time::advance(9 * MAX_UNDECIDED_TIME + SECOND).await;
    assert_answer(ask(&owners).await, "bob");
}

#[tokio::test(start_paused = true)]
async fn a_question_is_withdrawn_when_the_calls_of_its_client_end() {
    let owners = Arc::<QuestionOwners>::default();
    let silent: Arc<dyn Callback> = Arc::new(|_: ServerRequest| pending::<Result<Value, _>>());
    let calls = [(); 2].map(|()| start_with(&owners, &client("ada"), silent.clone()));
    let mut question = ask(&owners);
    let [first, second] = calls;
    for call in [second, first] {
        assert!(poll!(&mut question).is_pending());
        drop(call);
    }
    assert_refused(question.await, "have ended");
}

#[tokio::test(start_paused = true)]
async fn a_question_moves_to_an_earlier_call_of_the_client_when_the_asked_call_ends() {
    let owners = Arc::<QuestionOwners>::default();
    let _first = start(&owners, &client("ada"), "first");
    let (ended, wait) = tokio::sync::oneshot::channel::<()>();
    let wait = Mutex::new(Some(wait));
    // The client of a parked call answers with the call only.
    let parked: Arc<dyn Callback> = Arc::new(move |_: ServerRequest| {
        let wait = wait.lock().unwrap().take();
        async move {
            let _ended = wait.unwrap().await;
            Err::<Value, _>(CallbackError::new(code::INTERNAL_ERROR, "the client has gone"))
        }
    });
    let second = start_with(&owners, &client("ada"), parked);
    let mut question = ask(&owners);
    assert!(poll!(&mut question).is_pending());
    drop(second);
    drop(ended);
    assert_answer(question.await, "first");
}

#[tokio::test(start_paused = true)]
async fn a_request_about_a_task_is_a_suspect_and_is_not_asked() {
    let owners = Arc::<QuestionOwners>::default();
    let callback: Arc<dyn Callback> = Arc::new(|_: ServerRequest| async { Ok(json!("task")) });
    let mut options = CallOptions { callback: Some(callback), ..CallOptions::default() };
    let _task = owners.start(client("ada"), false, &mut options);
    assert_refused(ask(&owners).await, "abandoned");
    let _call = start(&owners, &client("bob"), "bob");
    let mut question = ask(&owners);
    assert!(poll!(&mut question).is_pending());
}

/// Attack: data | a server over a pipe logs the data of one client while, or after, it processes a
/// call of another | no client gets the message | Isolation
#[tokio::test(start_paused = true)]
async fn a_log_message_belongs_to_a_call_if_no_other_client_was_there_lately() {
    let owners = Arc::<QuestionOwners>::default();
    let ada = start(&owners, &client("ada"), "ada");
    let also_ada = start(&owners, &client("ada"), "ada");
    assert!(ada.running.owns_log_messages() && also_ada.running.owns_log_messages());
    let bob = start(&owners, &client("bob"), "bob");
    assert!(!ada.running.owns_log_messages() && !bob.running.owns_log_messages());
    drop((ada, also_ada));
    assert!(!bob.running.owns_log_messages(), "the server may log late");
    tokio::time::advance(2 * ENDED_CALL_TIME).await;
    assert!(!bob.running.owns_log_messages(), "a parked call reads its messages late");
    let next = start(&owners, &client("bob"), "bob");
    assert!(next.running.owns_log_messages());
}
