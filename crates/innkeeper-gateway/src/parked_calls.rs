//! Calls of clients of the modern era at servers of the legacy era, whose server requested input.
//!
//! The client gets an `input_required` result and sends the request again with its responses. The
//! call waits in between, without being polled, for at most [`MAX_PARKED`].

use std::collections::HashMap;
use std::fmt;
use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use innkeeper_host::{Callback, CallbackError, CallbackFuture, CallbackResult, ServerRequest};
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::skim;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep, sleep};

use crate::client::ClientIdentity;
use crate::error::RpcError;
use crate::principal::Principal;
use crate::sealed_state::{CallState, StateError, StateSealer};
use crate::server_use::ServerUse;
use crate::sink::MessageSink;

/// Time for the client to send its responses: enough for a person to fill a form.
pub(crate) const MAX_PARKED: Duration = Duration::from_mins(5);

/// Maximum number of parked calls of one principal.
pub(crate) const MAX_PARKED_PER_PRINCIPAL: usize = 32;

/// Maximum number of parked calls of a gateway.
pub(crate) const MAX_PARKED_CALLS: usize = 1_024;

/// Maximum number of requests of a server that one result contains.
const MAX_INPUT_REQUESTS: usize = 16;

/// Time after the first request of a server for requests that the server sends at once: one result
/// contains them all.
const GATHERING_TIME: Duration = Duration::from_millis(20);

/// The owner of all states: the state itself contains the principal.
const OWNER: &[u8] = b"";

/// The result of a call.
pub(crate) type CallResult = Result<Box<RawValue>, RpcError>;

type CallFuture = Pin<Box<dyn Future<Output = CallResult> + Send>>;

/// A request of a server that waits for the client.
pub(crate) struct OpenInput {
    request: ServerRequest,
    answer: oneshot::Sender<CallbackResult>,
}

/// The capabilities that a server needed in a call, and that the client does not declare.
#[derive(Clone, Debug, Default)]
pub(crate) struct MissingCapabilities(Arc<Mutex<Vec<&'static str>>>);

impl MissingCapabilities {
    fn list(&self) -> MutexGuard<'_, Vec<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, capability: &'static str) {
        let mut list = self.list();
        if !list.contains(&capability) {
            list.push(capability);
        }
    }

    /// Returns the error of a call that failed without the capabilities, or `None` if the server
    /// needed none.
    pub(crate) fn error(&self) -> Option<RpcError> {
        let list = self.list();
        (!list.is_empty()).then(|| RpcError::missing_capabilities(&list))
    }
}

/// The callback of a call that can be parked.
#[derive(Debug)]
pub(crate) struct ParkingCallback {
    queue: mpsc::Sender<OpenInput>,
    client: ClientIdentity,
    missing: MissingCapabilities,
}

impl Callback for ParkingCallback {
    fn respond(&self, request: ServerRequest) -> CallbackFuture {
        if let Some(capability) = self.client.missing_capability(&request.method) {
            self.missing.add(capability);
            let refusal = format!("the client does not declare `{capability}`");
            return Box::pin(ready(Err(CallbackError::new(code::METHOD_NOT_FOUND, refusal))));
        }
        let queue = self.queue.clone();
        Box::pin(async move {
            let ended = || CallbackError::new(code::INTERNAL_ERROR, "the client has gone");
            let (answer, response) = oneshot::channel();
            queue.send(OpenInput { request, answer }).await.map_err(|_| ended())?;
            response.await.unwrap_or_else(|_| Err(ended()))
        })
    }
}

/// Where the notifications of a request go.
#[derive(Clone, Debug)]
pub(crate) struct RequestStream {
    pub(crate) sink: MessageSink,
    /// The token of the client, as JSON text. A request without a token wants no progress.
    pub(crate) progress_token: Option<String>,
}

impl RequestStream {
    const NONE: Self = Self { sink: MessageSink::None, progress_token: None };
}

/// The stream of the client's current request, for the notifications of a call over several
/// requests.
#[derive(Clone, Debug)]
pub(crate) struct CurrentStream(Arc<Mutex<RequestStream>>);

impl CurrentStream {
    pub(crate) fn new(stream: RequestStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    pub(crate) fn get(&self) -> RequestStream {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, stream: RequestStream) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stream;
    }
}

/// The result that requests input of the client.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired<'a> {
    result_type: &'static str,
    input_requests: IndexMap<&'a str, InputRequest<'a>>,
    request_state: &'a str,
}

/// One request of a server, with its parameters as the server sent them.
#[derive(Serialize)]
struct InputRequest<'a> {
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

/// The request that a parked call belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallIdentity {
    pub(crate) server: Arc<str>,
    pub(crate) method: Arc<str>,
    pub(crate) item: Arc<str>,
    pub(crate) principal: Principal,
    /// The position of the endpoint: the same item may be another one elsewhere.
    pub(crate) endpoint: usize,
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
    stream: CurrentStream,
    server_use: Arc<ServerUse>,
    expires: Instant,
}

/// What the future of a call uses.
#[derive(Debug)]
pub(crate) struct CallContext {
    pub(crate) callback: Arc<dyn Callback>,
    pub(crate) missing: MissingCapabilities,
}

