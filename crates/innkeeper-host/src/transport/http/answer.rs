//! HTTP answers that are no success, and connections that fail, as faults.

use std::error::Error;
use std::time::Duration;

use innkeeper_protocol::{ErrorObject, skim};
use reqwest::Response;
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::error::{Lost, ProtocolFault};
use crate::server::session::Fault;
use crate::text::display_safe;
use crate::transport::sent::Sent;

/// How much of the body of a refusal is read.
const BODY: usize = 64 << 10;

/// How long that may take.
const READ: Duration = Duration::from_secs(5);

/// How much of it is shown.
const SHOWN: usize = 200;

/// What went wrong with a request that was given to the HTTP client.
pub(in crate::transport) fn unsent(error: &reqwest::Error) -> Fault {
    let words = words(error);
    if error.is_connect() {
        Fault::Lost { reason: Lost::Unreachable(words), sent: false }
    } else {
        Fault::Lost { reason: Lost::Broken(words), sent: !error.is_builder() }
    }
}

/// The causes of an error without the address, which may hold secrets.
pub(in crate::transport) fn words(error: &reqwest::Error) -> Box<str> {
    // The outermost message says what was asked for; what went wrong is below it.
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    causes.dedup();
    if causes.is_empty() {
        causes.push("the HTTP request failed".to_owned());
    }
    display_safe(&causes.join(": ")).into()
}

/// What an answer says that is no success. Redirects are not followed: whoever they lead to would get
/// the headers that are meant for this address.
pub(in crate::transport) async fn refused(mut response: Response) -> Fault {
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    let moved = moved(&response);
    let sent = Sent::with(&response);
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > BODY {
                body.truncate(BODY);
                break;
            }
        }
    };
    // What has come by then says as much.
    drop(timeout(READ, reading).await);
    if matches!(status, 429 | 502 | 503) {
        // A gateway that got no answer of use may have passed the request on.
        let may_have_run = status == 502;
        return Fault::Lost { reason: Lost::Busy { status, retry_after }, sent: may_have_run };
    }
    if let Some(error) = error_object(&body, &sent) {
        return Fault::Answer(error);
    }
    let text = moved.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned());
    let text = sent.mask(text);
    let text: String = text.trim().chars().take(SHOWN).collect();
    let text = display_safe(&text).replace('\n', " ").into();
    Fault::Protocol(ProtocolFault::Status { status, text })
}

/// The JSON-RPC error in a body, whatever id it has: the answer is to this request. Errors of the
/// same form that do not say that they are JSON-RPC are a gateway's own.
fn error_object(body: &[u8], sent: &Sent) -> Option<ErrorObject> {
    let text = std::str::from_utf8(body).ok()?.trim();
    if skim::member(text, "jsonrpc") != Some(r#""2.0""#) {
        return None;
    }
    let error: Value = serde_json::from_str(skim::member(text, "error")?).ok()?;
    let data = error.get("data").map(|data| sent.mask(data.to_string()));
    Some(ErrorObject {
        code: error.get("code")?.as_i64()?,
        message: sent.mask(error.get("message")?.as_str()?.to_owned()),
        data: data.and_then(|data| RawValue::from_string(data).ok()),
    })
}

/// Where a redirect leads, as the next step. Of the address only the machine is told: the rest may hold
/// secrets.
fn moved(response: &Response) -> Option<String> {
    let to = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    let (here, to) = (response.url(), response.url().join(to.to_str().ok()?).ok()?);
    let origin = to.origin().ascii_serialization();
    let change = if here.origin() != to.origin() {
        format!("it leads to `{origin}`")
    } else if to.path().strip_suffix('/') == Some(here.path()) {
        "its address ends with a slash there".to_owned()
    } else {
        format!("it leads to another path of `{origin}`")
    };
    Some(format!("redirects are not followed; {change}; if that is right, change `url`"))
}

/// How many seconds a server wants to be left alone. A date is not understood and counts as none.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
