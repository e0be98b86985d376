//! Calls of clients of the modern era at servers of the legacy era, whose server requested input.
//!
//! The client gets an `input_required` result and sends the request again with its responses. The
//! call waits in between, without being polled, for at most [`MAX_PARKED`].

mod parking_callback;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_protocol::envelope::code;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::error::RpcError;
use crate::sealed_state::{CallState, StateError, StateSealer};
use crate::server_use::ServerUse;
pub(crate) use parkable_call::{CallContext, CallIdentity, ParkableCall};
pub(crate) use parking_callback::{
    CurrentStream, MissingCapabilities, OpenInput, ParkingCallback, RequestStream,
};

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

pub(crate) type CallResult = Result<Box<RawValue>, RpcError>;

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
            && let Err(error) = call.inputs.answer(responses)
        {
            self.table().calls.insert(state.call, call);
            return Err(error);
        }
        call.stream.set(stream);
        if call.inputs.are_answered() { self.run(call).await } else { self.park(call) }
    }

    async fn run(&self, mut call: ParkableCall) -> CallResult {
        match call.run().await {
            Some(result) => result,
            None => self.park(call),
        }
    }

    fn park(&self, mut call: ParkableCall) -> CallResult {
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
        let result = call.inputs.input_required(&state);
        table.calls.insert(number, call);
        drop(table);
        result.map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
    }

    fn state(&self, call: u64, round: u32, identity: &CallIdentity) -> CallState {
        let expires = (self.started.elapsed() + MAX_PARKED).as_secs();
        CallState { call, round, request: identity.text(), expires }
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

fn too_many() -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "too many calls wait for input of their clients")
}

impl ParkedTable {
    fn remove_expired(&mut self) {
        let now = Instant::now();
        self.calls.retain(|_, call| now < call.expires);
    }
}

mod parkable_call;
#[cfg(test)]
mod tests;
