//! The tool calls that operators make in the console.
//!
//! A call runs in a task of the gateway, so that a page can show its progress. It takes the path of
//! every call, with the time limits of the host: leaving the page does not leak it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use innkeeper_protocol::request_meta::IncomingMeta;
use innkeeper_protocol::{RequestId, RequestParams, Revision, method, skim};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{SetOnce, mpsc};
use tokio::time::Instant;

use crate::caller::Caller;
use crate::client::ClientIdentity;
use crate::error::RpcError;
use crate::json_text::empty_object;
use crate::metrics::ClientTransport;
use crate::principal::Principal;
use crate::request::{ClientRequest, Reply};
use crate::sink::MessageSink;
use crate::state::GatewayState;

/// The form of the requests: arguments that do not match the schema are an error, not a result.
const REVISION: Revision = Revision::V2025_06_18;

/// Maximum number of calls of one operator that run at the same time.
const MAX_RUNNING_CALLS: usize = 16;

/// Maximum number of calls that are kept, with those that run. The oldest finished one is removed.
const MAX_KEPT_CALLS: usize = 64;

/// Maximum size of a result that is kept, in bytes.
pub(super) const MAX_RESULT_BYTES: usize = 4 << 20;

/// Number of progress and log messages of a call that are kept.
const MAX_MESSAGES: usize = 50;

/// Maximum number of characters of a message.
const MAX_MESSAGE_CHARS: usize = 500;

/// Number of notifications that wait for the task of a call; further ones are dropped.
const MAX_QUEUED_NOTIFICATIONS: usize = 64;

/// How a call of the console ended.
#[derive(Debug)]
pub(super) enum CallOutcome {
    /// The result of the tool.
    Result(Box<RawValue>),
    /// The tool returned a result of this size, which is larger than [`MAX_RESULT_BYTES`].
    LargeResult(usize),
    Error(RpcError),
    /// The operator cancelled the call.
    Cancelled,
}

/// The progress that a server reports, as its JSON texts.
#[derive(Clone, Debug, Default)]
pub(super) struct CallProgress {
    /// The last value, and its maximum.
    pub(super) value: Option<(f64, Option<f64>)>,
    /// The messages of progress and log notifications.
    pub(super) messages: VecDeque<String>,
}

#[derive(Debug)]
pub(super) struct ConsoleCall {
    pub(super) number: u64,
    pub(super) principal: Principal,
    pub(super) tool: String,
    pub(super) arguments: Box<RawValue>,
    pub(super) started: Instant,
    progress: Mutex<CallProgress>,
    cancelled: SetOnce<()>,
    ended: SetOnce<(CallOutcome, Duration)>,
}

impl ConsoleCall {
    pub(super) fn started_at(&self) -> DateTime<Utc> {
        Utc::now() - self.started.elapsed()
    }

    pub(super) fn progress(&self) -> CallProgress {
        self.lock_progress().clone()
    }

    fn lock_progress(&self) -> MutexGuard<'_, CallProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the outcome with the duration of a call that has ended.
    pub(super) fn outcome(&self) -> Option<&(CallOutcome, Duration)> {
        self.ended.get()
    }

    /// Waits for the end of the call.
    pub(super) async fn ended(&self) {
        self.ended.wait().await;
    }

    pub(super) fn cancel(&self) {
        // A second call finds the cell set.
        let _ = self.cancelled.set(());
    }

    /// Records a notification of the server.
    fn record(&self, message: &[u8]) {
        let Ok(text) = std::str::from_utf8(message) else { return };
        let Some(params) = skim::member(text, "params") else { return };
        let number = |key| skim::member(params, key).and_then(|value| value.parse::<f64>().ok());
        let is_progress = skim::member(params, "progressToken").is_some();
        let shown = skim::member(params, if is_progress { "message" } else { "data" });
        let shown = shown.map(|value| {
            let text = skim::decode_string(value).unwrap_or(value.into());
            text.chars().take(MAX_MESSAGE_CHARS).collect::<String>()
        });
        let mut progress = self.lock_progress();
        if is_progress {
            progress.value = number("progress").map(|value| (value, number("total")));
        }
        if let Some(shown) = shown {
            if progress.messages.len() >= MAX_MESSAGES {
                progress.messages.pop_front();
            }
            progress.messages.push_back(shown);
        }
    }
}

