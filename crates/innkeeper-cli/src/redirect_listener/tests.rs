//! The redirect of a sign-in arrives from a browser, or pasted.

use super::*;

fn listen(redirect_uri: Option<&str>) -> RedirectListener {
    let listener = RedirectListener::listen(redirect_uri).unwrap();
    RedirectListener { reads_stdin: false, ..listener }
}

fn port(listener: &RedirectListener) -> u16 {
    listener.listener.local_addr().unwrap().port()
}

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
    let browser = listen(None);
    assert!(!browser.was_redirected().load(Ordering::Relaxed));
    let port = port(&browser);
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
    let browser = listen(None);
    let port = port(&browser);
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(connect(port).await);
    }
    let signed_in = async { tokio::join!(sign_in(&browser), get(port, "/callback?state=right")) };
    // A single connection would time out only after this limit.
    let (target, page) = timeout(REQUEST_TIMEOUT, signed_in).await.unwrap();
    assert!(target.is_ok() && page.contains("close this page"), "{target:?} {page}");
}

#[tokio::test]
async fn a_connection_beyond_the_maximum_waits_for_the_end_of_another() {
    let browser = listen(None);
    let port = port(&browser);
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

#[tokio::test]
async fn a_configured_redirect_is_received_at_its_port_and_path() {
    let free = port(&listen(None));
    for uri in
        [format!("http://localhost:{free}/callback"), format!("http://127.0.0.1:{free}/oauth/cb")]
    {
        let browser = listen(Some(&uri));
        assert_eq!((browser.redirect_uri(), port(&browser)), (uri.clone(), free));
        let path = uri.rsplit_once(&free.to_string()).unwrap().1;
        let target = format!("{path}?code=x&state=right");
        let requests = async {
            assert!(get(free, "/other?code=x&state=right").await.contains("404"));
            get(free, &target).await
        };
        let (received, _) = tokio::join!(sign_in(&browser), requests);
        assert_eq!(received, Ok(format!("{uri}?code=x&state=right")));
    }
}

#[test]
fn a_redirect_to_another_machine_is_not_listened_on() {
    for uri in
        ["https://a.example/callback", "http://a.example/cb", "app://callback", "http://10.0.0.1/"]
    {
        assert_eq!(local_address(uri), None, "{uri}");
        assert_eq!(listen(Some(uri)).redirect_uri(), uri);
    }
    assert_eq!(local_address("http://[::1]:8080/cb"), "[::1]:8080".parse().ok());
}
