//! One message out, and for a request everything that comes back until it has its answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use innkeeper_protocol::{Revision, http, method};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use tokio::time::{sleep, timeout};

use super::events::{Resume, read};
use super::talk::{Hello, Talk};
use super::{End, Era, refused, unsent};
use crate::error::{Lost, ProtocolFault};
use crate::server::session::Fault;
use crate::text::display_safe;

/// How long a notification or an answer of ours may take, its turn included; nobody waits for it.
const TOLD: Duration = Duration::from_secs(30);

/// Streams without anything in them, one after the other, before a request is given up.
const FRUITLESS: u32 = 5;

/// How much of an odd content type is shown.
const SHOWN: usize = 80;

/// One request.
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) method: &'static str,
    pub(super) name: Option<Box<str>>,
    pub(super) params: Vec<(String, String)>,
    pub(super) body: Bytes,
}

/// Sends a request and sees to it that it is answered, if only by a fault.
pub(super) async fn request(talk: Arc<Talk>, request: Request) -> Option<u64> {
    let id = request.id;
    tokio::select! {
        result = answered(&talk, &request) => {
            if let Err(fault) = result {
                talk.inlet.fail(id, fault);
            }
        }
        () = talk.inlet.until_unawaited(id) => {}
    }
    Some(id)
}

/// Sends what has no answer.
pub(super) async fn notify(talk: &Talk, method: &str, body: Bytes) -> Option<u64> {
    let told = async {
        let _turn = talk.aside.acquire().await;
        let session = talk.session();
        talk.send(talk.post(session.as_ref(), body)).await
    };
    let sent = timeout(TOLD, told).await;
    let status = sent.ok().and_then(Result::ok).map(|response| response.status());
    if status.is_none_or(|status| !status.is_success()) {
        let (server, status) = (talk.inlet.server(), status.map(|status| status.as_u16()));
        tracing::debug!(server, method, status, "not taken by the server");
    }
    None
}

async fn answered(talk: &Talk, request: &Request) -> Result<(), Fault> {
    let mut renewed = false;
    loop {
        let session = talk.session().filter(|_| request.method != method::INITIALIZE);
        let post = talk.post(session.as_ref(), request.body.clone());
        let response = talk.send(described(talk, post, request)).await?;
        match (&session, response.status()) {
            // It was not run: the server does not know whose it is.
            (Some(session), StatusCode::NOT_FOUND) if !renewed && talk.era() == Era::Legacy => {
                renewed = true;
                talk.renew(session).await?;
            }
            _ => return judged(talk, response, request).await,
        }
    }
}

/// Takes an answer, or the fault that it is.
pub(super) async fn judged(
    talk: &Talk,
    response: Response,
    request: &Request,
) -> Result<(), Fault> {
    if response.status().is_success() {
        taken(talk, response, request).await
    } else {
        Err(refused(response).await)
    }
}

/// Adds what servers of the modern era want to see in headers.
fn described(talk: &Talk, post: RequestBuilder, request: &Request) -> RequestBuilder {
    let discover = request.method == method::SERVER_DISCOVER;
    if talk.era() != Era::Modern && !discover {
        return post;
    }
    let mut post = post.header(http::METHOD, request.method);
    if discover && talk.era() == Era::Unknown {
        post = post.header(http::PROTOCOL_VERSION, Revision::LATEST.as_str());
    }
    if let (Some(name), Some(_)) = (&request.name, http::name_member(request.method)) {
        post = post.header(http::NAME, &*http::encode_value(name));
    }
    for (name, value) in &request.params {
        post = post.header(name, value);
    }
    post
}

/// Takes the answer in whatever form it comes.
async fn taken(talk: &Talk, response: Response, request: &Request) -> Result<(), Fault> {
    if request.method == method::INITIALIZE {
        let hello = Hello { id: request.id, body: request.body.clone() };
        talk.begun(hello, response.headers());
    }
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = String::from_utf8_lossy(kind).to_ascii_lowercase();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if let Some(coding) = response.headers().get(CONTENT_ENCODING)
        && coding != "identity"
    {
        let coding = String::from_utf8_lossy(coding.as_bytes()).into_owned();
        return Err(odd(&format!("{essence} in {coding}")));
    }
    match essence {
        "application/json" => whole(talk, response, request.id).await,
        "text/event-stream" => stream(talk, response, request).await,
        _ if response.content_length() == Some(0) => Err(no_answer()),
        _ => Err(odd(if kind.is_empty() { "no content type" } else { essence })),
    }
}

fn odd(kind: &str) -> Fault {
    let kind: String = kind.chars().take(SHOWN).collect();
    Fault::Protocol(ProtocolFault::ContentType(display_safe(&kind).into()))
}

fn no_answer() -> Fault {
    Fault::Protocol(ProtocolFault::NoAnswer)
}

/// Reads an answer that is one JSON text.
async fn whole(talk: &Talk, mut response: Response, id: u64) -> Result<(), Fault> {
    let limit = talk.inlet.limit();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unsent(&error))? {
        if body.len() + chunk.len() > limit {
            return Err(Fault::Protocol(ProtocolFault::TooLarge { limit }));
        }
        body.extend_from_slice(&chunk);
    }
    talk.inlet.message(without_mark(&body)).await;
    if talk.inlet.waits(id) { Err(no_answer()) } else { Ok(()) }
}

/// A text without the mark of its byte order, which is no part of it.
pub(super) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text)
}

/// Reads an answer that is a stream, and the streams that take it up where it breaks.
async fn stream(talk: &Talk, mut response: Response, request: &Request) -> Result<(), Fault> {
    let mut resume = Resume::default();
    let mut fruitless = 0;
    loop {
        let end = read(&talk.inlet, response, Some(request.id), &mut resume).await;
        let why = match end {
            End::Answered => return Ok(()),
            End::Closed => "the stream ended without the answer".into(),
            End::Broke(why) => why,
        };
        let broken = Fault::Lost { reason: Lost::Broken(why), sent: true };
        fruitless = if resume.heard { 0 } else { fruitless + 1 };
        let legacy = talk.era() != Era::Modern;
        let Some(last) = resume.last.as_deref().filter(|_| legacy && fruitless < FRUITLESS) else {
            return Err(broken);
        };
        let Ok(last) = HeaderValue::from_str(last) else { return Err(broken) };
        sleep(resume.pause()).await;
        response = loop {
            let session = talk.session();
            let again =
                talk.ask(Method::GET, session.as_ref()).header(http::LAST_EVENT_ID, last.clone());
            match talk.send(again).await {
                Ok(response) if response.status().is_success() => break response,
                Ok(_) => return Err(broken),
                Err(fault) => {
                    let Fault::Lost { reason, .. } = fault else { return Err(fault) };
                    fruitless += 1;
                    if fruitless >= FRUITLESS || matches!(reason, Lost::NotSignedIn(_)) {
                        return Err(Fault::Lost { reason, sent: true });
                    }
                    sleep(resume.pause()).await;
                }
            }
        };
    }
}
