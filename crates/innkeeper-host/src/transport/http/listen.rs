//! The stream on which a server of the legacy era speaks without being asked.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::http;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, StatusCode};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::events::{Resume, read};
use super::talk::Talk;
use crate::error::Lost;
use crate::server::session::Fault;

/// The pause before the stream is opened again, unless the server says another; doubles with every
/// failure.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// Keeps the stream open for as long as the server offers it. `opened` is dropped as soon as the
/// server has answered for the first time.
pub(super) async fn listen(talk: Arc<Talk>, opened: oneshot::Sender<()>) -> Option<u64> {
    let mut opened = Some(opened);
    let mut resume = Resume::default();
    let mut pause = PAUSE;
    // The session whose stream was open last.
    let mut open = None;
    loop {
        let session = talk.session();
        if session != open {
            // Events of one session mean nothing to another.
            resume = Resume::default();
        }
        let mut ask = talk.ask(Method::GET, session.as_ref());
        let last = resume.last.as_deref().and_then(|last| HeaderValue::from_str(last).ok());
        if let Some(last) = last {
            ask = ask.header(http::LAST_EVENT_ID, last);
        }
        let answer = talk.send(ask).await;
        drop(opened.take());
        match answer {
            Ok(response) if response.status().is_success() => {
                let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
                if !kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
                    return None;
                }
                open = session;
                read(&talk.inlet, response, None, &mut resume).await;
                pause = PAUSE;
            }
            // The session has ended since its stream was open, which no call may notice for long.
            Ok(response) if response.status() == StatusCode::NOT_FOUND && open == session => {
                let Some(gone) = &session else { return None };
                if talk.renew(gone).await.is_err() {
                    pause = (pause * 2).min(LONGEST);
                }
            }
            // The server has no such stream, unless the session it was asked for is another by now.
            Ok(response) if response.status().is_client_error() && talk.session() == session => {
                return None;
            }
            Err(Fault::Lost { reason: Lost::NotSignedIn(_), .. }) => return None,
            Ok(_) | Err(_) => pause = (pause * 2).min(LONGEST),
        }
        sleep(resume.retry.unwrap_or(pause).max(pause.min(PAUSE)).min(LONGEST)).await;
    }
}