/// The parameters of `tools/call`.
#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a str,
    arguments: &'a RawValue,
    #[serde(rename = "_meta")]
    meta: ProgressMeta,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressMeta {
    /// The task of a call receives the notifications of no other call.
    progress_token: u8,
}

/// The operator has [`MAX_RUNNING_CALLS`] calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_RUNNING_CALLS} calls of this operator are running: cancel one, or wait for its end")]
pub(super) struct TooManyCalls;

/// The calls of all operators.
#[derive(Debug, Default)]
pub(crate) struct ConsoleCalls(Mutex<CallTable>);

#[derive(Debug, Default)]
struct CallTable {
    last: u64,
    calls: BTreeMap<u64, Arc<ConsoleCall>>,
}

impl ConsoleCalls {
    fn table(&self) -> MutexGuard<'_, CallTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a call of an operator: the result of another operator is not shown.
    pub(super) fn find(&self, principal: &Principal, number: u64) -> Option<Arc<ConsoleCall>> {
        let call = self.table().calls.get(&number).cloned()?;
        (call.principal == *principal).then_some(call)
    }

    /// Returns the calls of an operator, the newest first.
    pub(super) fn of(&self, principal: &Principal) -> Vec<Arc<ConsoleCall>> {
        let table = self.table();
        let own = table.calls.values().rev().filter(|call| call.principal == *principal);
        own.cloned().collect()
    }

    /// Starts a call of a tool of the default endpoint.
    pub(super) fn start(
        &self,
        gateway: &Arc<GatewayState>,
        principal: &Principal,
        tool: &str,
        arguments: Box<RawValue>,
    ) -> Result<Arc<ConsoleCall>, TooManyCalls> {
        let call = self.add(principal, tool, arguments)?;
        let running = call.clone();
        let gateway_of_task = gateway.clone();
        gateway.tasks.spawn(async move { run(&gateway_of_task, &running).await });
        Ok(call)
    }

    fn add(
        &self,
        principal: &Principal,
        tool: &str,
        arguments: Box<RawValue>,
    ) -> Result<Arc<ConsoleCall>, TooManyCalls> {
        let mut table = self.table();
        let running = table.calls.values().filter(|call| call.outcome().is_none());
        if running.filter(|call| call.principal == *principal).count() >= MAX_RUNNING_CALLS {
            return Err(TooManyCalls);
        }
        if table.calls.len() >= MAX_KEPT_CALLS {
            let finished = table.calls.values().find(|call| call.outcome().is_some());
            let finished = finished.map(|call| call.number);
            finished.and_then(|number| table.calls.remove(&number));
        }
        table.last += 1;
        let call = Arc::new(ConsoleCall {
            number: table.last,
            principal: principal.clone(),
            tool: tool.to_owned(),
            arguments,
            started: Instant::now(),
            progress: Mutex::default(),
            cancelled: SetOnce::new(),
            ended: SetOnce::new(),
        });
        table.calls.insert(call.number, call.clone());
        Ok(call)
    }
}

async fn run(gateway: &Arc<GatewayState>, call: &ConsoleCall) {
    let (sender, mut notifications) = mpsc::channel::<Bytes>(MAX_QUEUED_NOTIFICATIONS);
    let sink = MessageSink::Queue(sender);
    let reply = request(gateway, call, &sink);
    tokio::pin!(reply);
    let outcome = loop {
        tokio::select! {
            biased;
            _ = call.cancelled.wait() => break CallOutcome::Cancelled,
            Some(message) = notifications.recv() => call.record(&message),
            reply = &mut reply => break match reply {
                Ok(result) if result.get().len() > MAX_RESULT_BYTES => {
                    CallOutcome::LargeResult(result.get().len())
                }
                Ok(result) => CallOutcome::Result(result),
                Err(error) => CallOutcome::Error(error),
            },
        }
    };
    while let Ok(message) = notifications.try_recv() {
        call.record(&message);
    }
    // Only this task sets the cell.
    let _ = call.ended.set((outcome, call.started.elapsed()));
}

