//! The HTTP client for other replicas.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// Maximum time to connect to another replica.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends requests to other replicas.
pub(in crate::transport::http) struct Forwarder(Client<HttpConnector, Full<Bytes>>);

impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Forwarder")
    }
}

impl Forwarder {
    /// Creates a forwarder to replicas that close a connection without a request for `request_time`.
    pub(in crate::transport::http) fn new(request_time: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            // A request on a connection that the owner closes at this time may have arrived or not.
            .pool_idle_timeout(request_time / 2)
            .pool_timer(TokioTimer::new())
            // The library would send a request again that the owner may have received.
            .retry_canceled_requests(false)
            .build(connector);
        Self(client)
    }

    pub(in crate::transport::http) fn request(
        &self,
        request: Request<Full<Bytes>>,
    ) -> ResponseFuture {
        self.0.request(request)
    }
}
