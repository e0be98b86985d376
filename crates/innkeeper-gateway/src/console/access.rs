//! Who may use the console: the operators, and the local user of a loopback address.

use http::header::{AUTHORIZATION, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::Console;
use super::html::{Html, html};
use super::reply::Page;
use super::request::Visitor;
use super::sessions::{FormOwner, FoundSession, SESSION_COOKIE, cookie};
use crate::principal::Principal;
use crate::rejection::Rejection;
use crate::server::ConnectionPlaces;

const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Why a request may not use the console.
pub(super) enum Denied {
    /// The request has no valid credential and no session.
    NoCredential(Rejection),
    /// The principal is no operator.
    NoOperator(Principal),
    /// The principal sends too many requests, or has too many connections.
    Rate(Rejection),
}

/// Checks that the page of another site sends no form, and loads nothing but a page that its reader
/// then sees. Browsers set the headers, and no page can change them.
pub(super) fn check_site(headers: &HeaderMap, is_read: bool) -> Result<(), Rejection> {
    let header = |name| headers.get(name).map(HeaderValue::as_bytes);
    let is_own = matches!(header(SEC_FETCH_SITE), None | Some(b"same-origin" | b"none"));
    let is_link = is_read && header(SEC_FETCH_MODE) == Some(b"navigate");
    if is_own || is_link {
        return Ok(());
    }
    Err(Rejection::new(StatusCode::FORBIDDEN, "the request is of a page of another site"))
}

/// Returns whether a request has neither a credential nor a cookie of a session.
pub(super) fn has_no_credential(parts: &Parts) -> bool {
    !parts.headers.contains_key(AUTHORIZATION) && !parts.headers.contains_key(API_KEY)
}

/// The headers of a request with another credential.
pub(super) fn with_credential(parts: &Parts, credential: HeaderValue) -> Parts {
    let mut parts = parts.clone();
    parts.headers.remove(API_KEY);
    parts.headers.insert(AUTHORIZATION, credential);
    parts
}

impl Console {
    /// Returns the operator of a request: of its credential, else of its session.
    pub(super) async fn visitor(&self, parts: &Parts) -> Result<Visitor, Denied> {
        let session = self.session(parts).filter(|_| has_no_credential(parts));
        let authenticator = &self.access.authenticator;
        let (principal, owner) = match session {
            Some((id, FoundSession { principal, credential })) => {
                let parts = with_credential(parts, credential);
                let authenticated = authenticator.authenticate(&parts).await;
                if authenticated.as_ref() != Ok(&principal) {
                    self.sessions.end(id);
                    let text = "the credential of the session is no longer valid; sign in again";
                    let rejection = Rejection::new(StatusCode::UNAUTHORIZED, text);
                    return Err(Denied::NoCredential(rejection));
                }
                (principal, Some(id))
            }
            None => {
                let principal = authenticator.authenticate(parts).await;
                (principal.map_err(Denied::NoCredential)?, None)
            }
        };
        if let Some(places) = parts.extensions.get::<ConnectionPlaces>() {
            places.count(&principal).map_err(Denied::Rate)?;
        }
        let counted = self.gateway().traffic.rate_limits.count_request(&principal);
        counted.map_err(|exceeded| Denied::Rate(exceeded.into()))?;
        if !self.is_operator(&principal) {
            return Err(Denied::NoOperator(principal));
        }
        let form_owner = owner.map_or(FormOwner::Principal(&principal), FormOwner::Session);
        // Without random numbers there is no token, and no form works.
        let form_token = self.sessions.form_token(form_owner).unwrap_or_default();
        Ok(Visitor { has_session: owner.is_some(), form_token, principal })
    }

    fn session<'p>(&self, parts: &'p Parts) -> Option<(&'p str, FoundSession)> {
        if !self.access.authenticator.requires_credential() {
            return None;
        }
        let id = cookie(&parts.headers, SESSION_COOKIE)?;
        Some((id, self.sessions.find(id)?))
    }

    /// Returns whether a principal may use the console. Without authentication, everyone who reaches
    /// the gateway is the local user. A client that is bound to servers or endpoints is no operator: the
    /// console shows all of them.
    pub(super) fn is_operator(&self, principal: &Principal) -> bool {
        let is_local =
            !self.access.authenticator.requires_credential() && self.access.origin.is_loopback();
        self.gateway().offers.endpoints.is_unbound(principal)
            && (self.options.operators.contains(principal) || is_local)
    }

    pub(super) fn is_form_token(&self, parts: &Parts, visitor: &Visitor, token: &str) -> bool {
        let owner = match cookie(&parts.headers, SESSION_COOKIE) {
            Some(id) if visitor.has_session => FormOwner::Session(id),
            _ => FormOwner::Principal(&visitor.principal),
        };
        self.sessions.is_form_token(owner, token)
    }
}

/// The page for a client that is no operator: it says which key to set.
pub(super) fn no_operator_page(principal: &Principal) -> Page {
    let mut body = Html::new();
    html!(
        body,
        "<p>The console shows data of all clients, and only operators may use it. <code>{}</code> is \
         no operator.</p>\n<p>Add the name to <code>serve.console.operators</code> in the \
         configuration of the gateway, and restart it:</p>\n<pre>{}</pre>\n\
         <p>A client with <code>servers</code> or <code>endpoints</code> of its own cannot be one.</p>\n\
         <p><a href=\"sign-in\">Sign in with another credential</a></p>",
        principal.id(),
        example(principal)
    );
    Page { status: StatusCode::FORBIDDEN, ..Page::new("Operators only", body) }
}

fn example(principal: &Principal) -> String {
    let operators =
        serde_json::json!({ "serve": { "console": { "operators": [**principal.id()] } } });
    operators.to_string()
}

/// The page for a form whose token is missing, or belongs to a session that has ended.
pub(super) fn stale_form_page() -> Page {
    let text = "The form is not of this session, or the session has ended. Nothing was changed: open \
                the page again and send its form.";
    Page::message(StatusCode::FORBIDDEN, "Form refused", text)
}
