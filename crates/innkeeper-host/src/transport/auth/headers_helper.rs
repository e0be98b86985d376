//! Request headers from a program (`headersHelper`).
//!
//! The program runs when a connection starts, and again when the server rejects the headers.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use innkeeper_process::ledger::Ledger;
use innkeeper_process::{ProcessSpec, ProgramOutput, Supervisor, run_to_end};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode};
use tokio::time::timeout;

use super::AuthErrorKind;
use crate::error::UnavailableReason;
use crate::session::RequestError;
use crate::transport::http::send_error;
use crate::transport::sent_secrets::SentSecrets;

/// Timeout for one run. The program may use the network but must not ask a person.
const RUN_TIMEOUT: Duration = Duration::from_secs(10);

/// Headers that belong to the connection or to the transport.
const RESERVED_HEADERS: [&str; 14] = [
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

/// Name prefixes of other reserved headers.
const RESERVED_HEADER_PREFIXES: [&str; 2] = ["mcp-", "sec-websocket-"];

/// The supervisor and the ledger for runs of the program.
#[derive(Clone, Debug)]
pub(crate) struct HelperLaunchContext {
    pub(crate) supervisor: Supervisor,
    pub(crate) ledger: Option<Ledger>,
}

/// The program of one connection and its last output.
pub(in crate::transport) struct HeadersHelper {
    launch: Arc<ProcessSpec>,
    launch_context: HelperLaunchContext,
    /// Locked while the program runs, so that concurrent rejected requests run the program once.
    output: tokio::sync::Mutex<HelperOutput>,
    /// The number of failed runs. Readable during a run.
    failures: AtomicU32,
}

#[derive(Clone, Default)]
struct HelperOutput {
    /// The number of successful runs.
    run_count: u32,
    headers: HeaderMap,
    /// The error of the last failed run.
    last_error: String,
}

impl fmt::Debug for HeadersHelper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadersHelper").finish_non_exhaustive()
    }
}

impl HeadersHelper {
    pub(in crate::transport) fn new(
        launch: Arc<ProcessSpec>,
        launch_context: HelperLaunchContext,
    ) -> Self {
        let output = tokio::sync::Mutex::default();
        let failures = AtomicU32::new(0);
        Self { launch, launch_context, output, failures }
    }

