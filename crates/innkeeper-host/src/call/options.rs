//! Options of one call.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::arguments;
use super::round_trip_mode::RoundTripMode;
use super::task_mode::TaskMode;
use crate::callback::{Callback, ClientCapabilities};
use crate::connection::meta::{CallerMeta, ClientMeta};
use crate::connection::pass_through::PassThrough;
use crate::connection::round_trips::RoundTripParams;
use crate::connection::{RequestMeta, RequestOptions};
use crate::error::{CallError, Violation};
use crate::session::{CallHold, CallNotification, Caller, Progress, SendCheck};

/// Options of one call that override the configuration.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The maximum time without a response or progress. Default: the tool's time in
    /// `tools.timeouts`, else the server's `timeout`. Progress, and a request of the server to the
    /// application, restart the timeout, up to the server's `maxTotalTimeout`.
    pub timeout: Option<Duration>,
    /// The channel for progress notifications, in the order of the server. The host drops a
    /// notification when the channel is full. Without a channel the host does no work for progress.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// The channel for all notifications that belong to this call, progress included, in the order
    /// of the server and with the parameters as the server sent them. Default: none.
    ///
    /// [`CallReference`](crate::CallReference) says which notifications belong to a call. The host
    /// drops a notification when the channel is full, a notification of more than 64 KiB, and
    /// `notifications/cancelled`, because the host cancels the requests of the server itself.
    pub notifications: Option<mpsc::Sender<CallNotification>>,
    /// The maximum number of retries when the request is lost, at most 10. Use 0 for a caller that
    /// repeats calls itself. Default: the server's `retry.max`.
    pub retries: Option<u32>,
    /// Whether the host requests a prompt or resource although a cached result exists. The new
    /// result replaces the cached result, and the call returns no stale result when the server is
    /// unavailable. Default: `false`. Results of tools are never cached.
    pub fresh: bool,
    /// The callback for requests of the server that belong to this call, in place of the host's
    /// callback. Default: `None`.
    ///
    /// Requests whose call is [`Unknown`](crate::CallReference::Unknown) go to the host's callback.
    /// The host's callbacks declare the capabilities, so the host rejects a request without a
    /// callback of the host. The end of the call drops the callback's running futures, and the
    /// server receives an error. The cache does not store a result after a request to this
    /// callback.
    pub callback: Option<Arc<dyn Callback>>,
    /// Members that the host adds to the `_meta` of the request, byte for byte: an object of at
    /// most 64 KiB without members that the host writes itself, for example `progressToken`. A
    /// prompt or resource with own members is always requested, as with [`Self::fresh`]. Default:
    /// none.
    pub meta: Option<Box<RawValue>>,
    /// How the call handles a request for input of the modern era. Default: with callbacks.
    pub round_trips: RoundTripMode,
    /// How a call of a tool handles a created task. Default: the host polls the task.
    pub task: TaskMode,
    /// The remote client on whose behalf the application calls. Default: none.
    pub client: RemoteClient,
}

/// The remote client on whose behalf an application calls.
#[derive(Clone, Debug, Default)]
pub struct RemoteClient {
    /// The identity of the client.
    ///
    /// The cache gives a result of a prompt or resource only to calls with the same principal; calls
    /// without a principal share their results in the same way. All calls share a result with
    /// `cacheScope: "public"`. A server gets no principal. Default: none.
    pub principal: Option<Arc<str>>,
    /// Whether the calls of the principal leave a part of the server's `maxConcurrent` for other
    /// principals: a call waits if the principal then had more than three times as many calls as
    /// remain free. The first call of a principal never waits for this. Default: `false`.
    ///
    /// Among principals whose calls wait, the principal with the fewest running calls is next.
    pub has_limited_share: bool,
    /// The capabilities of the client, an object of at most 64 KiB. Default: those of the
    /// host.
    ///
    /// A request of the modern era contains these capabilities in place of those of the host. In
    /// both eras the host refuses a request of the server that belongs to the call and needs a
    /// capability, for example `elicitation.url`, that is not among them.
    pub capabilities: Option<Arc<RawValue>>,
    /// Decides immediately before each attempt whether the host sends the request. Default: the host
    /// sends every request.
    pub send_check: Option<Arc<dyn SendCheck>>,
    /// A value that the host holds while the server may process the call, also after a timeout or a
    /// cancellation. Default: none.
    pub hold: Option<Arc<dyn CallHold>>,
}

