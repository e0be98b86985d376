//! A person's browser: the address to open is printed, and where it comes back to is listened at.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use innkeeper_host::{UserAgent, Visit, Visiting, display_safe};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The most bytes of a request; a code and a state have a few hundred.
const REQUEST: usize = 16 << 10;

/// How long one connection may take to say something.
const HEARD: Duration = Duration::from_secs(5);

/// What the person sees in the end.
const PAGE: &str = "<!doctype html><title>Innkeeper</title><p>You can close this page.\n";

/// The port that browsers are sent back to.
#[derive(Debug)]
pub(crate) struct Browser {
    listener: TcpListener,
    port: u16,
}

impl Browser {
    /// Listens on this machine, at a port of the system's choice.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }
}

impl UserAgent for Browser {
    fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    fn visit(&self, visit: Visit) -> Visiting {
        let listener = self.listener.try_clone();
        let origin = format!("http://127.0.0.1:{}", self.port);
        Box::pin(async move {
            let words = |error: std::io::Error| error.to_string();
            let listener = tokio::net::TcpListener::from_std(listener.map_err(words)?);
            let listener = listener.map_err(words)?;
            let (server, page) = (display_safe(&visit.server), display_safe(&visit.url));
            let asked = format!("Sign in at `{server}` with a browser:\n\n    {page}\n\n");
            std::io::stderr().write_all(asked.as_bytes()).map_err(words)?;
            let state = state_of(&visit.url).ok_or("the page has no state")?;
            loop {
                let (stream, _) = listener.accept().await.map_err(words)?;
                // A browser asks for its icon too, and others may knock.
                // One that says nothing is not waited for.
                let heard = timeout(HEARD, called_back(stream, &state)).await;
                if let Ok(Ok(Some(target))) = heard {
                    return Ok(format!("{origin}{target}"));
                }
            }
        })
    }
}

/// The `state` in an address, as it is written there.
fn state_of(url: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let state = query.split(['&', '#']).find_map(|pair| pair.strip_prefix("state="));
    state.map(str::to_owned)
}

/// The path and query that a browser comes back with; `None` for any other request.
async fn called_back(mut stream: TcpStream, state: &str) -> std::io::Result<Option<String>> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let request = String::from_utf8_lossy(&request);
    let target = request.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let ours = |target: &&str| {
        target.starts_with("/callback?") && state_of(target).as_deref() == Some(state)
    };
    let target = target.filter(ours).map(str::to_owned);
    let (status, page) = if target.is_some() { ("200 OK", PAGE) } else { ("404 Not Found", "") };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
         Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // What counts has been read.
    drop(stream.write_all(head.as_bytes()).await);
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_who_comes_back_from_the_page_that_was_opened_is_taken() {
        let browser = Browser::listen().unwrap();
        let (server, redirect_uri) = ("web".into(), browser.redirect_uri());
        let url = "https://sso.example/page?client_id=a&state=right".to_owned();
        let visit = browser.visit(Visit { server, url, redirect_uri });
        let port = browser.port;
        let knock = async |target: &str| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            stream.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let knocks = async {
            assert!(knock("/favicon.ico").await.starts_with("HTTP/1.1 404"));
            assert!(knock("/callback?code=x&state=wrong").await.starts_with("HTTP/1.1 404"));
            assert!(knock("/callback?code=x&state=right").await.contains("close this page"));
        };
        let (came_back, ()) = tokio::join!(visit, knocks);
        let wanted = format!("http://127.0.0.1:{port}/callback?code=x&state=right");
        assert_eq!(came_back, Ok(wanted));
    }
}
