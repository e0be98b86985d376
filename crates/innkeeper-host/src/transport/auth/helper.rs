//! Headers that a program prints: it is run when a connection begins, and again when the server
//! refuses what it printed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use super::AuthFault;
use crate::error::Lost;
use crate::ledger::Ledger;
use crate::server::process::{self, Launch, Supervisor};
use crate::server::session::Fault;
use crate::transport::http::unsent;

/// How long the program may take: it may ask somebody on the network, and no person.
const RUN: Duration = Duration::from_secs(10);

/// How long what it started may take to be gone once it has ended.
const GONE: Duration = Duration::from_secs(1);

/// The most bytes that it may print; servers take less than that in all headers together.
const PRINTED: usize = 64 << 10;

/// Headers that belong to the connection, or to what is said over it.
const OURS: [&str; 14] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Beginnings of the names of others.
const OURS_TOO: [&str; 2] = ["mcp-", "sec-websocket-"];

/// What programs are run with.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) supervisor: Supervisor,
    pub(crate) ledger: Option<Ledger>,
}

/// The program of one connection and what it printed last.
pub(in crate::transport) struct Helper {
    launch: Arc<Launch>,
    programs: Programs,
    /// Held while the program runs, so that requests that are refused together run it once.
    printed: tokio::sync::Mutex<Printed>,
}

#[derive(Clone, Default)]
struct Printed {
    /// How often it was run.
    runs: u32,
    headers: HeaderMap,
}

impl fmt::Debug for Helper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helper").finish_non_exhaustive()
    }
}

impl Helper {
    pub(in crate::transport) fn new(launch: Arc<Launch>, programs: Programs) -> Self {
        Self { launch, programs, printed: tokio::sync::Mutex::default() }
    }

    /// Sends a request with the headers, and once more with others if they are refused.
    pub(in crate::transport) async fn send(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, Fault> {
        let printed = self.printed(0).await?;
        let again = request.try_clone();
        let response = request.headers(printed.headers).send().await;
        let response = response.map_err(|error| unsent(&error))?;
        match again {
            Some(request) if response.status() == StatusCode::UNAUTHORIZED => {
                let headers = self.printed(printed.runs).await?.headers;
                request.headers(headers).send().await.map_err(|error| unsent(&error))
            }
            _ => Ok(response),
        }
    }

    /// Sends a request with the headers that are there, and takes any answer.
    pub(in crate::transport) async fn send_once(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, Fault> {
        let headers = self.printed.try_lock().map(|printed| printed.headers.clone());
        let sent = request.headers(headers.unwrap_or_default()).send().await;
        sent.map_err(|error| unsent(&error))
    }

    /// What the program printed after it was run this often.
    async fn printed(&self, refused: u32) -> Result<Printed, Fault> {
        let mut printed = self.printed.lock().await;
        if printed.runs <= refused {
            let headers = timeout(RUN, self.run()).await;
            let late = || format!("it ran for more than {} s", RUN.as_secs());
            let headers =
                headers.unwrap_or_else(|_| Err(late())).map_err(|why| no_headers(&why))?;
            *printed = Printed { runs: refused + 1, headers };
        }
        Ok(printed.clone())
    }

    /// Runs the program; dropping the future kills it and what it started.
    async fn run(&self) -> Result<HeaderMap, String> {
        let Programs { supervisor, ledger } = &self.programs;
        let spawned = process::spawn(&self.launch, supervisor, ledger.as_ref()).await;
        let (mut process, pipes) = spawned.map_err(|error| error.to_string())?;
        drop(pipes.stdin);
        // What it complains about may have a secret in it.
        let (text, _) = tokio::join!(read(pipes.stdout), read(pipes.stderr));
        let text = text?;
        let exit = process.exited().await;
        process.kill();
        drop(timeout(GONE, process.gone()).await);
        if !exit.success() {
            return Err(format!("it ended with {exit}"));
        }
        headers(&text)
    }
}

/// Everything that comes out of a pipe.
async fn read(mut pipe: impl AsyncRead + Unpin) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    loop {
        let read = pipe.read_buf(&mut text).await;
        match read {
            Ok(0) => return Ok(text),
            Ok(_) if text.len() <= PRINTED => {}
            Ok(_) => return Err(format!("it printed more than {PRINTED} bytes")),
            Err(error) => return Err(error.kind().to_string()),
        }
    }
}

/// The headers in what was printed; no value is in an error.
fn headers(text: &[u8]) -> Result<HeaderMap, String> {
    let printed: Result<HashMap<String, String>, _> = serde_json::from_slice(text);
    let printed = printed.map_err(|_| "it did not print a JSON object of texts".to_owned())?;
    let mut headers = HeaderMap::new();
    for (name, value) in printed {
        let known = HeaderName::from_bytes(name.as_bytes());
        let known = known.map_err(|_| "it printed a name that no header can have".to_owned())?;
        let name = known.as_str();
        if OURS.contains(&name) || OURS_TOO.iter().any(|start| name.starts_with(start)) {
            return Err(format!("the header `{name}` is not its to set"));
        }
        let value = HeaderValue::from_str(&value);
        let bad = |_| format!("`{name}` has a value that no header can have");
        let mut value = value.map_err(bad)?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(headers)
}

fn no_headers(why: &str) -> Fault {
    let fault = AuthFault::Helper(AuthFault::words(why));
    Fault::Lost { reason: Lost::NotSignedIn(Box::new(fault)), sent: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_that_forge_a_request_are_refused_and_not_quoted() {
        let printed = br#"{"Authorization": "Bearer x", "X-Tenant": "1"}"#;
        assert_eq!(headers(printed).unwrap().len(), 2);
        for bad in [
            r#"{"X": "canary\r\nY: 1"}"#,
            r#"{"X": "canary\u0000"}"#,
            r#"{"canary\r\n": "1"}"#,
            r#"{"Host": "canary"}"#,
            r#"{"content-length": "canary"}"#,
            r#"{"Mcp-Session-Id": "canary"}"#,
            r#"{"X": {"canary": 1}}"#,
            r#"["canary"]"#,
            "canary",
        ] {
            let error = headers(bad.as_bytes()).unwrap_err();
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_program_that_does_not_end_is_given_up_after_ten_seconds() {
        let (program, args) = ("/bin/sleep".into(), vec!["60".into()]);
        let (command, env, bounds) = ("sleep".to_owned(), Vec::new(), process::Bounds::default());
        let launch = Launch { command, program, args, env, cwd: None, bounds };
        let programs = Programs { supervisor: Supervisor::Group, ledger: None };
        let helper = Helper::new(Arc::new(launch), programs);
        let Err(Fault::Lost { reason, sent: false }) = helper.printed(0).await else { panic!() };
        assert!(reason.to_string().ends_with("it ran for more than 10 s"), "{reason}");
    }

    #[tokio::test]
    async fn output_at_the_limit_is_read_and_one_byte_more_is_not() {
        assert_eq!(read(&vec![b' '; PRINTED][..]).await.unwrap().len(), PRINTED);
        assert!(read(&vec![b' '; PRINTED + 1][..]).await.is_err());
    }
}
