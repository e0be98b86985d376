//! One server's requests with their tokens: sent again when signing in has helped.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response, StatusCode};
use tokio::sync::{oneshot, watch};

use super::{AuthError, AuthFault, Authorize, Authorizing, Challenge, Protected};
use crate::audit::Fact;
use crate::config::Secret;
use crate::error::Lost;
use crate::server::session::Fault;
use crate::tasks::Tasks;
use crate::transport::http::unsent;
use crate::transport::sent::Sent;

/// How often one request is sent again with another token: an expired one renewed, signed in anew,
/// and a scope added. A server that wants more than that wants it for ever.
const ROUNDS: u32 = 3;

/// How much of a challenge is read.
const HEADER: usize = 8 << 10;

/// A new token, once it is there, for all who wait for it.
type Flight = watch::Receiver<Option<Result<Secret, AuthError>>>;

/// The tokens of one server.
pub(in crate::transport) struct Access {
    protected: Protected,
    authorize: Arc<dyn Authorize>,
    tasks: Tasks,
    flight: Mutex<Option<Flight>>,
    /// How many of them brought a token, at this address and those before.
    landed: AtomicU32,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("protected", &self.protected).finish_non_exhaustive()
    }
}

impl Access {
    /// `landed` is how often somebody has signed in at the addresses the server had before.
    pub(super) fn new(
        protected: Protected,
        authorize: Arc<dyn Authorize>,
        tasks: Tasks,
        landed: u32,
    ) -> Self {
        let (flight, landed) = (Mutex::default(), AtomicU32::new(landed));
        Self { protected, authorize, tasks, flight, landed }
    }

    /// Sends a request with a token, and again with another one for as long as that may help.
    pub(in crate::transport) async fn send(
        self: &Arc<Self>,
        mut request: RequestBuilder,
    ) -> Result<Response, Fault> {
        let mut token = self.token().await.map_err(no_token)?;
        let mut rounds = 0;
        loop {
            let again = request.try_clone();
            let response = bearing(request, token.as_ref()).send().await;
            let mut response = response.map_err(|error| unsent(&error))?;
            let status = response.status();
            let Some(header) = challenge(status, response.headers()) else {
                if let Some(token) = &token {
                    Sent::note(&mut response, token);
                }
                return Ok(response);
            };
            Fact::AccessDenied { status: status.as_u16() }.tell(&self.protected.server);
            rounds += 1;
            let (Some(next), true) = (again, rounds <= ROUNDS) else {
                let fault = AuthFault::Refused { status: status.as_u16() };
                return Err(no_token(self.error(fault)));
            };
            request = next;
            let challenge = Challenge { status: status.as_u16(), header, refused: token.take() };
            token = Some(self.another(challenge).await.map_err(no_token)?);
        }
    }

    /// Sends a request with the token that is there, if one is, and takes any answer.
    pub(in crate::transport) async fn send_once(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, Fault> {
        let token = self.token().await.ok().flatten();
        let sent = bearing(request, token.as_ref()).send().await;
        sent.map_err(|error| unsent(&error))
    }

    fn error(&self, fault: AuthFault) -> AuthError {
        AuthError { server: self.protected.server.clone(), fault }
    }

    /// What signing in comes to. It may be an application's, whose panic is no end of a task here.
    fn authorizing<T: 'static>(&self, begin: impl FnOnce() -> Authorizing<T>) -> Authorizing<T> {
        let server = self.protected.server.clone();
        let begun = catch_unwind(AssertUnwindSafe(begin));
        Box::pin(async move {
            let result = match begun {
                Ok(authorizing) => AssertUnwindSafe(authorizing).catch_unwind().await,
                Err(panic) => Err(panic),
            };
            let fault = AuthFault::Other("what signs in there panicked".into());
            result.unwrap_or_else(|_| Err(AuthError { server, fault }))
        })
    }

