//! The console for operators at `/console`: pages that the gateway renders, for a browser.
//!
//! The pages work without scripts; the script only reads them again. A page shows data of all clients,
//! so that with authentication only operators may use it. `routes.rs` has the list of pages.

mod access;
mod audit;
mod call;
mod call_result;
mod calls;
mod charts;
mod console_calls;
mod html;
mod navigation;
mod question;
mod questions;
mod reply;
mod request;
mod routes;
mod server;
mod servers;
mod sessions;
mod sign_in;
mod svg_chart;
mod tool;
mod tool_form;
mod tools;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use http::header::{ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};

use crate::http_access::HttpAccess;
use crate::metrics::RejectionReason;
use crate::options::ConsoleOptions;
use crate::rejection::Rejection;
use crate::transport::http::HttpTransport;
use access::Denied;
use console_calls::ConsoleCalls;
use html::Link;
use navigation::FIRST_PAGE;
use reply::{Page, Reply, file_response, page_response, redirect};
use request::{ConsoleRequest, Fields, TOKEN_FIELD, Visitor};
use routes::UnknownRoute;
use sessions::Sessions;

const STYLESHEET: &str = include_str!("console/console.css");
const SCRIPT: &str = include_str!("console/console.js");

/// The page of the sign-in form.
const SIGN_IN: &str = "sign-in";
const SIGN_OUT: &str = "sign-out";

#[derive(Debug)]
pub(crate) struct Console {
    transport: Arc<HttpTransport>,
    access: Arc<HttpAccess>,
    options: ConsoleOptions,
    sessions: Sessions,
    calls: Arc<ConsoleCalls>,
}

impl Console {
    pub(crate) fn new(
        transport: Arc<HttpTransport>,
        access: Arc<HttpAccess>,
        options: ConsoleOptions,
    ) -> Self {
        let sessions = Sessions::new();
        Self { transport, access, options, sessions, calls: Arc::default() }
    }

    /// Returns the redirection of `/console`. It is relative, so that it works below any prefix.
    pub(crate) fn first_page(has_slash: bool) -> Response<Body> {
        redirect(&Link::to(if has_slash { FIRST_PAGE } else { "console/servers" }))
    }

    pub(crate) async fn handle(&self, page: &str, request: Request) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let is_read = matches!(parts.method, Method::GET | Method::HEAD);
        // The files are the same for everyone.
        match page {
            "console.css" if is_read => {
                return file_response("text/css; charset=utf-8", STYLESHEET);
            }
            "console.js" if is_read => {
                return file_response("text/javascript; charset=utf-8", SCRIPT);
            }
            _ => {}
        }
        let checked = self
            .access
            .origin
            .check(&parts)
            .and_then(|()| access::check_site(&parts.headers, is_read));
        if let Err(rejection) = checked {
            self.count_rejection(RejectionReason::Origin, &rejection);
            return rejected(&rejection, None);
        }
        if page == SIGN_IN {
            return self.sign_in(&parts, body).await;
        }
        match self.visitor(&parts).await {
            Ok(visitor) => self.handle_visitor(page, visitor, &parts, body).await,
            Err(Denied::NoCredential(rejection))
                if is_read
                    && rejection.status() == StatusCode::UNAUTHORIZED
                    && access::has_no_credential(&parts) =>
            {
                redirect(&Link::to(SIGN_IN))
            }
            Err(Denied::NoCredential(rejection)) => {
                self.count_rejection(RejectionReason::Authentication, &rejection);
                rejected(&rejection, None)
            }
            Err(Denied::NoOperator(principal)) => {
                let text = "a client that is no operator requested the console";
                self.gateway().traffic.audit_log.record("console-refused", Some(&principal), text);
                page_response(&access::no_operator_page(&principal), None, None)
            }
            Err(Denied::Rate(rejection)) => {
                self.count_rejection(RejectionReason::Rate, &rejection);
                rejected(&rejection, None)
            }
        }
    }

    fn gateway(&self) -> &Arc<crate::state::GatewayState> {
        &self.transport.gateway
    }

    fn count_rejection(&self, reason: RejectionReason, rejection: &Rejection) {
        self.gateway().traffic.metrics.count_rejection(reason);
        let text = format!("console: {} {}", rejection.status().as_u16(), rejection.message());
        self.gateway().traffic.audit_log.record("request-rejected", None, &text);
    }

    async fn handle_visitor(
        &self,
        page: &str,
        visitor: Visitor,
        parts: &Parts,
        body: Body,
    ) -> Response<Body> {
        let query = Fields::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let is_sign_out = page == SIGN_OUT && parts.method == Method::POST;
        let route = match routes::find(&parts.method, page) {
            Ok(route) => Some(route),
            Err(_) if is_sign_out => None,
            Err(UnknownRoute::Page) => {
                return page_response(
                    &Page::not_found("The console has no such page."),
                    Some(&visitor),
                    None,
                );
            }
            Err(UnknownRoute::Method) => {
                let text = "The page does not accept this method.";
                let page =
                    Page::message(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", text);
                let mut response = page_response(&page, Some(&visitor), None);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
                return response;
            }
        };
        // The memory of the form is reserved until the response.
        let (form, _memory) = if parts.method == Method::POST {
            if !is_form(parts) {
                let text = "a form has the type `application/x-www-form-urlencoded`";
                let rejection = Rejection::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
                return rejected(&rejection, Some(&visitor));
            }
            match self.transport.bodies.read(&visitor.principal, body).await {
                Ok((body, memory)) => (Fields::parse(&body), Some(memory)),
                Err(rejection) => return rejected(&rejection, Some(&visitor)),
            }
        } else {
            (Fields::default(), None)
        };
        if parts.method == Method::POST {
            let token = form.get(TOKEN_FIELD).unwrap_or_default();
            if !self.is_form_token(parts, &visitor, token) {
                let text = "a form without its token was refused";
                self.gateway().traffic.audit_log.record(
                    "form-refused",
                    Some(&visitor.principal),
                    text,
                );
                return page_response(&access::stale_form_page(), Some(&visitor), None);
            }
        }
        let Some(route) = route else { return self.sign_out(parts, &visitor) };
        let gateway = self.gateway();
        let request = ConsoleRequest { gateway, calls: &self.calls, visitor, query, form };
        match (route.handler)(&request).await {
            Reply::Page(page) => page_response(&page, Some(&request.visitor), Some(route.section)),
            Reply::Redirect(link) => redirect(&link),
        }
    }
}

fn is_form(parts: &Parts) -> bool {
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|value| value.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// Returns the page of a request that is not permitted, with the headers of the rejection.
fn rejected(rejection: &Rejection, visitor: Option<&Visitor>) -> Response<Body> {
    let status = rejection.status();
    let title = status.canonical_reason().unwrap_or("Rejected");
    let mut response =
        page_response(&Page::message(status, title, rejection.message()), visitor, None);
    let others = rejection.headers().iter().filter(|(name, _)| *name != CONTENT_TYPE);
    for (name, value) in others {
        response.headers_mut().insert(name, value.clone());
    }
    response
}
