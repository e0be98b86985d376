//! The GET stream for server messages of the legacy era.

use std::sync::Arc;

use innkeeper_protocol::http;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, StatusCode};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::events::{ResumeState, read_events};
use super::session::HttpSession;
use crate::backoff::{INITIAL_BACKOFF, MAX_BACKOFF, ReopenBackoff};
use crate::error::{AuthErrorKind, UnavailableReason};
use crate::session::RequestError;

/// Keeps the stream open while the server offers it. `opened` is dropped after the first response.
pub(super) async fn listen(
    http_session: Arc<HttpSession>,
    opened: oneshot::Sender<()>,
) -> Option<u64> {
    let mut opened = Some(opened);
    let mut resume = ResumeState::default();
    let mut backoff = ReopenBackoff::default();
    // The session of the last open stream.
    let mut open = None;
    // Whether the last attempt failed because no person signed in.
    let mut user_absent = false;
    loop {
        let session = http_session.session_id();
        if session != open {
            // Event ids of one session are not valid in another session.
            resume = ResumeState::default();
        }
        let was_open = open == session;
        let outcome = tokio::select! {
            biased;
            // A changed session ends the old stream: its messages belong to the old session.
            () = http_session.wait_session_change(session.as_ref()) => ListenOutcome::SessionChanged,
            heard = read_stream(
                &http_session, session.as_ref(), was_open, &mut resume, &mut opened,
            ) => heard,
        };
        let _ = opened.take();
        match outcome {
            ListenOutcome::SessionChanged => continue,
            ListenOutcome::Ended => {
                (open, user_absent) = (session.clone(), false);
                backoff.reset();
            }
            // The server may only be unable to resume the stream.
            ListenOutcome::Rejected(StatusCode::BAD_REQUEST)
                if was_open && resume.last_event_id.is_some() =>
            {
                resume = ResumeState::default();
                continue;
            }
            // The session ended after its stream was open, and no call may notice for a long time.
            ListenOutcome::Rejected(
                StatusCode::NOT_FOUND
                | StatusCode::GONE
                | StatusCode::BAD_REQUEST
                | StatusCode::UNAUTHORIZED,
            ) if was_open => {
                let Some(expired) = &session else { return None };
                let renewed = http_session.reinitialize(expired).await.is_ok();
                // The server may return the same session id again and reject it again.
                if renewed && http_session.session_id() != session {
                    continue;
                }
                backoff.double();
            }
            // The server forgot the session that another host started, or offers no stream at this
            // path. The next request tells.
            ListenOutcome::Rejected(StatusCode::NOT_FOUND)
                if http_session.state.is_continued(session.as_ref()) =>
            {
                http_session.wait_session_change(session.as_ref()).await;
                continue;
            }
            // The stream of the host that started the session is still open.
            ListenOutcome::Rejected(StatusCode::CONFLICT)
                if http_session.state.is_continued(session.as_ref()) =>
            {
                backoff.double();
            }
            // The server offers no stream, unless the session changed in the meantime.
            ListenOutcome::Rejected(_) | ListenOutcome::NoStream
                if http_session.session_id() == session =>
            {
                return None;
            }
            ListenOutcome::NotSignedIn(error) => match recovery_for(&error) {
                AuthRecovery::Retry => backoff.double(),
                // A new attempt could ask the person again, so the loop waits for an accepted
                // request.
                AuthRecovery::UserSignIn if !user_absent => {
                    user_absent = true;
                    http_session.wait_accepted().await;
                    continue;
                }
                AuthRecovery::UserSignIn | AuthRecovery::Never => return None,
            },
            ListenOutcome::Rejected(_) | ListenOutcome::NoStream | ListenOutcome::Failed => {
                backoff.double();
            }
        }
        let pausing =
            sleep(resume.retry.unwrap_or(backoff.delay()).clamp(INITIAL_BACKOFF, MAX_BACKOFF));
        tokio::select! {
            () = pausing => {}
            () = http_session.wait_session_change(session.as_ref()) => {}
        }
    }
}

/// The outcome of an attempt to read the stream.
enum ListenOutcome {
    /// The stream was open and ended.
    Ended,
    /// The session changed.
    SessionChanged,
    /// The server accepts the request but returns no stream.
    NoStream,
    /// The server rejects the request.
    Rejected(StatusCode),
    /// The host has no token that the server accepts.
    NotSignedIn(Box<AuthErrorKind>),
    /// The server or the connection failed.
    Failed,
}

/// Opens the stream and reads it to the end. If an earlier stream of the session was open, a 401
/// without a challenge says that the session is gone.
async fn read_stream(
    http_session: &HttpSession,
    session: Option<&HeaderValue>,
    was_open: bool,
    resume: &mut ResumeState,
    opened: &mut Option<oneshot::Sender<()>>,
) -> ListenOutcome {
    let mut request = http_session.build_request(Method::GET, session);
    let last = resume.last_event_id.as_deref().and_then(|last| HeaderValue::from_str(last).ok());
    if let Some(last) = last {
        request = request.header(http::LAST_EVENT_ID, last);
    }
    let result = match session {
        Some(_) if was_open => http_session.send_in_session(request).await,
        _ => http_session.send(request).await,
    };
    let _ = opened.take();
    match result {
        Ok(response) if response.status().is_success() => {
            let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
            if !kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
                return ListenOutcome::NoStream;
            }
            read_events(&http_session.inbound, response, None, resume).await;
            ListenOutcome::Ended
        }
        Ok(response) if response.status().is_client_error() => {
            ListenOutcome::Rejected(response.status())
        }
        Err(RequestError::Unavailable {
            reason: UnavailableReason::Unauthorized(error), ..
        }) => ListenOutcome::NotSignedIn(error),
        Ok(_) | Err(_) => ListenOutcome::Failed,
    }
}

/// The way to recover from an authorization error.
enum AuthRecovery {
    Retry,
    UserSignIn,
    Never,
}

fn recovery_for(kind: &AuthErrorKind) -> AuthRecovery {
    match kind {
        AuthErrorKind::HeadersHelper(_)
        | AuthErrorKind::Discovery(_)
        | AuthErrorKind::DisallowedAddress { .. }
        | AuthErrorKind::IssuerMismatch { .. }
        | AuthErrorKind::Registration(_)
        | AuthErrorKind::IdentityProvider(_) => AuthRecovery::Retry,
        AuthErrorKind::NoUserAgent
        | AuthErrorKind::NoAuthorizationServer
        | AuthErrorKind::Declined(_)
        | AuthErrorKind::UserAgentFailed(_)
        | AuthErrorKind::Timeout(_)
        | AuthErrorKind::TokenRequestFailed(_)
        | AuthErrorKind::InsufficientScope(_)
        | AuthErrorKind::TokenRejected { .. }
        | AuthErrorKind::Other(_) => AuthRecovery::UserSignIn,
        AuthErrorKind::Shutdown => AuthRecovery::Never,
    }
}
