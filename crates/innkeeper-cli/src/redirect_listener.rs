//! Browser sign-in: prints the authorization URL and receives the redirect.

use std::io::{IsTerminal as _, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
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

/// Help for a browser on another machine.
const PASTE_HINT: &str =
    "If the browser then shows an error, paste the address of that page here.\n\n";

/// Page shown after the sign-in.
const SUCCESS_PAGE: &str = "<!doctype html><title>Innkeeper</title><p>You can close this page.\n";

/// A local listener for the redirect of an authorization server.
#[derive(Debug)]
pub(crate) struct RedirectListener {
    listener: TcpListener,
    redirect_uri: String,
    path: String,
    /// Whether a person may paste the redirect on stdin.
    reads_stdin: bool,
    was_redirected: Arc<AtomicBool>,
}

impl RedirectListener {
    /// Listens where a redirect to the configured URI goes, or on a free local port. A URI of another
    /// machine or scheme cannot be listened on: the person then pastes the redirect.
    pub(crate) fn listen(redirect_uri: Option<&str>) -> std::io::Result<Self> {
        let local = redirect_uri.and_then(|uri| Some((uri, local_address(uri)?)));
        let address = local.as_ref().map_or((Ipv4Addr::LOCALHOST, 0).into(), |(_, local)| *local);
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let redirect_uri = match redirect_uri {
            Some(uri) => uri.to_owned(),
            None => format!("http://127.0.0.1:{port}/callback"),
        };
        let path = url::Url::parse(&redirect_uri)
            .map_or_else(|_| "/callback".to_owned(), |uri| uri.path().to_owned());
        let reads_stdin = std::io::stdin().is_terminal();
        Ok(Self { listener, redirect_uri, path, reads_stdin, was_redirected: Arc::default() })
    }

    /// Returns whether a browser was redirected; the value changes while the server starts.
    pub(crate) fn was_redirected(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.was_redirected)
    }
}

fn local_address(redirect_uri: &str) -> Option<SocketAddr> {
    let uri = url::Url::parse(redirect_uri).ok().filter(|uri| uri.scheme() == "http")?;
    let address: IpAddr = match uri.host()? {
        url::Host::Ipv4(address) => address.into(),
        url::Host::Ipv6(address) => address.into(),
        url::Host::Domain("localhost") => Ipv4Addr::LOCALHOST.into(),
        url::Host::Domain(_) => return None,
    };
    address.is_loopback().then(|| (address, uri.port_or_known_default().unwrap_or(80)).into())
}

impl UserAgent for RedirectListener {
    fn redirect_uri(&self) -> String {
        self.redirect_uri.clone()
    }

    fn authorize(&self, visit: AuthorizationRequest) -> RedirectFuture {
        let listener = self.listener.try_clone();
        let origin = self.redirect_uri.strip_suffix(&self.path).unwrap_or(&self.redirect_uri);
        let origin = origin.to_owned();
        let path = self.path.clone();
        let reads_stdin = self.reads_stdin;
        let was_redirected = self.was_redirected();
        Box::pin(async move {
            let describe_error = |error: std::io::Error| error.to_string();
            let listener = tokio::net::TcpListener::from_std(listener.map_err(describe_error)?);
            let listener = listener.map_err(describe_error)?;
            let server = display_safe(&visit.server);
            let page = display_safe(&visit.url);
            let prompt = format!("Sign in at `{server}` with a browser:\n\n    {page}\n\n");
            std::io::stderr().write_all(prompt.as_bytes()).map_err(describe_error)?;
            let state: Arc<str> =
                state_param(&visit.url).ok_or("the authorization URL has no `state`")?.into();
            let redirect = Redirect { path: path.into(), state };
            if reads_stdin {
                std::io::stderr().write_all(PASTE_HINT.as_bytes()).map_err(describe_error)?;
            }
            let url = tokio::select! {
                target = accept_callback(&listener, &redirect) => {
                    format!("{origin}{}", target.map_err(describe_error)?)
                }
                Some(url) = pasted_redirect(&redirect.state), if reads_stdin => url,
            };
            was_redirected.store(true, Ordering::Relaxed);
            Ok(url)
        })
    }
}

/// The redirect that a sign-in waits for.
#[derive(Clone, Debug)]
struct Redirect {
    path: Arc<str>,
    state: Arc<str>,
}

/// Returns the first line of stdin that is a redirect with the right state, or `None` at the end of
/// stdin. On a remote machine, the browser of the user cannot reach the listener.
async fn pasted_redirect(state: &str) -> Option<String> {
    let (sender, mut lines) = tokio::sync::mpsc::channel(1);
    // A blocked read must not delay the end of the program.
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    loop {
        let line = lines.recv().await?;
        let url = line.trim();
        if state_param(url).as_deref() == Some(state) {
            return Some(url.to_owned());
        }
    }
}

/// Waits for the redirect with the right state, and returns its path and query. Browsers also request
/// an icon, and other programs may connect: a silent connection times out and delays no other.
async fn accept_callback(
    listener: &tokio::net::TcpListener,
    redirect: &Redirect,
) -> std::io::Result<String> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                let (stream, _) = accepted?;
                let redirect = redirect.clone();
                connections.spawn(timeout(REQUEST_TIMEOUT, async move {
                    read_callback(stream, &redirect).await
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
async fn read_callback(
    mut stream: TcpStream,
    redirect: &Redirect,
) -> std::io::Result<Option<String>> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MAX_REQUEST_BYTES {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let request = String::from_utf8_lossy(&request);
    let target = request.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let target = target
        .filter(|target| {
            let path = target.split('?').next();
            path == Some(&*redirect.path)
                && state_param(target).as_deref() == Some(&*redirect.state)
        })
        .map(str::to_owned);
    let (status, page) =
        if target.is_some() { ("200 OK", SUCCESS_PAGE) } else { ("404 Not Found", "") };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
         Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // The request is already read, so a failed response does no harm.
    let _ = stream.write_all(head.as_bytes()).await;
    Ok(target)
}

#[cfg(test)]
mod tests;
