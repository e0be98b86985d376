//! A call that can wait for its client between two requests.

use std::fmt;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use indexmap::IndexMap;
use innkeeper_host::Callback;
use innkeeper_protocol::skim;
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep};

use super::{
    CallResult, CurrentStream, GATHERING_TIME, MAX_INPUT_REQUESTS, MAX_PARKED, MissingCapabilities,
    OpenInput, ParkingCallback,
};
use crate::client::ClientIdentity;
use crate::error::RpcError;
use crate::principal::Principal;
use crate::server_use::ServerUse;

type CallFuture = Pin<Box<dyn Future<Output = CallResult> + Send>>;

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

impl CallIdentity {
    /// Returns a text that no other identity has.
    pub(super) fn text(&self) -> String {
        let Self { server, method, item, principal, endpoint, digest } = self;
        json!([server, method, item, **principal.id(), endpoint, digest]).to_string()
    }
}

/// A call that can wait for input.
pub(crate) struct ParkableCall {
    future: CallFuture,
    pub(super) inputs: CallInputs,
    pub(super) round: u32,
    pub(super) identity: CallIdentity,
    pub(super) stream: CurrentStream,
    pub(super) server_use: Arc<ServerUse>,
    pub(super) expires: Instant,
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
        identity: CallIdentity,
        server_use: Arc<ServerUse>,
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
            inputs: CallInputs::new(inputs),
            round: 0,
            identity,
            stream,
            server_use,
            expires: Instant::now() + MAX_PARKED,
        }
    }

    /// Runs the call until its result or until the server requests input.
    pub(super) async fn run(&mut self) -> Option<CallResult> {
        // Until the first request of the server, there is no limit but that of the call itself.
        let mut gathering: Option<Pin<Box<Sleep>>> = None;
        while self.inputs.open.len() < MAX_INPUT_REQUESTS {
            let gathered = async {
                match &mut gathering {
                    Some(gathering) => gathering.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                result = &mut self.future => return Some(result),
                Some(input) = self.inputs.queue.recv() => self.inputs.add(input),
                () = gathered => break,
            }
            gathering.get_or_insert_with(|| Box::pin(sleep(GATHERING_TIME)));
        }
        None
    }
}

/// The requests of the server of a call.
pub(super) struct CallInputs {
    queue: mpsc::Receiver<OpenInput>,
    /// The requests that the client has not answered yet, by the keys in the result.
    open: Vec<(String, OpenInput)>,
    next_key: u64,
}

impl CallInputs {
    fn new(queue: mpsc::Receiver<OpenInput>) -> Self {
        Self { queue, open: Vec::new(), next_key: 1 }
    }

    /// Returns whether the client has answered all requests.
    pub(super) fn are_answered(&self) -> bool {
        self.open.is_empty()
    }

    /// Adds a request under the name that the server gave it, if no open request has the name.
    fn add(&mut self, input: OpenInput) {
        let key = input
            .request
            .key
            .as_deref()
            .filter(|key| self.open.iter().all(|(open, _)| open != key))
            .map(ToOwned::to_owned);
        let key = key.unwrap_or_else(|| format!("input-{}", self.next_key));
        self.open.push((key, input));
        self.next_key += 1;
    }

    /// Passes the client's responses to the server. Returns an error for a response that is no
    /// object; requests without a response stay open.
    pub(super) fn answer(&mut self, responses: &RawValue) -> Result<(), RpcError> {
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
                let _ = input.answer.send(Ok(response));
            }
        }
        Ok(())
    }

    /// Returns the result that contains the open requests of the server.
    pub(super) fn input_required(&self, state: &str) -> Result<Box<RawValue>, serde_json::Error> {
        let requests = self.open.iter().map(|(key, OpenInput { request, .. })| {
            let params = request.params.as_deref();
            (&**key, InputRequest { method: &request.method, params })
        });
        let input_requests = requests.collect();
        let request_state = state;
        to_raw_value(&InputRequired {
            result_type: "input_required",
            input_requests,
            request_state,
        })
    }
}
