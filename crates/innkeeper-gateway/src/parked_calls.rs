//! Calls of clients of the modern era at servers of the legacy era, whose server requested input.
//!
//! The client gets an `input_required` result and sends the request again with its responses. The
//! call waits in between, without being polled, for at most [`MAX_PARKED`].

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_host::{Callback, CallbackError, CallbackFuture, ServerRequest};
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::error::RpcError;
use crate::principal::Principal;
use crate::sealed_state::{CallState, StateError, StateSealer};
use crate::sink::MessageSink;

/// Time for the client to send its responses: enough for a person to fill a form.
pub(crate) const MAX_PARKED: Duration = Duration::from_mins(5);

/// Maximum number of parked calls of one principal.
pub(crate) const MAX_PARKED_PER_PRINCIPAL: usize = 32;

/// Maximum number of parked calls of a gateway.
pub(crate) const MAX_PARKED_CALLS: usize = 1_024;

/// Maximum number of requests of a server that one result contains.
const MAX_INPUT_REQUESTS: usize = 16;

/// The result of a call.
pub(crate) type CallResult = Result<Box<RawValue>, RpcError>;

type CallFuture = Pin<Box<dyn Future<Output = CallResult> + Send>>;

/// A request of a server that waits for the client.
pub(crate) struct OpenInput {
    request: ServerRequest,
    answer: oneshot::Sender<Result<Value, CallbackError>>,
}

/// The callback of a call that can be parked.
#[derive(Debug)]
pub(crate) struct ParkingCallback(mpsc::Sender<OpenInput>);

impl Callback for ParkingCallback {
    fn respond(&self, request: ServerRequest) -> CallbackFuture {
        let queue = self.0.clone();
        Box::pin(async move {
            let ended = || CallbackError::new(code::INTERNAL_ERROR, "the client has gone");
            let (answer, response) = oneshot::channel();
            queue.send(OpenInput { request, answer }).await.map_err(|_| ended())?;
            response.await.unwrap_or_else(|_| Err(ended()))
        })
    }
}

/// The stream of the client's current request, for the notifications of a call over several
/// requests.
#[derive(Clone, Debug)]
pub(crate) struct CurrentSink(Arc<Mutex<MessageSink>>);

impl CurrentSink {
    pub(crate) fn new(sink: MessageSink) -> Self {
        Self(Arc::new(Mutex::new(sink)))
    }

    pub(crate) fn get(&self) -> MessageSink {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, sink: MessageSink) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sink;
    }
}

/// The request that a parked call belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallIdentity {
    pub(crate) server: Arc<str>,
    pub(crate) method: Arc<str>,
    pub(crate) item: Arc<str>,
    pub(crate) principal: Principal,
    /// SHA-256 of the arguments.
    pub(crate) digest: Arc<str>,
}

/// A call that can wait for input.
pub(crate) struct ParkableCall {
    future: CallFuture,
    inputs: mpsc::Receiver<OpenInput>,
    /// The requests that the client has not answered yet, by the keys in the result.
    open: Vec<(String, OpenInput)>,
    next_key: u64,
    round: u32,
    identity: CallIdentity,
    sink: CurrentSink,
    expires: Instant,
}

impl fmt::Debug for ParkableCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkableCall").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl ParkableCall {
    /// Creates a call from its future and the callback that the future uses.
    pub(crate) fn new<F: Future<Output = CallResult> + Send + 'static>(
        identity: CallIdentity,
        sink: CurrentSink,
        call: impl FnOnce(Arc<dyn Callback>) -> F,
    ) -> Self {
        let (sender, inputs) = mpsc::channel(MAX_INPUT_REQUESTS);
        let future = Box::pin(call(Arc::new(ParkingCallback(sender))));
        let (open, expires) = (Vec::new(), Instant::now() + MAX_PARKED);
        Self { future, inputs, open, next_key: 1, round: 0, identity, sink, expires }
    }

    /// Runs the call until its result or until the server requests input.
    async fn run(&mut self) -> Option<CallResult> {
        tokio::select! {
            biased;
            result = &mut self.future => return Some(result),
            Some(input) = self.inputs.recv() => self.add_open(input),
        }
        while self.open.len() < MAX_INPUT_REQUESTS
            && let Ok(input) = self.inputs.try_recv()
        {
            self.add_open(input);
        }
        None
    }

    fn add_open(&mut self, input: OpenInput) {
        self.open.push((format!("input-{}", self.next_key), input));
        self.next_key += 1;
    }

    /// Passes the client's responses to the server. Returns an error for a response that is no
    /// object; requests without a response stay open.
    fn answer(&mut self, responses: &RawValue) -> Result<(), RpcError> {
        let mut answers = Vec::new();
        for (key, _) in &self.open {
            let Some(response) = skim::member(responses.get(), key) else { continue };
            let response: Value = serde_json::from_str(response)
                .map_err(|error| RpcError::invalid_params(error.to_string()))?;
            if !response.is_object() {
                return Err(RpcError::invalid_params(format!(
                    "`inputResponses/{key}` is not an object"
                )));
            }
            answers.push((key.clone(), response));
        }
        for (key, response) in answers {
            let index = self.open.iter().position(|(open, _)| *open == key);
            if let Some(index) = index {
                let (_, input) = self.open.swap_remove(index);
                // The server may have cancelled its request.
                drop(input.answer.send(Ok(response)));
            }
        }
        Ok(())
    }

    fn input_requests(&self) -> Value {
        let request = |input: &OpenInput| {
            let mut request = Map::new();
            request.insert("method".to_owned(), json!(&*input.request.method));
            if let Some(params) = &input.request.params {
                request.insert("params".to_owned(), json!(params));
            }
            Value::Object(request)
        };
        let requests = self.open.iter().map(|(key, input)| (key.clone(), request(input)));
        Value::Object(requests.collect())
    }
}

