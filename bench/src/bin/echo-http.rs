//! The echo server over Streamable HTTP.
//!
//! `/json` returns JSON responses, `/events` an SSE stream of one event. The server prints its
//! address and runs until a signal kills it.

use std::cell::RefCell;
use std::convert::Infallible;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use innkeeper_bench::echo::EchoServer;
use tokio::net::TcpListener;

thread_local! {
    static ECHO: RefCell<EchoServer> = RefCell::new(EchoServer::new());
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(
            http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(respond)),
        );
    }
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let events = request.uri().path() == "/events";
    if request.method() != Method::POST {
        return Ok(empty_response(StatusCode::METHOD_NOT_ALLOWED));
    }
    let Ok(body) = request.into_body().collect().await else {
        return Ok(empty_response(StatusCode::BAD_REQUEST));
    };
    let mut out = Vec::new();
    if events {
        out.extend_from_slice(b"event: message\ndata: ");
    }
    let before = out.len();
    ECHO.with_borrow_mut(|echo| echo.respond(&body.to_bytes(), &mut out));
    if out.len() == before {
        return Ok(empty_response(StatusCode::ACCEPTED));
    }
    if events {
        out.push(b'\n');
    }
    let mut response = Response::new(Full::new(Bytes::from(out)));
    let kind = if events { "text/event-stream" } else { "application/json" };
    response.headers_mut().insert(CONTENT_TYPE, kind.parse().expect("the header value is valid"));
    Ok(response)
}

fn empty_response(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
