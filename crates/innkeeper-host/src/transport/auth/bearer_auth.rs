//! Bearer authentication of one server's requests.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use innkeeper_config::Secret;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response, StatusCode};
use tokio::sync::{oneshot, watch};

use super::{AuthError, AuthErrorKind, Challenge, ProtectedResource, TokenFuture, TokenProvider};
use crate::audit::AuditEvent;
use crate::error::UnavailableReason;
use crate::session::RequestError;
use crate::tasks::BackgroundTasks;
use crate::transport::http::send_error;
use crate::transport::sent_secrets::SentSecrets;

/// Maximum number of retries of one request with another token: one for an expired token, one for a
/// new sign-in and one for an additional scope. More retries do not help: the server rejects every
/// token.
const MAX_TOKEN_RETRIES: u32 = 3;

/// Maximum length of a `WWW-Authenticate` header in bytes. A longer header is ignored.
const MAX_CHALLENGE_BYTES: usize = 8 << 10;

/// The result of a running sign-in, shared by all waiting requests.
type PendingToken = watch::Receiver<Option<Result<Secret, AuthError>>>;

/// The bearer authentication of one server.
pub(in crate::transport) struct BearerAuth {
    resource: ProtectedResource,
    provider: Arc<dyn TokenProvider>,
    tasks: BackgroundTasks,
    pending: Mutex<Option<PendingToken>>,
    /// The number of successful sign-ins, at this URL and at previous URLs.
    sign_ins: AtomicU32,
}

impl fmt::Debug for BearerAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerAuth").field("resource", &self.resource).finish_non_exhaustive()
    }
}

impl BearerAuth {
    /// `initial_sign_ins` is the number of successful sign-ins at previous URLs of the server.
    pub(super) fn new(
        resource: ProtectedResource,
        provider: Arc<dyn TokenProvider>,
        tasks: BackgroundTasks,
        initial_sign_ins: u32,
    ) -> Self {
        let sign_ins = AtomicU32::new(initial_sign_ins);
        Self { resource, provider, tasks, pending: Mutex::default(), sign_ins }
    }

    /// Sends a request with a token, and retries the request with another token after a challenge. With
    /// `is_in_session`, a 401 without a challenge to a request without a token is returned.
    pub(in crate::transport) async fn send(
        self: &Arc<Self>,
        mut request: RequestBuilder,
        is_in_session: bool,
    ) -> Result<Response, RequestError> {
        let mut token = self.current_token().await.map_err(not_signed_in)?;
        let mut retries = 0;
        loop {
            let retry = request.try_clone();
            let response = with_bearer(request, token.as_ref()).send().await;
            let mut response = response.map_err(|error| send_error(&error))?;
            let status = response.status();
            if is_in_session
                && token.is_none()
                && status == StatusCode::UNAUTHORIZED
                && !response.headers().contains_key(WWW_AUTHENTICATE)
            {
                return Ok(response);
            }
            let Some(header) = parse_challenge(status, response.headers()) else {
                if let Some(token) = &token {
                    SentSecrets::attach(&mut response, token);
                }
                return Ok(response);
            };
            AuditEvent::AccessDenied { status: status.as_u16() }.emit(&self.resource.server);
            retries += 1;
            let (Some(next), true) = (retry, retries <= MAX_TOKEN_RETRIES) else {
                let kind = AuthErrorKind::TokenRejected { status: status.as_u16() };
                return Err(not_signed_in(self.error(kind)));
            };
            request = next;
            let asks_for_password = header.as_deref().is_some_and(asks_for_password);
            let challenge =
                Challenge { status: status.as_u16(), header, rejected_token: token.take() };
            token = match self.replacement_token(challenge).await {
                Ok(token) => Some(token),
                // No sign-in can help.
                Err(AuthError {
                    kind: AuthErrorKind::NoAuthorizationServer | AuthErrorKind::NoUserAgent,
                    ..
                }) if asks_for_password => return Ok(response),
                Err(error) => return Err(not_signed_in(error)),
            };
        }
    }

    /// Sends a request once with the current token, if there is one.
    pub(in crate::transport) async fn send_once(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, RequestError> {
        let token = self.current_token().await.ok().flatten();
        let sent = with_bearer(request, token.as_ref()).send().await;
        sent.map_err(|error| send_error(&error))
    }

    fn error(&self, kind: AuthErrorKind) -> AuthError {
        AuthError { server: self.resource.server.clone(), kind }
    }

    /// Converts a panic of the token provider into an error. The provider may belong to the
    /// application.
    fn catch_panic<T: 'static>(&self, start: impl FnOnce() -> TokenFuture<T>) -> TokenFuture<T> {
        let server = self.resource.server.clone();
        let started = catch_unwind(AssertUnwindSafe(start));
        Box::pin(async move {
            let result = match started {
                Ok(authorizing) => AssertUnwindSafe(authorizing).catch_unwind().await,
                Err(panic) => Err(panic),
            };
            let kind = AuthErrorKind::Other("the token provider panicked".into());
            result.unwrap_or_else(|_| Err(AuthError { server, kind }))
        })
    }

