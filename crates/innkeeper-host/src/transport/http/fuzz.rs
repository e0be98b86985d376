//! What the fuzz target of HTTP answers does: whatever the status, headers and body are, the request
//! ends at once, the same way however the body is cut.
//!
//! The first line of the input has the status and the size of a chunk, the lines behind it are
//! headers, and what follows an empty line is the body.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use innkeeper_protocol::{Revision, method};
use reqwest::{Body, Client, Response, Url};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::time::Instant;

use super::post::{Request, judged};
use super::talk::Talk;
use crate::callback::Callbacks;
use crate::config::Environment;
use crate::event::Events;
use crate::server::session::{Limits, Outgoing, Owner, Session};
use crate::tasks::Tasks;
use crate::transport::{Kind, Place, Remote, client};

/// The id of the request, known to who writes inputs.
const ID: u64 = 1;

/// The longest message, so that short inputs reach past it.
const LIMIT: usize = 1024;

/// Answers one request with the input.
///
/// # Panics
///
/// If the request does not end, or ends differently when the body comes in chunks.
pub fn http_answer(input: &[u8]) {
    let Some((head, body)) = split(input) else { return };
    let Ok(head) = std::str::from_utf8(head) else { return };
    let mut lines = head.lines();
    let first = lines.next().and_then(|line| line.split_once(' '));
    let numbers =
        first.and_then(|(status, chunk)| Some((status.parse().ok()?, chunk.parse::<u8>().ok()?)));
    let Some((status, chunk)) = numbers else { return };
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let whole = runtime.block_on(outcome(status, &headers, body, usize::MAX));
    let parts = runtime.block_on(outcome(status, &headers, body, usize::from(chunk) + 1));
    assert_eq!(whole, parts);
}

/// Head and body.
fn split(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = input.windows(2).position(|pair| pair == b"\n\n")?;
    Some((&input[..end], &input[end + 2..]))
}

/// How the request ends; `None` for a head that no server can send.
async fn outcome(
    status: u16,
    headers: &[(&str, &str)],
    body: &[u8],
    chunk: usize,
) -> Option<String> {
    let chunks: Vec<io::Result<Bytes>> =
        body.chunks(chunk).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
    let body = Body::wrap_stream(futures_util::stream::iter(chunks));
    let mut response = http::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let response = Response::from(response.body(body).ok()?);

    let owner = Owner {
        server: "fuzzed".into(),
        callbacks: Callbacks::default(),
        events: Events::new(),
        tasks: Tasks::default(),
    };
    let limits = Limits { line: LIMIT, ..Limits::default() };
    let (session, inlet, _orders) = Session::carried(owner, limits);
    // In this era no stream is taken up again, which would ask a server.
    session.agree(Revision::LATEST);
    let params = json!({});
    let deadline = Instant::now() + Duration::from_hours(1);
    let asking = session.request(Outgoing::new(ID, method::TOOLS_CALL, &params, deadline));
    let mut asking = std::pin::pin!(asking);
    assert!(asking.as_mut().now_or_never().is_none(), "answered before it was asked");

    let talk = Talk::new(place(), inlet);
    let (name, params, body) = (None, Vec::new(), Bytes::new());
    let request = Request { id: ID, method: method::TOOLS_CALL, name, params, body };
    if let Err(fault) = judged(&talk, response, &request).await {
        talk.inlet.fail(ID, fault);
    }
    let ended = asking.now_or_never().expect("the request has ended");
    Some(match ended {
        Ok(result) => result.take().get().to_owned(),
        Err(fault) => format!("{fault:?}"),
    })
}

/// A place that nothing is sent to.
fn place() -> Arc<Place> {
    static CLIENT: OnceLock<(Client, Url)> = OnceLock::new();
    let (client, url) = CLIENT.get_or_init(|| {
        let environment = Environment::from_pairs([("PATH", "")]);
        let remote =
            Remote::new(Kind::Http, "http://127.0.0.1:9/", &Default::default(), &environment);
        let remote = remote.expect("an address");
        (client::build(&remote).expect("a client"), remote.url.clone())
    });
    let (client, url) = (client.clone(), url.clone());
    let (server, headers) = ("fuzz".into(), Default::default());
    Arc::new(Place { server, client, url, headers, helper: None, access: None })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Fault 7.
    #[tokio::test]
    async fn the_mark_of_a_byte_order_before_an_answer_is_no_part_of_it() {
        let body = format!("\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}", super::ID);
        let json = [("content-type", "application/json")];
        let ended = super::outcome(200, &json, body.as_bytes(), 7).await;
        assert_eq!(ended.as_deref(), Some("{}"));
    }

    #[test]
    fn every_kept_http_answer_ends_its_request_the_same_way_whole_and_in_parts() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/http_answer");
        let inputs: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
        assert!(!inputs.is_empty());
        for input in inputs {
            println!("{}", input.path().display());
            super::http_answer(&std::fs::read(input.path()).unwrap());
        }
    }
}