impl fmt::Debug for ParkableCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkableCall").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl ParkableCall {
    /// Creates a call of a client from its future.
    pub(crate) fn new<F: Future<Output = CallResult> + Send + 'static>(
        (identity, server_use): (CallIdentity, Arc<ServerUse>),
        client: ClientIdentity,
        stream: CurrentStream,
        call: impl FnOnce(CallContext) -> F,
    ) -> Self {
        let (queue, inputs) = mpsc::channel(MAX_INPUT_REQUESTS);
        let missing = MissingCapabilities::default();
        let callback = ParkingCallback { queue, client, missing: missing.clone() };
        let callback: Arc<dyn Callback> = Arc::new(callback);
        let future = Box::pin(call(CallContext { callback, missing }));
        Self {
            future,
            inputs,
            open: Vec::new(),
            next_key: 1,
            round: 0,
            identity,
            stream,
            server_use,
            expires: Instant::now() + MAX_PARKED,
        }
    }

    /// Runs the call until its result or until the server requests input.
    async fn run(&mut self) -> Option<CallResult> {
        // Until the first request of the server, there is no limit but that of the call itself.
        let mut gathering: Option<Pin<Box<Sleep>>> = None;
        while self.open.len() < MAX_INPUT_REQUESTS {
            let gathered = async {
                match &mut gathering {
                    Some(gathering) => gathering.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                result = &mut self.future => return Some(result),
                Some(input) = self.inputs.recv() => self.add_open(input),
                () = gathered => break,
            }
            gathering.get_or_insert_with(|| Box::pin(sleep(GATHERING_TIME)));
        }
        None
    }

    /// Adds a request under the name that the server gave it, if no open request has the name.
    fn add_open(&mut self, input: OpenInput) {
        let is_free = |key: &&str| self.open.iter().all(|(open, _)| open != key);
        let key = input.request.key.as_deref().filter(is_free).map(ToOwned::to_owned);
        let key = key.unwrap_or_else(|| format!("input-{}", self.next_key));
        self.open.push((key, input));
        self.next_key += 1;
    }

    /// Passes the client's responses to the server. Returns an error for a response that is no
    /// object; requests without a response stay open.
    fn answer(&mut self, responses: &RawValue) -> Result<(), RpcError> {
        let mut answers = Vec::new();
        for (key, _) in &self.open {
            let Some(response) = skim::member(responses.get(), key) else { continue };
            let response = RawValue::from_string(response.to_owned())
                .map_err(|error| RpcError::invalid_params(error.to_string()))?;
            if !response.get().starts_with('{') {
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

    /// Returns the result that contains the open requests of the server.
    fn input_required(&self, state: &str) -> Result<Box<RawValue>, serde_json::Error> {
        let requests = self.open.iter().map(|(key, OpenInput { request, .. })| {
            let params = request.params.as_deref();
            (&**key, InputRequest { method: &request.method, params })
        });
        let (input_requests, request_state) = (requests.collect(), state);
        to_raw_value(&InputRequired {
            result_type: "input_required",
            input_requests,
            request_state,
        })
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
    /// `replica` is the id of this replica, if there are several.
    pub(crate) fn new(replica: Option<&str>) -> Self {
        Self { sealer: StateSealer::new(replica), started: Instant::now(), table: Mutex::default() }
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
        stream: RequestStream,
    ) -> CallResult {
        let invalid = |error: StateError| RpcError::invalid_params(error.to_string());
        let Some(sealer) = &self.sealer else { return Err(invalid(StateError::Foreign)) };
        let state: CallState = sealer.open(state, OWNER).map_err(invalid)?;
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
        call.stream.set(stream);
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
        call.stream.set(RequestStream::NONE);
        let mut table = self.table();
        table.remove_expired();
        let principal = &call.identity.principal;
        let own = table.calls.values().filter(|other| other.identity.principal == *principal);
        if own.count() >= MAX_PARKED_PER_PRINCIPAL || table.calls.len() >= MAX_PARKED_CALLS {
            return Err(too_many());
        }
        table.next += 1;
        let number = table.next;
        let state = sealer.seal(&self.state(number, call.round, &call.identity), OWNER);
        let state = state.ok_or_else(too_many)?;
        let result = call.input_required(&state);
        table.calls.insert(number, call);
        drop(table);
        result.map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
    }

    fn state(&self, call: u64, round: u32, identity: &CallIdentity) -> CallState {
        let CallIdentity { server, method, item, principal, endpoint, digest } = identity;
        CallState {
            call,
            round,
            server: (**server).to_owned(),
            method: (**method).to_owned(),
            item: (**item).to_owned(),
            principal: (**principal.id()).to_owned(),
            endpoint: *endpoint,
            digest: (**digest).to_owned(),
            expires: (self.started.elapsed() + MAX_PARKED).as_secs(),
        }
    }

    /// Cancels the calls at a server, so that the server can stop.
    pub(crate) fn cancel_at(&self, server_use: &Arc<ServerUse>) {
        self.table().calls.retain(|_, call| !Arc::ptr_eq(&call.server_use, server_use));
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
        self.calls.retain(|_, call| now < call.expires);
    }
}

#[cfg(test)]
mod tests;
