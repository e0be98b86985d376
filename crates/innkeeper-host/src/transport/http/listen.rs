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
use crate::transport::auth::AuthFault;

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
    // Whether the last stream was not to be had for want of a person who signs in.
    let mut alone = false;
    loop {
        let session = talk.session();
        if session != open {
            // Events of one session mean nothing to another.
            resume = Resume::default();
        }
        let was_open = open == session;
        let heard = tokio::select! {
            biased;
            // What is said on the stream of a session that was left is not said to us any more.
            () = talk.left(session.as_ref()) => Heard::Left,
            heard = hear(&talk, session.as_ref(), &mut resume, &mut opened) => heard,
        };
        drop(opened.take());
        match heard {
            Heard::Left => continue,
            Heard::Ended => {
                (open, pause, alone) = (session.clone(), PAUSE, false);
            }
            // The session has ended since its stream was open, which no call may notice for long.
            Heard::Refused(StatusCode::NOT_FOUND) if was_open => {
                let Some(gone) = &session else { return None };
                let renewed = talk.renew(gone).await.is_ok();
                // A server may give the same session once more, and not know it once more.
                if renewed && talk.session() != session {
                    continue;
                }
                pause = (pause * 2).min(LONGEST);
            }
            // The server has no such stream, unless the session it was asked for is another by now.
            Heard::Refused(_) | Heard::NoStream if talk.session() == session => return None,
            Heard::NotSignedIn(fault) => match remedy(&fault) {
                Remedy::Time => pause = (pause * 2).min(LONGEST),
                // It is not asked for again by itself, which may trouble that person again.
                Remedy::Person if !alone => {
                    alone = true;
                    talk.taken().await;
                    continue;
                }
                Remedy::Person | Remedy::Nothing => return None,
            },
            Heard::Refused(_) | Heard::NoStream | Heard::Failed => {
                pause = (pause * 2).min(LONGEST);
            }
        }
        let pausing = sleep(resume.retry.unwrap_or(pause).max(PAUSE).min(LONGEST));
        tokio::select! {
            () = pausing => {}
            () = talk.left(session.as_ref()) => {}
        }
    }
}

/// What came of asking for the stream.
enum Heard {
    /// It was open, and has ended.
    Ended,
    /// The session is another by now.
    Left,
    /// The server takes the request and offers no stream.
    NoStream,
    /// The server does not take the request.
    Refused(StatusCode),
    /// There is no token that it would take.
    NotSignedIn(Box<AuthFault>),
    /// The server, or the way to it, is out of order.
    Failed,
}

/// Asks for the stream and reads it to its end.
async fn hear(
    talk: &Talk,
    session: Option<&HeaderValue>,
    resume: &mut Resume,
    opened: &mut Option<oneshot::Sender<()>>,
) -> Heard {
    let mut ask = talk.ask(Method::GET, session);
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
                return Heard::NoStream;
            }
            read(&talk.inlet, response, None, resume).await;
            Heard::Ended
        }
        Ok(response) if response.status().is_client_error() => Heard::Refused(response.status()),
        Err(Fault::Lost { reason: Lost::NotSignedIn(fault), .. }) => Heard::NotSignedIn(fault),
        Ok(_) | Err(_) => Heard::Failed,
    }
}

/// What may help where there is no token.
enum Remedy {
    Time,
    Person,
    Nothing,
}

fn remedy(fault: &AuthFault) -> Remedy {
    match fault {
        AuthFault::Helper(_)
        | AuthFault::Discovery(_)
        | AuthFault::Address { .. }
        | AuthFault::OtherIssuer { .. }
        | AuthFault::Registration(_)
        | AuthFault::Identity(_) => Remedy::Time,
        AuthFault::Nobody
        | AuthFault::NoWay
        | AuthFault::Declined(_)
        | AuthFault::NotAsked(_)
        | AuthFault::Late(_)
        | AuthFault::NoToken(_)
        | AuthFault::Scope(_)
        | AuthFault::Refused { .. }
        | AuthFault::Other(_) => Remedy::Person,
        AuthFault::Shutdown => Remedy::Nothing,
    }
}
