//! Subscriptions to the changes of a resource.

use innkeeper_protocol::{Era, method};

use super::options::CallOptions;
use super::request_with_params;
use crate::catalog::Catalog;
use crate::connection::subscriptions::{MAX_SUBSCRIPTIONS, SubscribeOutcome};
use crate::error::{CallError, Violation};

/// Subscribes to the changes of a resource or removes the subscription.
pub(crate) async fn subscribe(
    catalog: &Catalog,
    uri: &str,
    server: Option<&str>,
    subscribed: bool,
    options: CallOptions,
) -> Result<(), CallError> {
    let route = catalog.resource(uri, server)?;
    let connection = &*route.connection;
    let outcome = connection.freshness.subscriptions.set(uri, subscribed);
    if outcome == SubscribeOutcome::TooMany {
        let message = format!("too many resource subscriptions: maximum is {MAX_SUBSCRIPTIONS}");
        let problems = vec![Violation { pointer: String::new(), message }];
        return Err(CallError::Validation { item: uri.into(), problems });
    }
    if connection.negotiated.revision.era() == Era::Modern {
        return Ok(());
    }
    let method =
        if subscribed { method::RESOURCES_SUBSCRIBE } else { method::RESOURCES_UNSUBSCRIBE };
    let result =
        request_with_params(connection, method, uri, &[("uri", &uri)], route.timeout, &options)
            .await;
    if result.is_err() && subscribed && outcome == SubscribeOutcome::Changed {
        connection.freshness.subscriptions.set(uri, false);
    }
    result.map(drop)
}
