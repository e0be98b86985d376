//! Sees each request of a server with its response, for a recording.

use innkeeper_host::ServerRequest;
use innkeeper_host::callback::CallbackResult;

/// Sees each request of a server with its response.
pub(crate) trait RequestObserver: Send + Sync {
    /// Notes a request; returns its number.
    fn on_request(&self, request: &ServerRequest) -> usize;

    /// Notes the response to the request with a number. A request that ends otherwise has none.
    fn on_response(&self, number: usize, response: &CallbackResult);
}