    async fn token(&self) -> Result<Option<Secret>, AuthError> {
        let mut token = self.authorizing(|| self.authorize.token(&self.protected));
        if let Some(known) = (&mut token).now_or_never() {
            return known;
        }
        // A renewal that is cut off in the middle may cost the token it was for.
        let (done, result) = oneshot::channel();
        self.tasks.spawn(async move { drop(done.send(token.await)) });
        result.await.unwrap_or_else(|_| Err(self.error(AuthFault::Shutdown)))
    }

    /// Another token; whoever asks while one is on its way gets that one.
    async fn another(self: &Arc<Self>, challenge: Challenge) -> Result<Secret, AuthError> {
        let mut flight = self.flight(challenge);
        let landed = flight.wait_for(Option::is_some).await;
        let result = landed.ok().and_then(|landed| landed.clone());
        result.unwrap_or_else(|| Err(self.error(AuthFault::Shutdown)))
    }

    pub(super) fn count(&self, landed: u32) {
        self.landed.fetch_add(landed, Ordering::Relaxed);
    }

    /// How often somebody has signed in.
    pub(super) fn landed(&self) -> u32 {
        self.landed.load(Ordering::Relaxed)
    }

    /// Waits for the sign-in that is under way, if one is.
    pub(super) async fn landing(&self) -> Option<Result<(), AuthFault>> {
        let mut flight = self.under_way()?;
        let landed = flight.wait_for(Option::is_some).await.ok()?.clone()?;
        Some(landed.map(drop).map_err(|error| error.fault))
    }

    /// Whether somebody is signing in.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way().is_some_and(|flight| flight.has_changed().is_ok())
    }

    fn under_way(&self) -> Option<Flight> {
        let flight = self.flight.lock().unwrap_or_else(PoisonError::into_inner);
        flight.clone()
    }

    fn flight(self: &Arc<Self>, challenge: Challenge) -> Flight {
        let mut flight = self.flight.lock().unwrap_or_else(PoisonError::into_inner);
        // One whose task has been ended will not land.
        if let Some(flight) = flight.as_ref().filter(|flight| flight.has_changed().is_ok()) {
            return flight.clone();
        }
        let (land, landing) = watch::channel(None);
        *flight = Some(landing.clone());
        let challenged = || self.authorize.challenged(&self.protected, challenge);
        let signing_in = self.authorizing(challenged);
        let access = self.clone();
        self.tasks.spawn(async move {
            let result = signing_in.await;
            if let Err(error) = &result {
                Fact::NotSignedIn { why: &error.fault.to_string() }.tell(&error.server);
            }
            access.count(u32::from(result.is_ok()));
            // Before it lands, so that who is refused later begins another one.
            *access.flight.lock().unwrap_or_else(PoisonError::into_inner) = None;
            drop(land.send(Some(result)));
        });
        landing
    }
}

fn bearing(request: RequestBuilder, token: Option<&Secret>) -> RequestBuilder {
    let Some(token) = token else { return request };
    match HeaderValue::from_str(&format!("Bearer {}", token.expose())) {
        Ok(mut value) => {
            value.set_sensitive(true);
            request.header(AUTHORIZATION, value)
        }
        // It cannot be sent, so the server will ask for another one.
        Err(_) => request,
    }
}

/// What an answer says about the token that is wanted, if that is what it is about.
fn challenge(status: StatusCode, headers: &HeaderMap) -> Option<Option<String>> {
    let text = |value: &HeaderValue| {
        value.to_str().ok().filter(|text| text.len() <= HEADER).map(str::to_owned)
    };
    let told: Vec<String> = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(text).collect();
    let bearer = |told: &&String| told.trim_start().get(..6).is_some_and(is_bearer);
    let header = told.iter().find(bearer).or(told.first());
    match status {
        StatusCode::UNAUTHORIZED => Some(header.cloned()),
        StatusCode::FORBIDDEN if header.is_some_and(|told| told.contains("insufficient_scope")) => {
            Some(header.cloned())
        }
        _ => None,
    }
}

pub(super) fn is_bearer(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("bearer")
}

fn no_token(error: AuthError) -> Fault {
    Fault::Lost { reason: Lost::NotSignedIn(Box::new(error.fault)), sent: false }
}
