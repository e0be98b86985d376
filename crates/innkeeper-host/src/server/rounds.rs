//! Calls of the modern era in several rounds: the server asks, the application answers, and the same
//! request goes out again with the answers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use innkeeper_protocol::view::{InputRequest, InputRequired};
use innkeeper_protocol::{method, skim};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use super::connection::Connection;
use super::session::Fault;
use crate::audit::Fact;
use crate::callback::{Callbacks, Kind, Refusal, ServerRequest};
use crate::error::ProtocolFault;
use crate::telemetry::Carried;
use crate::text::shown;

/// Rounds of one call; a server that asks more has lost its way.
pub(super) const ROUNDS: u32 = 8;

/// How much of an unexpected kind of result is shown.
const SHOWN: usize = 64;

/// What the rounds after the first carry beside the parameters.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Further {
    /// The answers, by the names the server gave its questions.
    #[serde(rename = "inputResponses", skip_serializing_if = "Option::is_none")]
    pub(crate) responses: Option<Arc<RawValue>>,
    /// What the server wants back as it was.
    #[serde(rename = "requestState", skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<Arc<RawValue>>,
    /// The trace that every attempt is part of; it stands in `_meta`.
    #[serde(skip)]
    pub(crate) carried: Option<Arc<Carried>>,
}

/// What a result is.
#[derive(Debug)]
pub(super) enum Turn {
    /// The last one.
    Final,
    /// A question: the request has to be sent again with its answer.
    Question,
    /// The beginning of a task that has the result later.
    Task,
}

impl Turn {
    /// What the result of a request of the modern era is.
    pub(super) fn of(result: &RawValue, method: &str) -> Result<Self, Fault> {
        let kind = skim::members(result.get()).find(|(key, _)| *key == "resultType");
        match kind {
            None | Some((_, "\"complete\"" | "null")) => Ok(Self::Final),
            Some((_, "\"input_required\"")) => Ok(Self::Question),
            Some((_, "\"task\"")) if method == method::TOOLS_CALL => Ok(Self::Task),
            Some((_, other)) => {
                let fault = ProtocolFault::NotFinal(shown(other, SHOWN).into());
                Err(Fault::Protocol(fault))
            }
        }
    }
}

/// The rounds of one call.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    made: u32,
    further: Further,
}

impl Rounds {
    /// Whether there was no more than the first request.
    pub(super) fn none(&self) -> bool {
        self.made == 0
    }

    /// What the next request has to carry.
    pub(super) fn further(&self) -> Further {
        self.further.clone()
    }

    /// Gathers what the server asks for in a result.
    pub(super) async fn next(
        &mut self,
        connection: &Connection,
        result: &RawValue,
        ends: Instant,
    ) -> Result<(), Fault> {
        self.made += 1;
        if self.made > ROUNDS {
            return Err(Fault::Protocol(ProtocolFault::EndlessRounds { limit: ROUNDS }));
        }
        let wanted = InputRequired::read(result);
        let wanted = wanted.map_err(|error| Fault::Protocol(ProtocolFault::Shape(error)))?;
        let responses = gather(connection, &wanted.requests, ends).await?;
        self.further = Further { responses, state: wanted.state.map(Arc::from), carried: None };
        Ok(())
    }
}

/// Has the application answer everything until `ends`, as long as there is somebody to be answered.
pub(super) async fn gather(
    connection: &Connection,
    requests: &[InputRequest],
    ends: Instant,
) -> Result<Option<Arc<RawValue>>, Fault> {
    tokio::select! {
        biased;
        reason = connection.session.closed() => Err(Fault::Lost { reason, sent: true }),
        answers = timeout_at(ends, answers(&connection.server, &connection.callbacks, requests)) => {
            answers.map_err(|_| Fault::Late)?
        }
    }
}