    /// Sends a request with the headers, and once more with new headers after a rejection.
    pub(in crate::transport) async fn send(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, RequestError> {
        let output = self.output_after(0).await?;
        let retry = request.try_clone();
        let first = send_with_headers(request, &output.headers).await?;
        match retry {
            Some(request) if first.status() == StatusCode::UNAUTHORIZED => {
                send_with_headers(request, &self.output_after(output.run_count).await?.headers)
                    .await
            }
            _ => Ok(first),
        }
    }

    /// Sends a request once with the current headers.
    pub(in crate::transport) async fn send_once(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, RequestError> {
        let headers = self.output.try_lock().map(|output| output.headers.clone());
        let sent = request.headers(headers.unwrap_or_default()).send().await;
        sent.map_err(|error| send_error(&error))
    }

    /// Returns the output after more than `run_count` runs, and runs the program if necessary.
    /// Requests that wait for a failing run share its error.
    async fn output_after(&self, run_count: u32) -> Result<HelperOutput, RequestError> {
        let failures = self.failures.load(Ordering::Relaxed);
        let mut output = self.output.lock().await;
        if output.run_count > run_count {
            return Ok(output.clone());
        }
        if self.failures.load(Ordering::Relaxed) != failures {
            return Err(headers_error(&output.last_error));
        }
        let headers = timeout(RUN_TIMEOUT, self.run()).await;
        let headers =
            headers.unwrap_or_else(|_| Err(format!("timed out after {} s", RUN_TIMEOUT.as_secs())));
        match headers {
            Ok(headers) => {
                (output.run_count, output.headers) = (run_count + 1, headers);
                Ok(output.clone())
            }
            Err(reason) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                output.last_error.clone_from(&reason);
                Err(headers_error(&reason))
            }
        }
    }

    /// Runs the program. Dropping the future kills the program and its child processes.
    async fn run(&self) -> Result<HeaderMap, String> {
        let HelperLaunchContext { supervisor, ledger } = &self.launch_context;
        let output = run_to_end(&self.launch, supervisor, ledger.as_ref()).await;
        // The program's stderr may contain a secret.
        let ProgramOutput { exit_status, stdout, stderr: _ } =
            output.map_err(|error| error.to_string())?;
        if !exit_status.success() {
            return Err(format!("ended with {exit_status}"));
        }
        parse_headers(&stdout)
    }
}

async fn send_with_headers(
    request: RequestBuilder,
    headers: &HeaderMap,
) -> Result<Response, RequestError> {
    let response = request.headers(headers.clone()).send().await;
    let mut response = response.map_err(|error| send_error(&error))?;
    SentSecrets::attach_headers(&mut response, headers);
    Ok(response)
}

/// Parses the output. Error messages contain no value.
fn parse_headers(text: &[u8]) -> Result<HeaderMap, String> {
    let entries: Result<HashMap<String, String>, _> = serde_json::from_slice(text);
    let entries = entries.map_err(|_| "the output is not a JSON object of strings".to_owned())?;
    let mut headers = HeaderMap::new();
    for (name, value) in entries {
        let header_name = HeaderName::from_bytes(name.as_bytes());
        let header_name =
            header_name.map_err(|_| "the output contains an invalid header name".to_owned())?;
        let name = header_name.as_str();
        if RESERVED_HEADERS.contains(&name)
            || RESERVED_HEADER_PREFIXES.iter().any(|start| name.starts_with(start))
        {
            return Err(format!("the header `{name}` is reserved"));
        }
        let value = HeaderValue::from_str(&value);
        let mut value = value.map_err(|_| format!("`{name}` has an invalid header value"))?;
        value.set_sensitive(true);
        headers.insert(header_name, value);
    }
    Ok(headers)
}

fn headers_error(reason: &str) -> RequestError {
    let kind = AuthErrorKind::HeadersHelper(AuthErrorKind::sanitize(reason));
    RequestError::Unavailable {
        reason: UnavailableReason::Unauthorized(Box::new(kind)),
        sent: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: remote | a `headersHelper` prints line breaks, NUL or reserved headers | the output
    /// is rejected and not quoted | Foreign text stays text
    #[test]
    fn names_and_values_that_forge_a_request_are_refused_and_not_quoted() {
        let output = br#"{"Authorization": "Bearer x", "X-Tenant": "1"}"#;
        assert_eq!(parse_headers(output).unwrap().len(), 2);
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
            let error = parse_headers(bad.as_bytes()).unwrap_err();
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[cfg(unix)]
    fn helper(program: &str, args: &[&str]) -> HeadersHelper {
        let (command, program) = (program.to_owned(), program.into());
        let args = args.iter().map(Into::into).collect();
        let (env, confinement) = (Vec::new(), innkeeper_process::Confinement::default());
        let launch = ProcessSpec { command, program, args, env, cwd: None, confinement };
        let programs = HelperLaunchContext { supervisor: Supervisor::Group, ledger: None };
        HeadersHelper::new(Arc::new(launch), programs)
    }

    /// Attack: remote | a `headersHelper` does not end | the request fails after 10 s | No
    /// unbounded wait
    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_program_that_does_not_end_is_given_up_after_ten_seconds() {
        let helper = helper("/bin/sleep", &["60"]);
        let Err(RequestError::Unavailable { reason, sent: false }) = helper.output_after(0).await
        else {
            panic!()
        };
        assert!(reason.to_string().ends_with("timed out after 10 s"), "{reason}");
    }

    /// The remaining child process would hold the pipes for a minute.
    #[cfg(unix)]
    #[tokio::test]
    async fn what_a_program_leaves_behind_and_how_much_it_complains_is_no_matter() {
        let script = "/bin/sleep 60 & head -c 300000 /dev/zero >&2; printf '{\"X\": \"1\"}'";
        let helper = helper("/bin/sh", &["-c", script]);
        assert_eq!(helper.output_after(0).await.unwrap().headers["x"], "1");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn requests_that_wait_for_a_failing_program_share_the_failure() {
        let runs = tempfile::NamedTempFile::new().unwrap();
        let script = "echo >> \"$0\"; exit 3";
        let helper = helper("/bin/sh", &["-c", script, runs.path().to_str().unwrap()]);
        let count = || std::fs::read(runs.path()).unwrap().len();
        let (one, two, three) =
            tokio::join!(helper.output_after(0), helper.output_after(0), helper.output_after(0));
        assert!(one.is_err() && two.is_err() && three.is_err());
        assert_eq!(count(), 1);
        assert!(helper.output_after(0).await.is_err());
        assert_eq!(count(), 2, "who comes later has it run again");
    }
}
