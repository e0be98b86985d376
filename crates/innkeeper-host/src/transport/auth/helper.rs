//! Headers that a program prints: it is run when a connection begins, and again when the server
//! refuses what it printed.

use std::collections::HashMap;
use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt, copy, sink};
use tokio::time::timeout;

use super::AuthFault;
use crate::error::Lost;
use crate::ledger::Ledger;
use crate::server::process::{self, Exit, Launch, Pipes, Supervisor};
use crate::server::session::Fault;
use crate::transport::http::unsent;
use crate::transport::sent::Sent;

/// How long the program may take: it may ask somebody on the network, and no person.
const RUN: Duration = Duration::from_secs(10);

/// How long the rest of what it printed is read for once it has ended, while something that it left
/// behind keeps the pipe open.
const REST: Duration = Duration::from_millis(200);

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
    /// How often it has failed; may be read while it runs.
    failures: AtomicU32,
}

#[derive(Clone, Default)]
struct Printed {
    /// How often it was run.
    runs: u32,
    headers: HeaderMap,
    /// Why it failed the last time it did.
    failed: String,
}

impl fmt::Debug for Helper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helper").finish_non_exhaustive()
    }
}

impl Helper {
    pub(in crate::transport) fn new(launch: Arc<Launch>, programs: Programs) -> Self {
        let (printed, failures) = (tokio::sync::Mutex::default(), AtomicU32::new(0));
        Self { launch, programs, printed, failures }
    }

    /// Sends a request with the headers, and once more with others if they are refused.
    pub(in crate::transport) async fn send(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, Fault> {
        let printed = self.printed(0).await?;
        let again = request.try_clone();
        let first = bearing(request, &printed.headers).await?;
        match again {
            Some(request) if first.status() == StatusCode::UNAUTHORIZED => {
                bearing(request, &self.printed(printed.runs).await?.headers).await
            }
            _ => Ok(first),
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

    /// What the program printed after it was run this often. Those who wait while it fails share
    /// the failure.
    async fn printed(&self, refused: u32) -> Result<Printed, Fault> {
        let failures = self.failures.load(Ordering::Relaxed);
        let mut printed = self.printed.lock().await;
        if printed.runs > refused {
            return Ok(printed.clone());
        }
        if self.failures.load(Ordering::Relaxed) != failures {
            return Err(no_headers(&printed.failed));
        }
        let headers = timeout(RUN, self.run()).await;
        let late = || format!("it ran for more than {} s", RUN.as_secs());
        match headers.unwrap_or_else(|_| Err(late())) {
            Ok(headers) => {
                (printed.runs, printed.headers) = (refused + 1, headers);
                Ok(printed.clone())
            }
            Err(why) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                printed.failed.clone_from(&why);
                Err(no_headers(&why))
            }
        }
    }

    /// Runs the program; dropping the future kills it and what it started.
    async fn run(&self) -> Result<HeaderMap, String> {
        let Programs { supervisor, ledger } = &self.programs;
        let spawned = process::spawn(&self.launch, supervisor, ledger.as_ref()).await;
        let (mut process, Pipes { stdin, mut stdout, mut stderr }) =
            spawned.map_err(|error| error.to_string())?;
        drop(stdin);
        let mut text = Vec::new();
        let printing = async {
            tokio::select! {
                biased;
                printed = read(&mut stdout, &mut text) => {
                    printed?;
                    Ok(process.exited().await)
                }
                exit = process.exited() => {
                    let rest = timeout(REST, read(&mut stdout, &mut text)).await;
                    rest.unwrap_or(Ok(())).map(|()| exit)
                }
            }
        };
        // What it complains about may have a secret in it.
        let complaints = async {
            drop(copy(&mut stderr, &mut sink()).await);
            pending().await
        };
        let exit: Result<Exit, String> = tokio::select! {
            exit = printing => exit,
            never = complaints => never,
        };
        let exit = exit?;
        process.kill();
        drop(timeout(GONE, process.gone()).await);
        if !exit.success() {
            return Err(format!("it ended with {exit}"));
        }
        headers(&text)
    }
}

async fn bearing(request: RequestBuilder, headers: &HeaderMap) -> Result<Response, Fault> {
    let response = request.headers(headers.clone()).send().await;
    let mut response = response.map_err(|error| unsent(&error))?;
    Sent::note_headers(&mut response, headers);
    Ok(response)
}

/// Everything that comes out of a pipe; cancel-safe.
async fn read(mut pipe: impl AsyncRead + Unpin, text: &mut Vec<u8>) -> Result<(), String> {
    loop {
        let read = pipe.read_buf(text).await;
        match read {
            Ok(0) => return Ok(()),
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
    fn helper(program: &str, args: &[&str]) -> Helper {
        let (command, program) = (program.to_owned(), program.into());
        let args = args.iter().map(Into::into).collect();
        let (env, bounds) = (Vec::new(), process::Bounds::default());
        let launch = Launch { command, program, args, env, cwd: None, bounds };
        let programs = Programs { supervisor: Supervisor::Group, ledger: None };
        Helper::new(Arc::new(launch), programs)
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_program_that_does_not_end_is_given_up_after_ten_seconds() {
        let helper = helper("/bin/sleep", &["60"]);
        let Err(Fault::Lost { reason, sent: false }) = helper.printed(0).await else { panic!() };
        assert!(reason.to_string().ends_with("it ran for more than 10 s"), "{reason}");
    }

    /// The one left behind would hold the pipes for a minute.
    #[cfg(unix)]
    #[tokio::test]
    async fn what_a_program_leaves_behind_and_how_much_it_complains_is_no_matter() {
        let script = "/bin/sleep 60 & head -c 300000 /dev/zero >&2; printf '{\"X\": \"1\"}'";
        let helper = helper("/bin/sh", &["-c", script]);
        assert_eq!(helper.printed(0).await.unwrap().headers["x"], "1");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn those_who_wait_for_a_program_that_fails_share_the_failure() {
        let runs = tempfile::NamedTempFile::new().unwrap();
        let script = "echo >> \"$0\"; exit 3";
        let helper = helper("/bin/sh", &["-c", script, runs.path().to_str().unwrap()]);
        let count = || std::fs::read(runs.path()).unwrap().len();
        let (one, two, three) =
            tokio::join!(helper.printed(0), helper.printed(0), helper.printed(0));
        assert!(one.is_err() && two.is_err() && three.is_err());
        assert_eq!(count(), 1);
        assert!(helper.printed(0).await.is_err());
        assert_eq!(count(), 2, "who comes later has it run again");
    }

    #[tokio::test]
    async fn output_at_the_limit_is_read_and_one_byte_more_is_not() {
        let mut text = Vec::new();
        read(&vec![b' '; PRINTED][..], &mut text).await.unwrap();
        assert_eq!(text.len(), PRINTED);
        assert!(read(&vec![b' '; PRINTED + 1][..], &mut Vec::new()).await.is_err());
    }
}
