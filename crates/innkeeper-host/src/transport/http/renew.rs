//! Beginning another session in place of one that the server does not know any more.

use std::time::Duration;

use innkeeper_protocol::envelope::{self, Incoming, Message};
use innkeeper_protocol::sse::{SseDecoder, SseEvent};
use innkeeper_protocol::{ErrorObject, Revision, http, method, skim};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::post::without_mark;
use super::refused;
use super::talk::{CONTROL, Hello, Talk};
use crate::error::{Lost, ProtocolFault};
use crate::server::session::Fault;

/// How long a server may take to answer the beginning of another session: as for its first one,
/// unless that is configured.
const BEGINNING: Duration = Duration::from_secs(30);

/// Why there is no other session.
#[derive(Debug)]
enum Unbegun {
    /// What was sent came to nothing.
    Fault(Fault),
    /// It says no.
    Refused(ErrorObject),
    /// It would go on in another revision than the one that was agreed on.
    Revision,
    /// Its answer is none, or cannot be read.
    NoAnswer,
    /// There is none in time.
    Late,
}

impl Unbegun {
    /// Whatever was to be sent in the session has not run. What a server says in words is not
    /// passed on: it is no answer to what was asked.
    fn fault(self) -> Fault {
        let not = |why: &str| Lost::Broken(format!("it begins no other session: {why}").into());
        let reason = match self {
            Self::Fault(Fault::Lost { reason, .. }) => reason,
            Self::Fault(Fault::Protocol(ProtocolFault::Status { status, .. })) => {
                not(&format!("HTTP {status}"))
            }
            Self::Fault(Fault::Answer(error)) | Self::Refused(error) => {
                not(&format!("error {}", error.code))
            }
            Self::Fault(Fault::Protocol(_)) | Self::NoAnswer => not("its answer cannot be used"),
            Self::Revision => not("it would speak another revision"),
            Self::Fault(Fault::Late) | Self::Late => not("no answer came in time"),
        };
        Fault::Lost { reason, sent: false }
    }
}

impl Talk {
    /// Begins a new session in place of `gone`, which the server does not know any more, unless
    /// somebody else has done so meanwhile. Fails with a fault of something that was not sent.
    pub(super) async fn renew(&self, gone: &HeaderValue) -> Result<(), Fault> {
        let _turn = self.renewing.lock().await;
        let hello = self.hello().filter(|_| self.session().as_ref() == Some(gone));
        let Some(hello) = hello else { return Ok(()) };
        let server = self.inlet.server();
        tracing::warn!(server, "the session is gone, beginning another");
        let begun = timeout(BEGINNING, self.begin(&hello)).await;
        let headers = begun.unwrap_or(Err(Unbegun::Late)).map_err(Unbegun::fault)?;
        let mut body = Vec::new();
        drop(envelope::write_notification(&mut body, method::INITIALIZED, None::<&()>));
        let told = self.send(self.post(headers.get(http::SESSION_ID), body.into()));
        drop(timeout(CONTROL, told).await);
        // Only now may others use it; whoever gives up before leaves the old one to be renewed.
        self.begun(hello, &headers);
        self.inlet.renewed();
        Ok(())
    }

    /// Greets the server once more; gives the headers of an answer that begins a session.
    async fn begin(&self, hello: &Hello) -> Result<HeaderMap, Unbegun> {
        let response = self.send(self.post(None, hello.body.clone())).await;
        let response = response.map_err(Unbegun::Fault)?;
        if !response.status().is_success() {
            return Err(Unbegun::Fault(refused(response).await));
        }
        let headers = response.headers().clone();
        self.answer(response, hello.id).await?;
        Ok(headers)
    }

    /// Reads until the answer to this request is there. What else the server says of itself was
    /// learnt from its first one.
    async fn answer(&self, mut response: Response, id: u64) -> Result<(), Unbegun> {
        let (limit, revision) = (self.inlet.limit(), self.inlet.revision());
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let streamed =
            kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with(b"text/event-stream"));
        let (mut decoder, mut whole, mut read) = (SseDecoder::new(limit), Vec::new(), 0);
        while let Ok(Some(chunk)) = response.chunk().await {
            read += chunk.len();
            if read > limit {
                return Err(Unbegun::NoAnswer);
            }
            if !streamed {
                whole.extend_from_slice(&chunk);
                continue;
            }
            decoder.feed(&chunk);
            while let Some(event) = decoder.next_event() {
                if let SseEvent::Message { name: "message", data, .. } = event
                    && let Some(judged) = judged(data, id, revision)
                {
                    return judged;
                }
            }
        }
        judged(without_mark(&whole), id, revision).unwrap_or(Err(Unbegun::NoAnswer))
    }
}

/// Whether a message that answers this request begins a session; `None` for any other.
fn judged(text: &[u8], id: u64, agreed: Option<Revision>) -> Option<Result<(), Unbegun>> {
    let of = |incoming| match incoming {
        Incoming::Response { id: theirs, outcome } if theirs.as_ours() == Some(id) => {
            Some(outcome.map_err(Unbegun::Refused).and_then(|result| goes_on(result, agreed)))
        }
        Incoming::Response { .. } | Incoming::Request { .. } | Incoming::Notification { .. } => {
            None
        }
    };
    match envelope::parse(text).ok()? {
        Message::One(incoming) => of(incoming),
        Message::Batch(all) => all.into_iter().flatten().find_map(of),
    }
}

fn goes_on(result: &RawValue, agreed: Option<Revision>) -> Result<(), Unbegun> {
    let theirs = skim::member(result.get(), "protocolVersion");
    let theirs = theirs.and_then(|theirs| serde_json::from_str::<String>(theirs).ok());
    match (theirs, agreed) {
        (None, _) => Err(Unbegun::NoAnswer),
        (Some(theirs), Some(agreed)) if theirs == agreed.as_str() => Ok(()),
        (Some(_), _) => Err(Unbegun::Revision),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_result_in_the_revision_that_was_agreed_on_begins_another_session() {
        let agreed = "2025-11-25".parse().ok();
        let judge = |text: &str| match judged(text.as_bytes(), 7, agreed) {
            None => "none".to_owned(),
            Some(Ok(())) => "begun".to_owned(),
            Some(Err(why)) => match why.fault() {
                Fault::Lost { reason, sent: false } => reason.to_string(),
                other => panic!("{other:?}"),
            },
        };
        let not = |why: &str| format!("the connection broke: it begins no other session: {why}");
        let result = r#"{"jsonrpc":"2.0","id":7,"result":{"protocolVersion":"2025-11-25"}}"#;
        let refused =
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"call me instead"}}"#;
        for (text, expected) in [
            (result, "begun".to_owned()),
            (&format!("[{result}]"), "begun".to_owned()),
            (&result.replace("2025-11", "2025-06"), not("it would speak another revision")),
            (&result.replace("2025-11-25", "3000-01-01"), not("it would speak another revision")),
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, not("its answer cannot be used")),
            (refused, not("error -32603")),
            (&result.replace('7', "8"), "none".to_owned()),
            (r#"{"jsonrpc":"2.0","method":"notifications/message"}"#, "none".to_owned()),
            ("", "none".to_owned()),
        ] {
            assert_eq!(judge(text), expected, "{text}");
        }
    }

    #[test]
    fn whatever_was_to_be_sent_in_a_session_that_is_not_begun_has_not_run() {
        let broken = Lost::Broken("reset".into());
        let fault = Unbegun::Fault(Fault::Lost { reason: broken.clone(), sent: true });
        let fault = fault.fault();
        assert!(matches!(fault, Fault::Lost { reason, sent: false } if reason == broken));
    }
}
