//! Browser sign-in: prints the authorization URL and receives the redirect.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use innkeeper_host::{AuthorizationRequest, RedirectFuture, UserAgent, display_safe};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Maximum number of bytes in a request; a request with a code and a state has a few hundred.
const MAX_REQUEST_BYTES: usize = 16 << 10;

/// Timeout of one connection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of open connections; further connections wait.
const MAX_CONNECTIONS: usize = 128;

/// Page shown after the sign-in.
const SUCCESS_PAGE: &str = "<!doctype html><title>Innkeeper</title><p>You can close this page.\n";

/// A local listener for the redirect of an authorization server.
#[derive(Debug)]
pub(crate) struct RedirectListener {
    listener: TcpListener,
    port: u16,
    was_redirected: Arc<AtomicBool>,
}

impl RedirectListener {
    /// Listens on a free local port.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port, was_redirected: Arc::default() })
    }

    /// Returns whether a browser was redirected; the value changes while the server starts.
    pub(crate) fn was_redirected(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.was_redirected)
    }
}

impl UserAgent for RedirectListener {
    fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    fn authorize(&self, visit: AuthorizationRequest) -> RedirectFuture {
        let listener = self.listener.try_clone();
        let origin = format!("http://127.0.0.1:{}", self.port);
        let was_redirected = self.was_redirected();
        Box::pin(async move {
            let describe_error = |error: std::io::Error| error.to_string();
            let listener = tokio::net::TcpListener::from_std(listener.map_err(describe_error)?);
            let listener = listener.map_err(describe_error)?;
            let (server, page) = (display_safe(&visit.server), display_safe(&visit.url));
            let prompt = format!("Sign in at `{server}` with a browser:\n\n    {page}\n\n");
            std::io::stderr().write_all(prompt.as_bytes()).map_err(describe_error)?;
            let state = state_param(&visit.url).ok_or("the authorization URL has no `state`")?;
            let state = state.into();
            let target = accept_callback(&listener, &state).await.map_err(describe_error)?;
            was_redirected.store(true, Ordering::Relaxed);
            Ok(format!("{origin}{target}"))
        })
    }
}

/// Waits for the redirect with the right state, and returns its path and query. Browsers also request
/// an icon, and other programs may connect: a silent connection times out and delays no other.
async fn accept_callback(
    listener: &tokio::net::TcpListener,
    state: &Arc<str>,
) -> std::io::Result<String> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                let (stream, _) = accepted?;
                let state = Arc::clone(state);
                connections.spawn(timeout(REQUEST_TIMEOUT, async move {
                    read_callback(stream, &state).await
                }));
            }
            Some(ended) = connections.join_next() => {
                if let Ok(Ok(Ok(Some(target)))) = ended {
                    return Ok(target);
                }
            }
        }
    }
}

/// Returns the `state` parameter of a URL, still encoded.
fn state_param(url: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let state = query.split(['&', '#']).find_map(|pair| pair.strip_prefix("state="));
    state.map(str::to_owned)
}

/// Reads a request; returns the path and query of the redirect, or `None` for any other request.
async fn read_callback(mut stream: TcpStream, state: &str) -> std::io::Result<Option<String>> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MAX_REQUEST_BYTES {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let request = String::from_utf8_lossy(&request);
    let target = request.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let is_callback = |target: &&str| {
        target.starts_with("/callback?") && state_param(target).as_deref() == Some(state)
    };
    let target = target.filter(is_callback).map(str::to_owned);
    let (status, page) =
        if target.is_some() { ("200 OK", SUCCESS_PAGE) } else { ("404 Not Found", "") };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
         Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // The request is already read, so a failed response does no harm.
    drop(stream.write_all(head.as_bytes()).await);
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a sign-in that accepts the state `right`.
    fn sign_in(listener: &RedirectListener) -> RedirectFuture {
        let (server, redirect_uri) = ("web".into(), listener.redirect_uri());
        let url = "https://sso.example/page?client_id=a&state=right".to_owned();
        listener.authorize(AuthorizationRequest { server, url, redirect_uri })
    }

    async fn connect(port: u16) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap()
    }

    async fn get(port: u16, target: &str) -> String {
        let mut stream = connect(port).await;
        stream.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    /// Attack: remote | another program sends a redirect with a wrong state | the redirect is
    /// rejected, and the right one is accepted | Secrets stay with their owner
    #[tokio::test]
    async fn only_the_redirect_with_the_right_state_is_accepted() {
        let browser = RedirectListener::listen().unwrap();
        assert!(!browser.was_redirected().load(Ordering::Relaxed));
        let port = browser.port;
        let requests = async {
            assert!(get(port, "/favicon.ico").await.starts_with("HTTP/1.1 404"));
            assert!(get(port, "/callback?code=x&state=wrong").await.starts_with("HTTP/1.1 404"));
            assert!(get(port, "/callback?code=x&state=right").await.contains("close this page"));
        };
        let (target, ()) = tokio::join!(sign_in(&browser), requests);
        assert!(browser.was_redirected().load(Ordering::Relaxed));
        let expected = format!("http://127.0.0.1:{port}/callback?code=x&state=right");
        assert_eq!(target, Ok(expected));
    }

    /// Attack: remote | 20 silent connections to the redirect listener | the redirect of the
    /// browser is accepted in time | No unbounded wait
    #[tokio::test]
    async fn silent_connections_do_not_delay_the_browser() {
        let browser = RedirectListener::listen().unwrap();
        let port = browser.port;
        let mut silent = Vec::new();
        for _ in 0..20 {
            silent.push(connect(port).await);
        }
        let signed_in =
            async { tokio::join!(sign_in(&browser), get(port, "/callback?state=right")) };
        // A single connection would time out only after this limit.
        let (target, page) = timeout(REQUEST_TIMEOUT, signed_in).await.unwrap();
        assert!(target.is_ok() && page.contains("close this page"), "{target:?} {page}");
    }

    #[tokio::test]
    async fn a_connection_beyond_the_maximum_waits_for_the_end_of_another() {
        let browser = RedirectListener::listen().unwrap();
        let port = browser.port;
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            silent.push(connect(port).await);
        }
        let requests = async {
            let response = get(port, "/callback?state=right");
            tokio::pin!(response);
            let waits = timeout(Duration::from_millis(50), &mut response).await;
            assert!(waits.is_err(), "{waits:?}");
            silent.pop();
            response.await
        };
        let (target, page) = tokio::join!(sign_in(&browser), requests);
        assert!(target.is_ok() && page.contains("close this page"), "{target:?} {page}");
    }
}
