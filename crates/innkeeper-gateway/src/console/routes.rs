//! The pages of the console. A new page is one row here and one file with its handler; one in the
//! navigation is also a row of `navigation.rs`.

use futures_util::future::BoxFuture;
use http::Method;

use super::reply::Reply;
use super::request::ConsoleRequest;
use super::{audit, call, calls, charts, question, questions, server, servers, tool, tools};

/// Handles a request of an operator. The router has checked the access, and the token of a form.
pub(crate) type Handler = for<'r> fn(&'r ConsoleRequest<'r>) -> BoxFuture<'r, Reply>;

pub(crate) struct Route {
    method: Method,
    /// The name in the path, `/console/NAME`.
    pub(crate) page: &'static str,
    /// The page that the navigation marks as the current one.
    pub(crate) section: &'static str,
    pub(crate) handler: Handler,
}

const fn page(page: &'static str, section: &'static str, handler: Handler) -> Route {
    Route { method: Method::GET, page, section, handler }
}

const fn form(page: &'static str, section: &'static str, handler: Handler) -> Route {
    Route { method: Method::POST, page, section, handler }
}

/// All pages, by the sections of `navigation.rs`.
static ROUTES: [Route; 15] = [
    page("servers", "servers", |request| Box::pin(servers::show(request))),
    page("server", "servers", |request| Box::pin(server::show(request))),
    form("server", "servers", |request| Box::pin(server::restart(request))),
    page("tools", "tools", |request| Box::pin(tools::show(request))),
    page("tool", "tools", |request| Box::pin(tool::show(request))),
    form("tool", "tools", |request| Box::pin(tool::call(request))),
    page("calls", "calls", |request| Box::pin(calls::show(request))),
    form("calls", "calls", |request| Box::pin(calls::cancel(request))),
    page("call", "tools", |request| Box::pin(call::show(request))),
    form("call", "tools", |request| Box::pin(call::cancel(request))),
    page("questions", "questions", |request| Box::pin(questions::show(request))),
    page("question", "questions", |request| Box::pin(question::show(request))),
    form("question", "questions", |request| Box::pin(question::answer(request))),
    page("charts", "charts", |request| Box::pin(charts::show(request))),
    page("audit", "audit", |request| Box::pin(audit::show(request))),
];

/// Returns the route of a request.
///
/// # Errors
///
/// The page does not exist, or exists only with the other method.
pub(crate) fn find(method: &Method, page: &str) -> Result<&'static Route, UnknownRoute> {
    // The library omits the body of a response to HEAD.
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let mut with_page = ROUTES.iter().filter(|route| route.page == page).peekable();
    if with_page.peek().is_none() {
        return Err(UnknownRoute::Page);
    }
    with_page.find(|route| route.method == *method).ok_or(UnknownRoute::Method)
}

/// Why no route is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownRoute {
    Page,
    Method,
}
