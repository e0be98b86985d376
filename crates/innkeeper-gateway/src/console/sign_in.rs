//! Signs a browser in with an API key or a token, and out.

use axum::body::Body;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use tokio::time::timeout;

use super::html::{Html, Link, html};
use super::navigation::FIRST_PAGE;
use super::reply::{Page, page_response, redirect, set_cookie};
use super::request::{Fields, TOKEN_FIELD, Visitor};
use super::sessions::{FormOwner, MAX_AGE, SESSION_COOKIE, SIGN_IN_COOKIE, cookie};
use super::{Console, SIGN_IN, access, is_form, rejected};
use crate::metrics::RejectionReason;
use crate::rejection::Rejection;

/// Maximum size of the body of the form: a credential has at most 16 KiB, and each byte may be escaped
/// with three.
const MAX_BODY_BYTES: usize = 64 << 10;

/// Seconds in which a person fills the form.
const FORM_SECONDS: u64 = 600;

impl Console {
    /// Shows the form, or signs in. Without authentication nobody signs in.
    pub(super) async fn sign_in(&self, parts: &Parts, body: Body) -> Response<Body> {
        if !self.access.authenticator.requires_credential() {
            return redirect(&Link::to(FIRST_PAGE));
        }
        match parts.method {
            Method::GET | Method::HEAD => self.sign_in_form(parts, StatusCode::OK, None),
            Method::POST => {
                let credential = match self.read_form(parts, body).await {
                    Ok(Some(credential)) => credential,
                    Ok(None) => {
                        let text = "The form has expired. Send it again.";
                        return self.sign_in_form(parts, StatusCode::FORBIDDEN, Some(text));
                    }
                    Err(rejection) => return rejected(&rejection, None),
                };
                self.start_session(parts, &credential).await
            }
            _ => rejected(&Rejection::new(StatusCode::METHOD_NOT_ALLOWED, "use GET or POST"), None),
        }
    }

    /// Returns the credential of the form; `None` if the token is not that of the browser.
    async fn read_form(&self, parts: &Parts, body: Body) -> Result<Option<String>, Rejection> {
        if !is_form(parts) {
            let text = "a form has the type `application/x-www-form-urlencoded`";
            return Err(Rejection::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
        }
        let reading = axum::body::to_bytes(body, MAX_BODY_BYTES);
        let body = timeout(self.gateway().options.limits.request_time, reading).await;
        let form = Fields::parse(
            &body
                .map_err(|_| {
                    Rejection::new(StatusCode::REQUEST_TIMEOUT, "the form did not arrive in time")
                })?
                .map_err(|_| {
                    Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long")
                })?,
        );
        let token = form.get(TOKEN_FIELD).unwrap_or_default();
        let id = cookie(&parts.headers, SIGN_IN_COOKIE).unwrap_or_default();
        let is_own = !id.is_empty() && self.sessions.is_form_token(FormOwner::SignIn(id), token);
        Ok(is_own.then(|| form.get("credential").unwrap_or_default().trim().to_owned()))
    }

    async fn start_session(&self, parts: &Parts, credential: &str) -> Response<Body> {
        let header = HeaderValue::from_str(&format!("Bearer {credential}"));
        let authenticated = match &header {
            Ok(header) if !credential.is_empty() => {
                let parts = access::with_credential(parts, header.clone());
                self.access.authenticator.authenticate(&parts).await
            }
            _ => Err(Rejection::new(StatusCode::UNAUTHORIZED, "enter an API key or a token")),
        };
        let (principal, header) = match (authenticated, header) {
            (Ok(principal), Ok(header)) => (principal, header),
            (Err(rejection), _) => {
                self.count_rejection(RejectionReason::Authentication, &rejection);
                return self.sign_in_form(parts, rejection.status(), Some(rejection.message()));
            }
            (Ok(_), Err(_)) => return self.sign_in_form(parts, StatusCode::UNAUTHORIZED, None),
        };
        if let Err(exceeded) = self.gateway().traffic.rate_limits.count_request(&principal) {
            let rejection = Rejection::from(exceeded);
            self.count_rejection(RejectionReason::Rate, &rejection);
            return rejected(&rejection, None);
        }
        let audit_log = &self.gateway().traffic.audit_log;
        if !self.is_operator(&principal) {
            let text = "a client that is no operator signed in to the console";
            audit_log.record("console-refused", Some(&principal), text);
            return page_response(&access::no_operator_page(&principal), None, None);
        }
        let Some(id) = self.sessions.start(principal.clone(), header) else {
            let text = "the system has no random numbers";
            return rejected(&Rejection::new(StatusCode::INTERNAL_SERVER_ERROR, text), None);
        };
        audit_log.record("console-signed-in", Some(&principal), "signed in to the console");
        let mut response = redirect(&Link::to(FIRST_PAGE));
        let is_https = is_https(parts);
        set_cookie(&mut response, SESSION_COOKIE, &id, MAX_AGE.as_secs(), is_https);
        set_cookie(&mut response, SIGN_IN_COOKIE, "", 0, is_https);
        response
    }

    fn sign_in_form(
        &self,
        parts: &Parts,
        status: StatusCode,
        problem: Option<&str>,
    ) -> Response<Body> {
        let id = self.sessions.random_text().unwrap_or_default();
        let token = self.sessions.form_token(FormOwner::SignIn(&id)).unwrap_or_default();
        let mut body = Html::new();
        html!(
            body,
            "<form class=\"card narrow\" method=\"post\" action=\"{}\">",
            Link::to(SIGN_IN)
        );
        html!(body, "<input type=\"hidden\" name=\"form-token\" value=\"{}\">", token);
        if let Some(problem) = problem {
            html!(body, "<p class=\"problem\" id=\"problem\" role=\"alert\">{}</p>", problem);
        }
        html!(body, "<label for=\"credential\">API key or token</label>");
        let described = if problem.is_some() { "problem hint" } else { "hint" };
        html!(
            body,
            "<input id=\"credential\" name=\"credential\" type=\"password\" required \
             autocomplete=\"current-password\" aria-describedby=\"{}\">\
             <p class=\"hint\" id=\"hint\">A credential of an operator \
             (<code>serve.console.operators</code>). The session ends after 30 minutes without a \
             request, and with the credential.</p><button>Sign in</button></form>",
            described
        );
        let page = Page { status, ..Page::new("Sign in", body) };
        let mut response = page_response(&page, None, None);
        set_cookie(&mut response, SIGN_IN_COOKIE, &id, FORM_SECONDS, is_https(parts));
        response
    }

    /// Ends the session of a visitor.
    pub(super) fn sign_out(&self, parts: &Parts, visitor: &Visitor) -> Response<Body> {
        if let Some(id) = cookie(&parts.headers, SESSION_COOKIE) {
            self.sessions.end(id);
        }
        let text = "signed out of the console";
        self.gateway().traffic.audit_log.record(
            "console-signed-out",
            Some(&visitor.principal),
            text,
        );
        let mut response = redirect(&Link::to(SIGN_IN));
        set_cookie(&mut response, SESSION_COOKIE, "", 0, is_https(parts));
        response
    }
}

/// Returns whether the browser uses HTTPS, directly or up to a proxy: the origin of a form tells, and
/// what proxies add. A client can only make its own cookie stricter.
fn is_https(parts: &Parts) -> bool {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let forwarded = header("x-forwarded-proto").and_then(|value| value.split(',').next());
    parts.uri.scheme_str() == Some("https")
        || forwarded.is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
        || header("origin").is_some_and(|origin| origin.starts_with("https://"))
}
