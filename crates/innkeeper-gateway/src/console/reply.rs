//! The responses of the console: pages, redirections and files, with the headers that confine them.

use axum::body::Body;
use axum::response::IntoResponse;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, LOCATION, SET_COOKIE};
use http::{HeaderValue, Response, StatusCode};

use super::html::{Html, Link, Name, html};
use super::navigation::{SECTIONS, Section};
use super::request::Visitor;

/// No markup of a page can load or send anything but what the gateway serves; the script reads pages
/// of the console again.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; \
     base-uri 'none'";

/// The headers of every response. With the policy `no-referrer`, a browser sends forms with the origin
/// `null`, which the gateway refuses.
const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];

#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) title: String,
    pub(crate) body: Html,
    /// Whether a browser without scripts loads the page again after two seconds.
    pub(crate) reloads: bool,
}

impl Page {
    pub(crate) fn new(title: impl Into<String>, body: Html) -> Self {
        Self { status: StatusCode::OK, title: title.into(), body, reloads: false }
    }

    pub(crate) fn message(status: StatusCode, title: &str, text: &str) -> Self {
        let mut body = Html::new();
        html!(body, "<p>{}</p>", text);
        Self { status, ..Self::new(title, body) }
    }

    /// The page of an item that does not exist, or not for this operator.
    pub(crate) fn not_found(text: &str) -> Self {
        Self::message(StatusCode::NOT_FOUND, "Not found", text)
    }
}

/// What a handler returns.
#[derive(Debug)]
pub(crate) enum Reply {
    Page(Page),
    /// The browser loads another page.
    Redirect(Link),
}

impl From<Page> for Reply {
    fn from(page: Page) -> Self {
        Self::Page(page)
    }
}

/// Returns the response with a page, in the layout for a visitor; without the navigation for none.
pub(crate) fn page_response(
    page: &Page,
    visitor: Option<&Visitor>,
    active: Option<&'static str>,
) -> Response<Body> {
    let mut out = Html::new();
    html!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} – Innkeeper</title>\n\
         <link rel=\"stylesheet\" href=\"console.css\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <script src=\"console.js\" defer></script>\n",
        Name(&page.title)
    );
    if page.reloads {
        html!(out, "<noscript><meta http-equiv=\"refresh\" content=\"2\"></noscript>\n");
    }
    html!(
        out,
        "</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header>\n"
    );
    html!(out, "<p class=\"brand\">Innkeeper</p>\n");
    if let Some(visitor) = visitor {
        write_navigation(&mut out, active);
        html!(out, "<div class=\"who\"><span>{}</span>", visitor.principal.id());
        if visitor.has_session {
            html!(out, "<form method=\"post\" action=\"sign-out\">{}", visitor.token_field());
            html!(out, "<button class=\"quiet\">Sign out</button></form>");
        }
        html!(out, "</div>\n");
    }
    html!(out, "</header>\n<main id=\"main\" tabindex=\"-1\">\n<h1>{}</h1>\n", Name(&page.title));
    html!(out, "{}\n</main>\n</body>\n</html>\n", page.body);
    let response = (page.status, out.into_string()).into_response();
    with_headers(response, "text/html; charset=utf-8", "no-store")
}

fn write_navigation(out: &mut Html, active: Option<&'static str>) {
    html!(out, "<nav aria-label=\"Console\"><ul>");
    for Section { page, title } in &SECTIONS {
        if active == Some(page) {
            html!(
                out,
                "<li><a href=\"{}\" aria-current=\"page\">{}</a></li>",
                Link::to(page),
                title
            );
        } else {
            html!(out, "<li><a href=\"{}\">{}</a></li>", Link::to(page), title);
        }
    }
    html!(out, "</ul></nav>\n");
}

/// Returns the response that sends the browser to another page.
pub(crate) fn redirect(link: &Link) -> Response<Body> {
    let mut response = StatusCode::SEE_OTHER.into_response();
    // A link is escaped for a query, and its page is a literal.
    if let Ok(location) = HeaderValue::from_str(link.as_str()) {
        response.headers_mut().insert(LOCATION, location);
    }
    with_headers(response, "text/plain; charset=utf-8", "no-store")
}

pub(crate) fn file_response(kind: &'static str, text: &'static str) -> Response<Body> {
    with_headers(text.into_response(), kind, "no-cache")
}

fn with_headers(
    mut response: Response<Body>,
    kind: &'static str,
    cache: &'static str,
) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// Sets a cookie. Without `Path` a browser returns the cookie to the directory of the request: to the
/// console, also where an application or a proxy adds a prefix.
pub(crate) fn set_cookie(
    response: &mut Response<Body>,
    name: &str,
    value: &str,
    max_age: u64,
    is_https: bool,
) {
    let secure = if is_https { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Max-Age={max_age}; HttpOnly; SameSite=Strict{secure}");
    // Names and random texts are valid in headers.
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}