/// Maximum size in bytes of the `_meta` members of a caller: many trace contexts fit.
const MAX_META_BYTES: usize = 64 << 10;

impl CallOptions {
    /// Returns the `_meta` of a request whose attempts ask for progress if the caller listens.
    pub(super) fn meta_for_request<'a>(
        &self,
        client: &'a ClientMeta,
        caller: &'a CallerMeta,
    ) -> RequestMeta<'a> {
        let requests_progress = self.progress.is_some() || self.notifications.is_some();
        RequestMeta { client, caller, requests_progress }
    }

    /// Returns the options of a request for this remote client.
    pub(super) fn for_request<'a>(&'a self, caller: Option<&'a Arc<Caller>>) -> RequestOptions<'a> {
        RequestOptions {
            progress: self.progress.as_ref(),
            retries: self.retries,
            callback: self.callback.as_ref(),
            caller,
            pass_through: self.pass_through(),
        }
    }

    /// Returns the remote client, for messages of the server about the call.
    pub(super) fn caller(&self, item: &str) -> Result<Option<Arc<Caller>>, CallError> {
        let RemoteClient { principal, has_limited_share, capabilities, send_check, hold } =
            self.client.clone();
        let notifications = self.notifications.clone();
        let capabilities = capabilities.as_deref().map(ClientCapabilities::from_raw);
        let capabilities = capabilities.transpose().map_err(|message| {
            let problems = vec![Violation::new("/clientCapabilities".to_owned(), message)];
            CallError::Validation { item: item.into(), problems }
        })?;
        let is_needed = notifications.is_some()
            || capabilities.is_some()
            || principal.is_some()
            || send_check.is_some()
            || hold.is_some();
        let caller =
            Caller { notifications, capabilities, principal, has_limited_share, send_check, hold };
        Ok(is_needed.then(|| Arc::new(caller)))
    }

    /// Returns whether the call needs a result of its own.
    pub(super) fn bypasses_cache(&self) -> bool {
        self.fresh || self.meta.is_some() || !self.pass_through().responses.is_first()
    }

    /// Returns the incomplete results that the call returns.
    pub(super) fn pass_through(&self) -> PassThrough {
        match &self.round_trips {
            RoundTripMode::Callback => PassThrough::default(),
            RoundTripMode::PassThrough { input_responses, request_state } => {
                let responses = input_responses.clone().map(Arc::from);
                let state = request_state.clone().map(Arc::from);
                let responses = RoundTripParams { responses, state, trace_context: None };
                PassThrough { input_required: true, responses, ..PassThrough::default() }
            }
        }
    }

    /// Returns the incomplete results that a call of a tool returns.
    pub(super) fn pass_through_of_tool(&self) -> PassThrough {
        let task = matches!(self.task, TaskMode::PassThrough { .. });
        PassThrough { task, ..self.pass_through() }
    }

    /// Returns the `_meta` members of the caller for a request with these members of the host.
    pub(super) fn caller_meta(
        &self,
        client_meta: &ClientMeta,
        item: &str,
    ) -> Result<CallerMeta, CallError> {
        let capabilities = self.client.capabilities.clone();
        let Some(meta) = &self.meta else {
            return Ok(CallerMeta::default().with_capabilities(capabilities));
        };
        let invalid = |pointer: &str, message: String| {
            let violation = Violation::new(format!("/_meta{pointer}"), message);
            CallError::Validation { item: item.into(), problems: vec![violation] }
        };
        if meta.get().len() > MAX_META_BYTES {
            return Err(invalid("", format!("longer than {MAX_META_BYTES} bytes")));
        }
        let values = arguments::parse_unique(meta)
            .map_err(|violation| invalid(&violation.pointer, violation.message))?;
        if !values.is_object() {
            return Err(invalid("", "expected object".to_owned()));
        }
        let members = CallerMeta::from_object(meta)
            .map_err(|error| invalid("", format!("expected object: {error}")))?;
        if let Some(key) = members.keys().find(|key| client_meta.contains(key)) {
            return Err(invalid("", format!("`{key}` is set by the host")));
        }
        Ok(members.with_capabilities(capabilities))
    }
}
