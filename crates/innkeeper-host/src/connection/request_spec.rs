//! A request of the application: what its attempts have in common, and how each one writes its
//! parameters.
//!
//! The host may send a request several times: again when it was lost, and once more for each input that
//! the server asks for. An attempt has its own id, which is also its progress token, and may carry the
//! responses to the server. Everything else is the same, and borrowed from the caller.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::{JsonText, write_member};
use tokio::sync::mpsc;

use super::meta::{CallerMeta, ClientMeta};
use super::pass_through::PassThrough;
use super::round_trips::RoundTripParams;
use crate::callback::Callback;
use crate::session::{Caller, HeaderValues, Progress};

/// A request to a server, including its retries.
pub(crate) struct RequestSpec<'a> {
    pub(crate) method: Cow<'static, str>,
    /// Name of the tool or prompt, or the URI, for messages and records.
    pub(crate) item: &'a str,
    pub(crate) params: RequestParams<'a>,
    pub(crate) headers: HeaderValues<'a>,
    /// Maximum time without a response or progress.
    pub(crate) timeout: Duration,
    /// Whether the request may run twice.
    pub(crate) retry_safe: bool,
    pub(crate) task: TaskUse<'a>,
    pub(crate) options: RequestOptions<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskUse<'a> {
    None,
    /// The request asks a server of the legacy era to create a task.
    Creates,
    /// The request returns the result of the task with this id.
    Awaits(&'a str),
}

impl<'a> TaskUse<'a> {
    /// Returns the task whose result the request returns.
    pub(super) fn id(self) -> Option<&'a str> {
        match self {
            Self::Awaits(id) => Some(id),
            Self::None | Self::Creates => None,
        }
    }
}

/// What the caller of a request wants to hear of it, and decides about it.
#[derive(Default)]
pub(crate) struct RequestOptions<'a> {
    pub(crate) progress: Option<&'a mpsc::Sender<Progress>>,
    /// Maximum number of retries. Default: the configured number.
    pub(crate) retries: Option<u32>,
    /// The callback of the call for requests of the server.
    pub(crate) callback: Option<&'a Arc<dyn Callback>>,
    /// The remote client of the call.
    pub(crate) caller: Option<&'a Arc<Caller>>,
    /// The incomplete results that the request returns.
    pub(crate) pass_through: PassThrough,
}

impl<'a> RequestSpec<'a> {
    /// Creates a request that may run twice, whose `item` is also its name, without options.
    pub(crate) fn new(
        method: impl Into<Cow<'static, str>>,
        item: &'a str,
        params: RequestParams<'a>,
        timeout: Duration,
    ) -> Self {
        Self {
            method: method.into(),
            item,
            params,
            headers: HeaderValues { name: Some(item), arguments: &[] },
            timeout,
            retry_safe: true,
            task: TaskUse::None,
            options: RequestOptions::default(),
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) enum RequestParams<'a> {
    /// An object with these members and those of the attempt.
    Members(&'a [Member<'a>], RequestMeta<'a>),
    /// A text that is the same in each attempt.
    Whole(&'a (dyn JsonText + Sync)),
}

/// The name and the value of a member of the parameters.
pub(crate) type Member<'a> = (&'a str, &'a (dyn JsonText + Sync));

/// The `_meta` of a request without what its attempts add.
#[derive(Clone, Copy)]
pub(crate) struct RequestMeta<'a> {
    pub(crate) client: &'a ClientMeta,
    pub(crate) caller: &'a CallerMeta,
    /// Whether each attempt has a progress token.
    pub(crate) requests_progress: bool,
}

pub(super) struct AttemptParams<'a> {
    pub(super) request: RequestParams<'a>,
    pub(super) id: u64,
    pub(super) further: RoundTripParams,
}

impl JsonText for AttemptParams<'_> {
    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let (members, meta) = match self.request {
            RequestParams::Whole(text) => return text.write_json(out),
            RequestParams::Members(members, meta) => (members, meta),
        };
        let RoundTripParams { responses, state, trace_context } = &self.further;
        let start = out.len();
        for (name, value) in members {
            out.push(b',');
            name.write_json(out)?;
            out.push(b':');
            value.write_json(out)?;
        }
        let token = meta.requests_progress.then_some(self.id);
        let trace = trace_context.clone();
        if let Some(meta) = meta.client.meta_with_trace(token, trace, meta.caller) {
            write_member(out, "_meta", &meta)?;
        }
        if let Some(responses) = responses {
            write_member(out, "inputResponses", responses)?;
        }
        if let Some(state) = state {
            write_member(out, "requestState", state)?;
        }
        // Every member brought its separator, and the first one has the place of the brace.
        match out.get_mut(start) {
            Some(first) => *first = b'{',
            None => out.push(b'{'),
        }
        out.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    fn text(members: &[Member<'_>], further: RoundTripParams, requests_progress: bool) -> String {
        let meta = RequestMeta {
            client: &ClientMeta::default(),
            caller: &CallerMeta::default(),
            requests_progress,
        };
        let request = RequestParams::Members(members, meta);
        let mut out = b"before".to_vec();
        AttemptParams { request, id: 7, further }.write_json(&mut out).unwrap();
        String::from_utf8(out.split_off("before".len())).unwrap()
    }

    #[test]
    fn an_attempt_adds_its_token_and_the_input_that_the_server_asked_for() {
        let raw = |text: &str| Some(Arc::from(RawValue::from_string(text.to_owned()).unwrap()));
        let further = || RoundTripParams {
            responses: raw(r#"{"q": 1.0}"#),
            state: raw(r#""s""#),
            trace_context: None,
        };
        let arguments = json!({"n": 1});
        let members: [Member<'_>; 2] = [("name", &"t"), ("arguments", &arguments)];
        assert_eq!(
            text(&members, further(), true),
            r#"{"name":"t","arguments":{"n":1},"_meta":{"progressToken":7},"inputResponses":{"q": 1.0},"requestState":"s"}"#
        );
        let none = RoundTripParams::default();
        assert_eq!(text(&members[..1], none.clone(), false), r#"{"name":"t"}"#);
        assert_eq!(text(&[], none.clone(), true), r#"{"_meta":{"progressToken":7}}"#);
        assert_eq!(text(&[], none, false), "{}");
    }

    #[test]
    fn names_of_members_are_escaped() {
        let written = text(&[("a\"b\n", &1)], RoundTripParams::default(), false);
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), json!({"a\"b\n": 1}));
    }
}