/// The answers of the application, one after the other: a user reads one question at a time.
async fn answers(
    server: &Arc<str>,
    callbacks: &Callbacks,
    requests: &[InputRequest],
) -> Result<Option<Arc<RawValue>>, Fault> {
    if requests.is_empty() {
        return Ok(None);
    }
    let refused = |method: &str, why: String| {
        let method = shown(method, SHOWN).into();
        Fault::Protocol(ProtocolFault::InputRefused { method, why: why.into() })
    };
    let nobody = |method: &str| {
        let (what, why) = (&*shown(method, SHOWN), "nobody here answers that");
        Fact::RequestRefused { what, why, count: 1 }.tell(server);
        refused(method, why.to_owned())
    };
    let asked = |InputRequest { method, params, .. }: &InputRequest| ServerRequest {
        server: server.clone(),
        method: method.as_str().into(),
        params: params.clone(),
    };
    // What cannot be answered at all is not half asked of the user.
    for request in requests {
        if !callbacks.answers(server, Kind::of(&request.method)) {
            return Err(nobody(&request.method));
        }
        if let Some(refusal) = callbacks.refuses(&asked(request)) {
            return Err(refused(&request.method, refusal.message));
        }
    }
    let mut responses: Map<String, Value> = Map::new();
    for request in requests {
        let answering = async {
            match callbacks.answer(asked(request)) {
                Some(answering) => answering.await,
                None => Err(Refusal::unknown()),
            }
        };
        // It runs in the task of the caller, whom a panic of it must not end.
        let answer = AssertUnwindSafe(answering).catch_unwind().await;
        let answer = answer.unwrap_or_else(|_| Err(Refusal::internal("the callback panicked")));
        let answer = answer.map_err(|refusal| refused(&request.method, refusal.message))?;
        responses.insert(request.key.clone(), answer);
    }
    let written = to_raw_value(&responses);
    let written = written.map_err(|error| refused("", error.to_string()))?;
    Ok(Some(written.into()))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;
    use crate::callback::{Answers, Callback};

    #[tokio::test]
    async fn a_form_that_asks_for_a_secret_is_refused_before_any_question_is_asked() {
        let question = |key: &str, method: &str, params: Value| InputRequest {
            key: key.to_owned(),
            method: method.to_owned(),
            params: Some(to_raw_value(&params).unwrap()),
        };
        let form = json!({ "requestedSchema": { "properties": { "password": {} } } });
        let requests = [
            question("first", method::SAMPLING_CREATE_MESSAGE, json!({})),
            question("second", method::ELICITATION_CREATE, form),
        ];
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let callback: Arc<dyn Callback> = Arc::new(move |request: ServerRequest| {
            seen.lock().unwrap().push(request.method);
            async { Ok(json!({})) }
        });
        let (server, callbacks) = ("a".into(), Callbacks::default());
        callbacks.set(&Answers::everything(), Some(&callback));
        let fault = answers(&server, &callbacks, &requests).await.unwrap_err();
        let Fault::Protocol(ProtocolFault::InputRefused { method, why }) = fault else {
            panic!("{fault:?}")
        };
        assert_eq!(&*method, method::ELICITATION_CREATE);
        assert!(why.contains("must not ask for a secret"), "{why}");
        assert!(asked.lock().unwrap().is_empty(), "{asked:?}");
        callbacks.set(&Answers::elicitation().with_secrets(), Some(&callback));
        answers(&server, &callbacks, &requests).await.unwrap().unwrap();
        assert_eq!(asked.lock().unwrap().len(), 2, "wanted, they are both asked");
    }

    #[test]
    fn a_result_of_a_kind_that_is_not_known_is_none() {
        let of = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            Turn::of(&raw, method::TOOLS_CALL)
        };
        assert!(matches!(of(r#"{"resultType": "complete"}"#), Ok(Turn::Final)));
        let fault = of(r#"{"resultType": "poem\u001b"}"#).unwrap_err();
        let Fault::Protocol(fault @ ProtocolFault::NotFinal(_)) = fault else {
            panic!("{fault:?}")
        };
        assert_eq!(fault.to_string(), r#"the answer is no final result but "poem\u001b""#);
        let raw = RawValue::from_string(r#"{"resultType": "task"}"#.to_owned()).unwrap();
        assert!(Turn::of(&raw, method::PROMPTS_GET).is_err(), "only calls become tasks");
    }
}