    async fn current_token(&self) -> Result<Option<Secret>, AuthError> {
        let mut token = self.catch_panic(|| self.provider.token(&self.resource));
        if let Some(ready) = (&mut token).now_or_never() {
            return ready;
        }
        // A renewal that is cancelled half-way may invalidate the token, so a task completes it.
        let (done, result) = oneshot::channel();
        self.tasks.spawn(async move {
            let _ = done.send(token.await);
        });
        result.await.unwrap_or_else(|_| Err(self.error(AuthErrorKind::Shutdown)))
    }

    /// Gets a token if there is none, as after a challenge without a header. Returns `false` if the
    /// server publishes no authorization server.
    pub(super) async fn sign_in(self: &Arc<Self>) -> Result<bool, AuthError> {
        if self.current_token().await?.is_some() {
            return Ok(true);
        }
        let status = StatusCode::UNAUTHORIZED.as_u16();
        let challenge = Challenge { status, header: None, rejected_token: None };
        match self.replacement_token(challenge).await {
            Ok(_) => Ok(true),
            Err(AuthError {
                kind: AuthErrorKind::NoAuthorizationServer | AuthErrorKind::Discovery(_),
                ..
            }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns another token. Concurrent requests share one sign-in.
    async fn replacement_token(
        self: &Arc<Self>,
        challenge: Challenge,
    ) -> Result<Secret, AuthError> {
        let mut flight = self.join_or_start_sign_in(challenge);
        let outcome = flight.wait_for(Option::is_some).await;
        let result = outcome.ok().and_then(|outcome| outcome.clone());
        result.unwrap_or_else(|| Err(self.error(AuthErrorKind::Shutdown)))
    }

    pub(super) fn add_sign_ins(&self, count: u32) {
        self.sign_ins.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the number of successful sign-ins.
    pub(super) fn sign_in_count(&self) -> u32 {
        self.sign_ins.load(Ordering::Relaxed)
    }

    /// Waits for the running sign-in, if there is one.
    pub(super) async fn wait_sign_in(&self) -> Option<Result<(), AuthErrorKind>> {
        let mut flight = self.pending()?;
        let outcome = flight.wait_for(Option::is_some).await.ok()?.clone()?;
        Some(outcome.map(drop).map_err(|error| error.kind))
    }

    pub(super) fn is_signing_in(&self) -> bool {
        self.pending().is_some_and(|flight| flight.has_changed().is_ok())
    }

    fn pending(&self) -> Option<PendingToken> {
        let flight = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        flight.clone()
    }

    fn join_or_start_sign_in(self: &Arc<Self>, challenge: Challenge) -> PendingToken {
        let mut flight = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        // A sign-in whose task was aborted never completes.
        if let Some(flight) = flight.as_ref().filter(|flight| flight.has_changed().is_ok()) {
            return flight.clone();
        }
        let (sender, receiver) = watch::channel(None);
        *flight = Some(receiver.clone());
        let signing_in = self.catch_panic(|| self.provider.on_challenge(&self.resource, challenge));
        let access = self.clone();
        self.tasks.spawn(async move {
            let result = signing_in.await;
            if let Err(error) = &result {
                AuditEvent::NotSignedIn { reason: &error.kind.to_string() }.emit(&error.server);
            }
            access.add_sign_ins(u32::from(result.is_ok()));
            // Clear the sign-in before the result is sent, so that a later rejection starts a new
            // sign-in.
            *access.pending.lock().unwrap_or_else(PoisonError::into_inner) = None;
            let _ = sender.send(Some(result));
        });
        receiver
    }
}

fn with_bearer(request: RequestBuilder, token: Option<&Secret>) -> RequestBuilder {
    let Some(token) = token else { return request };
    match HeaderValue::from_str(&format!("Bearer {}", token.expose())) {
        Ok(mut value) => {
            value.set_sensitive(true);
            request.header(AUTHORIZATION, value)
        }
        // The server will send a challenge because the invalid token is not sent.
        Err(_) => request,
    }
}

/// Returns the `WWW-Authenticate` header of a response that requires another token.
fn parse_challenge(status: StatusCode, headers: &HeaderMap) -> Option<Option<String>> {
    let challenges: Vec<String> = headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|value| {
            value.to_str().ok().filter(|text| text.len() <= MAX_CHALLENGE_BYTES).map(str::to_owned)
        })
        .collect();
    let bearer = challenges.iter().find(|challenge| names_bearer(challenge));
    let header = bearer.or(challenges.first());
    match status {
        StatusCode::UNAUTHORIZED => Some(header.cloned()),
        StatusCode::FORBIDDEN
            if header.is_some_and(|challenge| challenge.contains("insufficient_scope")) =>
        {
            Some(header.cloned())
        }
        _ => None,
    }
}

/// Returns whether one of the challenges of a header, which are separated by commas, is for a token.
pub(super) fn names_bearer(header: &str) -> bool {
    has_scheme(header, &["bearer"])
}

/// Returns whether a header without a challenge for a token asks for the password of a user.
fn asks_for_password(header: &str) -> bool {
    !names_bearer(header) && has_scheme(header, &["basic", "digest", "negotiate", "ntlm"])
}

fn has_scheme(header: &str, known: &[&str]) -> bool {
    let mut schemes = header.split(',').filter_map(|challenge| challenge.split_whitespace().next());
    schemes.any(|scheme| known.iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

fn not_signed_in(error: AuthError) -> RequestError {
    RequestError::Unavailable {
        reason: UnavailableReason::Unauthorized(Box::new(error.kind)),
        sent: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A provider whose sign-ins never end.
    struct PendingProvider;

    impl TokenProvider for PendingProvider {
        fn token(&self, _server: &ProtectedResource) -> TokenFuture<Option<Secret>> {
            Box::pin(async { Ok(None) })
        }

        fn on_challenge(&self, _: &ProtectedResource, _: Challenge) -> TokenFuture<Secret> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn a_sign_in_runs_from_its_challenge_to_the_end_of_its_task() {
        let resource = ProtectedResource { server: "inn".into(), url: "https://inn/mcp".into() };
        let tasks = BackgroundTasks::default();
        let auth = Arc::new(BearerAuth::new(resource, Arc::new(PendingProvider), tasks.clone(), 2));
        let debug = r#"BearerAuth { resource: ProtectedResource { server: "inn", .. }, .. }"#;
        assert_eq!(format!("{auth:?}"), debug);
        assert!(!auth.is_signing_in() && auth.wait_sign_in().await.is_none());
        let challenge = Challenge { status: 401, header: None, rejected_token: None };
        let replacement = auth.replacement_token(challenge);
        let mut replacement = Box::pin(replacement);
        assert!((&mut replacement).now_or_never().is_none() && auth.is_signing_in());
        tasks.stop();
        tasks.join().await;
        assert_eq!(replacement.await.unwrap_err().kind, AuthErrorKind::Shutdown);
        assert!(!auth.is_signing_in());
        assert_eq!(auth.sign_in_count(), 2);
    }

    #[test]
    fn a_challenge_is_a_401_or_a_403_for_a_scope_and_the_first_bearer_header_of_a_usable_length() {
        let challenge = |status: u16, headers: &[&str]| {
            let values = headers.iter().map(|text| HeaderValue::from_str(text).unwrap());
            let map = values.map(|value| (WWW_AUTHENTICATE, value)).collect();
            parse_challenge(StatusCode::from_u16(status).unwrap(), &map)
        };
        let scope = "Bearer error=\"insufficient_scope\"";
        assert_eq!(challenge(401, &[]), Some(None));
        assert_eq!(challenge(401, &["Basic", "bearer a"]), Some(Some("bearer a".to_owned())));
        let two = "Basic realm=\"a, b\", Bearer";
        assert_eq!(challenge(401, &[two]), Some(Some(two.to_owned())));
        assert_eq!(challenge(401, &["Basic", "Digest"]), Some(Some("Basic".to_owned())));
        assert_eq!(challenge(403, &[scope]), Some(Some(scope.to_owned())));
        for (status, header) in [(403, "Bearer a"), (200, scope), (402, scope), (404, scope)] {
            assert_eq!(challenge(status, &[header]), None, "{status}");
        }
        let long = |excess| format!("Bearer {}", "x".repeat(MAX_CHALLENGE_BYTES - 7 + excess));
        assert_eq!(challenge(401, &[&long(0)]), Some(Some(long(0))));
        assert_eq!(challenge(401, &[&long(1)]), Some(None));
    }
}
