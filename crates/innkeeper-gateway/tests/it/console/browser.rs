//! A browser without scripts: follows redirections, keeps cookies, and sends forms with their token.

use std::collections::HashMap;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::limits::access_with_keys;
use crate::setup::{TEST_TIMEOUT, TestGateway};

/// The cookie of a session.
const SESSION_COOKIE: &str = "innkeeper_console";

/// Returns the routes of a gateway with the API keys of `ann` and `ben`.
pub(crate) fn router_with_keys(gateway: &TestGateway) -> Router {
    gateway.gateway.router(access_with_keys())
}

/// A response, after its redirections if the browser follows them.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) location: Option<String>,
    pub(crate) text: String,
    /// The path and the query of the page.
    pub(crate) path: String,
}

/// A browser of one person.
pub(crate) struct Browser {
    router: Router,
    pub(crate) cookies: HashMap<String, String>,
    /// A header of every request.
    pub(crate) header: Option<(&'static str, String)>,
    /// The prefix of the console.
    pub(crate) prefix: &'static str,
}

impl Browser {
    pub(crate) fn new(router: Router) -> Self {
        Self { router, cookies: HashMap::new(), header: None, prefix: "" }
    }

    /// Returns the id of the session.
    pub(crate) fn cookie(&self) -> Option<&String> {
        self.cookies.get(SESSION_COOKIE)
    }

    /// Sends a request with the cookies and with further headers, and follows no redirection.
    pub(crate) async fn send(
        &mut self,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: String,
    ) -> Page {
        let mut request = Request::builder().method(method).uri(format!("http://127.0.0.1{path}"));
        request = request.header("host", "127.0.0.1");
        let own = self.header.iter().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in headers.iter().copied().chain(own) {
            request = request.header(name, value);
        }
        for (name, value) in &self.cookies {
            request = request.header("cookie", format!("{name}={value}"));
        }
        let request = request.body(Body::from(body)).unwrap();
        let sending = timeout(TEST_TIMEOUT, self.router.clone().oneshot(request));
        let response = sending.await.expect("a response in time").unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        for cookie in headers.get_all("set-cookie") {
            let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let location = headers.get("location").map(|value| value.to_str().unwrap().to_owned());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        Page { status, headers, location, text, path: path.to_owned() }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Page {
        self.send(("GET", path), &[], String::new()).await
    }

    /// Sends a form of a page with its token, as a browser does, and follows the redirection.
    pub(crate) async fn submit_at(
        &mut self,
        page: &str,
        action: &str,
        fields: &[(&str, &str)],
    ) -> Page {
        let token = form_token(&self.get(page).await.text);
        let fields = [&[("form-token", &*token)], fields].concat();
        let sent = self.post(action, &fields, &[("sec-fetch-site", "same-origin")]).await;
        match &sent.location {
            None => sent,
            // The links of the console name a page beside the current one.
            Some(location) => self.get(&format!("{}/console/{location}", self.prefix)).await,
        }
    }

    /// Sends the form of a page whose action is the page itself.
    pub(crate) async fn submit(&mut self, page: &str, fields: &[(&str, &str)]) -> Page {
        self.submit_at(page, page, fields).await
    }

    pub(crate) async fn post(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Page {
        let mut pairs = url::form_urlencoded::Serializer::new(String::new());
        let body = pairs.extend_pairs(fields).finish();
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        self.send(("POST", path), &[&kind, headers].concat(), body).await
    }

    pub(crate) async fn sign_in(&mut self, credential: &str) -> Page {
        let page = format!("{}/console/sign-in", self.prefix);
        self.submit(&page, &[("credential", credential)]).await
    }

    /// Reads a page until its text fulfils a condition.
    pub(crate) async fn wait_for(&mut self, path: &str, is_done: impl Fn(&str) -> bool) -> String {
        let waiting = async {
            loop {
                let page = self.get(path).await.text;
                if is_done(&page) {
                    return page;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(TEST_TIMEOUT, waiting).await.expect("the page in time")
    }
}

/// Returns the token of the first form of a page.
pub(crate) fn form_token(page: &str) -> String {
    let token = page.split("name=\"form-token\" value=\"").nth(1);
    let token = token.unwrap_or_else(|| panic!("no form: {page}"));
    token.split('"').next().unwrap().to_owned()
}