async fn request(gateway: &Arc<GatewayState>, call: &ConsoleCall, sink: &MessageSink) -> Reply {
    let counted =
        gateway.traffic.metrics.start_request(ClientTransport::Console, method::TOOLS_CALL);
    let params = CallParams {
        name: &call.tool,
        arguments: &call.arguments,
        meta: ProgressMeta { progress_token: 1 },
    };
    let params = to_raw_value(&params).unwrap_or_default();
    let params = RequestParams::from_raw(Some(&params))?;
    let caller = caller(&call.principal);
    let request = ClientRequest {
        id: &RequestId::Integer(0),
        method: method::TOOLS_CALL,
        params: &params,
        meta: IncomingMeta::from_params(&params)?,
        caller: &caller,
        sink,
        param_headers: None,
    };
    counted.finish(gateway.methods.handle(request).await)
}

/// Returns the caller for requests of an operator at the default endpoint. It answers no request of a
/// server.
pub(super) fn caller(principal: &Principal) -> Caller {
    let capabilities = empty_object().into();
    Caller {
        principal: principal.clone(),
        endpoint: 0,
        client: None,
        subscription: None,
        identity: ClientIdentity { revision: REVISION, capabilities },
        transport: ClientTransport::Console,
        header_trace: None,
        calls: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments() -> Box<RawValue> {
        RawValue::from_string("{}".to_owned()).unwrap()
    }

    #[tokio::test]
    async fn an_operator_has_a_maximum_of_running_calls_and_finished_ones_make_room() {
        let (calls, ann, ben) =
            (ConsoleCalls::default(), Principal::new("ann"), Principal::new("ben"));
        let first = calls.add(&ann, "t", arguments()).unwrap();
        for _ in 1..MAX_RUNNING_CALLS {
            calls.add(&ann, "t", arguments()).unwrap();
        }
        assert_eq!(calls.add(&ann, "t", arguments()).unwrap_err(), TooManyCalls);
        let _ = first.ended.set((CallOutcome::Cancelled, Duration::ZERO));
        for _ in MAX_RUNNING_CALLS..MAX_KEPT_CALLS {
            let call = calls.add(&ben, "t", arguments()).unwrap();
            let _ = call.ended.set((CallOutcome::Cancelled, Duration::ZERO));
        }
        assert!(calls.find(&ann, first.number).is_some());
        calls.add(&ann, "t", arguments()).unwrap();
        assert!(calls.find(&ann, first.number).is_none());
        assert_eq!(calls.table().calls.len(), MAX_KEPT_CALLS);
    }

    /// Attack: remote | an operator reads the result of another operator by its number | the call does
    /// not exist for the operator | Isolation
    #[test]
    fn the_call_of_another_operator_is_not_found() {
        let (calls, ann, ben) =
            (ConsoleCalls::default(), Principal::new("ann"), Principal::new("ben"));
        let call = calls.add(&ann, "t", arguments()).unwrap();
        assert!(calls.find(&ann, call.number).is_some());
        assert!(calls.find(&ben, call.number).is_none() && calls.of(&ben).is_empty());
    }

    #[test]
    fn notifications_become_progress_and_a_bounded_number_of_messages() {
        let calls = ConsoleCalls::default();
        let call = calls.add(&Principal::new("ann"), "t", arguments()).unwrap();
        for number in 0..=MAX_MESSAGES {
            let message = format!(
                r#"{{"method":"p","params":{{"progressToken":1,"progress":{number},"total":100,"message":"n{number}"}}}}"#
            );
            call.record(message.as_bytes());
        }
        call.record(br#"{"method":"m","params":{"level":"info","data":{"a":1}}}"#);
        let progress = call.progress();
        assert_eq!(progress.value, Some((50.0, Some(100.0))));
        assert_eq!(progress.messages.len(), MAX_MESSAGES);
        assert_eq!(progress.messages.back().unwrap(), r#"{"a":1}"#);
        assert_eq!(progress.messages[0], "n2");
    }
}