/// The parked calls of a gateway.
pub(crate) struct ParkedCalls {
    sealer: Option<StateSealer>,
    started: Instant,
    table: Mutex<ParkedTable>,
}

#[derive(Default)]
struct ParkedTable {
    calls: HashMap<u64, ParkableCall>,
    next: u64,
}

impl fmt::Debug for ParkedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkedCalls").field("count", &self.table().calls.len()).finish()
    }
}

impl ParkedCalls {
    pub(crate) fn new() -> Self {
        Self { sealer: StateSealer::new(), started: Instant::now(), table: Mutex::default() }
    }

    fn table(&self) -> MutexGuard<'_, ParkedTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a new call. Returns its result, or the result that requests input.
    pub(crate) async fn start(&self, call: ParkableCall) -> CallResult {
        self.run(call).await
    }

    /// Continues a parked call with the responses of the client, whose request must equal the first
    /// request.
    pub(crate) async fn resume(
        &self,
        state: &str,
        responses: Option<&RawValue>,
        identity: &CallIdentity,
        sink: MessageSink,
    ) -> CallResult {
        let invalid = |error: StateError| RpcError::invalid_params(error.to_string());
        let Some(sealer) = &self.sealer else { return Err(invalid(StateError::Foreign)) };
        let state = sealer.open(state).map_err(invalid)?;
        let known =
            CallState { call: state.call, round: state.round, ..self.state(0, 0, identity) };
        if known != (CallState { expires: known.expires, ..state.clone() }) {
            return Err(invalid(StateError::OtherRequest));
        }
        let mut call = {
            let mut table = self.table();
            table.remove_expired();
            // A state of an earlier round was already used.
            let is_current =
                table.calls.get(&state.call).is_some_and(|call| call.round == state.round);
            let call = is_current.then(|| table.calls.remove(&state.call)).flatten();
            call.ok_or(StateError::Expired).map_err(invalid)?
        };
        if let Some(responses) = responses
            && let Err(error) = call.answer(responses)
        {
            self.table().calls.insert(state.call, call);
            return Err(error);
        }
        call.sink.set(sink);
        if call.open.is_empty() { self.run(call).await } else { self.park(call) }
    }

    async fn run(&self, mut call: ParkableCall) -> CallResult {
        match call.run().await {
            Some(result) => result,
            None => self.park(call),
        }
    }

    fn park(&self, mut call: ParkableCall) -> CallResult {
        let too_many = || {
            RpcError::new(code::INTERNAL_ERROR, "too many calls wait for input of their clients")
        };
        let sealer = self.sealer.as_ref().ok_or_else(too_many)?;
        call.round += 1;
        call.sink.set(MessageSink::None);
        let requests = call.input_requests();
        let mut table = self.table();
        table.remove_expired();
        let principal = &call.identity.principal;
        let own = table.calls.values().filter(|other| other.identity.principal == *principal);
        if own.count() >= MAX_PARKED_PER_PRINCIPAL || table.calls.len() >= MAX_PARKED_CALLS {
            return Err(too_many());
        }
        table.next += 1;
        let number = table.next;
        let state = sealer.seal(&self.state(number, call.round, &call.identity));
        let state = state.ok_or_else(too_many)?;
        table.calls.insert(number, call);
        drop(table);
        let result = json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": state,
        });
        serde_json::value::to_raw_value(&result)
            .map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
    }

    fn state(&self, call: u64, round: u32, identity: &CallIdentity) -> CallState {
        let CallIdentity { server, method, item, principal, digest } = identity;
        CallState {
            call,
            round,
            server: (**server).to_owned(),
            method: (**method).to_owned(),
            item: (**item).to_owned(),
            principal: (**principal.id()).to_owned(),
            digest: (**digest).to_owned(),
            expires: (self.started.elapsed() + MAX_PARKED).as_secs(),
        }
    }

    /// Cancels the calls whose client did not respond in time. Returns the number of remaining
    /// calls.
    pub(crate) fn remove_expired(&self) -> usize {
        let mut table = self.table();
        table.remove_expired();
        table.calls.len()
    }
}

impl ParkedTable {
    fn remove_expired(&mut self) {
        let now = Instant::now();
        self.calls.retain(|_, call| call.expires > now);
    }
}
