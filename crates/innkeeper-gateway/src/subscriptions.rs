//! Subscriptions: `resources/subscribe`, `resources/unsubscribe` and `subscriptions/listen`.

use std::future::pending;
use std::sync::Arc;

use innkeeper_host::{CallOptions, RemoteClient};
use innkeeper_protocol::request_meta::EXTENSION_TASKS;
use innkeeper_protocol::view::MAX_URI_BYTES;
use innkeeper_protocol::{envelope, method};
use serde_json::value::to_raw_value;

use crate::client::Client;
use crate::error::RpcError;
use crate::json_text::empty_object;
use crate::offering::OfferedServer;
use crate::offers::{Need, Offers};
use crate::principal::Principal;
use crate::request::{ClientRequest, Reply};
use crate::subscribers::{
    ListFilter, RequestedNotifications, Subscriber, Subscribers, Subscription,
};
use crate::tasks::GatewayTasks;

/// The subscriptions of all clients.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    offers: Arc<Offers>,
    subscribers: Arc<Subscribers>,
    tasks: GatewayTasks,
}

impl Subscriptions {
    pub(crate) fn new(
        offers: Arc<Offers>,
        subscribers: Arc<Subscribers>,
        tasks: GatewayTasks,
    ) -> Self {
        Self { offers, subscribers, tasks }
    }

    /// Adds or removes a subscription of a client of the legacy era.
    pub(crate) async fn subscribe(&self, request: &ClientRequest<'_>, subscribed: bool) -> Reply {
        let uri = request.string_param("uri")?;
        let need = if subscribed { Need::Resource(&uri) } else { Need::Known };
        let offering = self.offers.offering_for(request.caller, need).await?;
        let Some(server) = offering.resource_server(&uri) else {
            let unknown = RpcError::unknown_item("resource", &uri);
            let need = Need::Resource(&uri);
            return Err(self.offers.missing_item(request.caller, &offering, need, unknown));
        };
        let Some(subscription) = &request.caller.subscription else {
            return Err(RpcError::new(
                envelope::code::INVALID_REQUEST,
                "subscriptions require `initialize`",
            ));
        };
        let principal = &request.caller.principal;
        if subscribed {
            self.add_resource(principal, &subscription.subscriber, server, &uri).await?;
        } else if subscription.subscriber.remove_resource(&server.name, &uri) {
            server.unsubscribe(&uri).await;
        }
        Ok(empty_object())
    }

    /// Subscribes a client to a resource of a server.
    async fn add_resource(
        &self,
        principal: &Principal,
        subscriber: &Subscriber,
        server: &Arc<OfferedServer>,
        uri: &str,
    ) -> Result<(), RpcError> {
        if uri.len() > MAX_URI_BYTES {
            let message =
                format!("`uri` has {} bytes; at most {MAX_URI_BYTES} are permitted", uri.len());
            return Err(RpcError::invalid_params(message));
        }
        let memory = self.subscribers.reserve(principal, uri).map_err(|_| too_many())?;
        match subscriber.add_resource(&server.name, uri, memory) {
            None => return Err(too_many()),
            Some(false) => return Ok(()),
            Some(true) => {}
        }
        let _unconfirmed = UnconfirmedResource { subscriber, server: &server.name, uri };
        let _in_use = self.offers.servers.use_offered(server).await?;
        let subscribed = server.subscribe(principal, uri).await;
        subscribed.map_err(|error| RpcError::from_call_error(error, uri))?;
        if !subscriber.confirm_resource(&server.name, uri) {
            server.unsubscribe(uri).await;
        }
        Ok(())
    }

    /// Opens a subscription of the modern era, which lasts until the client cancels the request.
    pub(crate) async fn listen(&self, request: &ClientRequest<'_>) -> Reply {
        let requested =
            RequestedNotifications::from_params(request.params.raw()).ok_or_else(|| {
                RpcError::invalid_params(
                    "`params/notifications` must be an object of notifications",
                )
            })?;
        if requested.has_tasks && !request.caller.identity.declares_task_extension() {
            return Err(RpcError::missing_extension(EXTENSION_TASKS));
        }
        let id = to_raw_value(request.id)
            .map_err(|error| RpcError::invalid_params(error.to_string()))?;
        let caller = request.caller;
        let known = self.offers.offering_for(caller, Need::Known).await?;
        let offering = match requested.resources.iter().all(|uri| known.lists_resource(uri)) {
            true => known,
            false => self.offers.offering(caller).await?,
        };
        let subscriber = Subscriber::new(
            caller.endpoint,
            offering.view.clone(),
            request.sink.clone(),
            requested.lists,
            Some(id),
        );
        let owners = requested.resources.iter().map(|uri| {
            let server = offering.resource_server(uri);
            server.cloned().ok_or_else(|| {
                let unknown = RpcError::unknown_item("resource", uri);
                self.offers.missing_item(caller, &offering, Need::Resource(uri), unknown)
            })
        });
        let owners: Vec<Arc<OfferedServer>> = owners.collect::<Result<_, _>>()?;
        let guard = ListenGuard { subscriptions: self, subscription: self.add(subscriber) };
        let subscriber = &guard.subscription.subscriber;
        for (uri, server) in requested.resources.iter().zip(&owners) {
            self.add_resource(&caller.principal, subscriber, server, uri).await?;
        }
        let acknowledgement = to_raw_value(&requested.acknowledgement())
            .map_err(|error| RpcError::invalid_params(error.to_string()))?;
        subscriber.notify(method::SUBSCRIPTIONS_ACKNOWLEDGED, Some(&acknowledgement));
        let input_ended = async {
            match &caller.client {
                Some(client) => client.input_ended().await,
                None => pending().await,
            }
        };
        tokio::select! {
            // Subscriptions of the modern era end with the gateway.
            _ = self.tasks.closing.wait() => {}
            // The requests in flight do not wait for a subscription, which has no end of its own.
            () = input_ended => {}
        }
        Ok(empty_object())
    }

    /// Adds a client of the legacy era to the receivers of change notifications.
    pub(crate) fn add_legacy(&self, client: &Arc<Client>) -> Result<Subscription, RpcError> {
        let view = self.offers.servers.view(&client.principal, Some(client), client.endpoint)?;
        let sink = client.general.clone();
        Ok(self.add(Subscriber::new(client.endpoint, view, sink, ListFilter::ALL, None)))
    }

    /// Adds a receiver of change notifications.
    pub(crate) fn add(&self, subscriber: Subscriber) -> Subscription {
        let options = self.offers.endpoints.options(subscriber.endpoint);
        self.subscribers.add(subscriber, options)
    }

    /// Ends all subscriptions of a subscriber at the servers.
    pub(crate) fn end(&self, subscription: &Subscription) {
        let subscriber = &subscription.subscriber;
        let resources = subscriber.take_resources();
        if resources.is_empty() {
            return;
        }
        let options = self.offers.endpoints.options(subscriber.endpoint);
        let offering = subscriber.view.offering(subscriber.endpoint, options);
        self.tasks.spawn(async move {
            for (server, uri) in resources {
                if let Some(server) = offering.server(&server) {
                    server.unsubscribe(&uri).await;
                }
            }
        });
    }
}

fn too_many() -> RpcError {
    RpcError::invalid_params(
        "too many subscribed resources: end subscriptions that are no longer needed",
    )
}

/// A resource of a subscriber. Dropping the value removes the resource unless the server has the
/// subscription.
struct UnconfirmedResource<'a> {
    subscriber: &'a Subscriber,
    server: &'a Arc<str>,
    uri: &'a str,
}

impl Drop for UnconfirmedResource<'_> {
    fn drop(&mut self) {
        self.subscriber.remove_unconfirmed(self.server, self.uri);
    }
}

/// A subscription of the modern era; dropping the value ends it.
struct ListenGuard<'a> {
    subscriptions: &'a Subscriptions,
    subscription: Subscription,
}

impl Drop for ListenGuard<'_> {
    fn drop(&mut self) {
        self.subscriptions.end(&self.subscription);
    }
}

impl OfferedServer {
    /// Subscribes at the server for the first subscriber of a resource.
    async fn subscribe(
        &self,
        principal: &Principal,
        uri: &str,
    ) -> Result<(), innkeeper_host::CallError> {
        let resource = self.server_use.subscriptions.resource(uri);
        let mut subscribers = resource.subscribers.lock().await;
        if *subscribers == 0 {
            let options = CallOptions {
                client: RemoteClient {
                    principal: Some(principal.id().clone()),
                    has_limited_share: principal.shares_limits(),
                    ..RemoteClient::default()
                },
                ..CallOptions::default()
            };
            self.upstream.host.subscribe_resource(uri, Some(&self.name), options).await?;
        }
        *subscribers += 1;
        Ok(())
    }

    /// Unsubscribes at the server for the last subscriber of a resource.
    async fn unsubscribe(&self, uri: &str) {
        let resource = self.server_use.subscriptions.resource(uri);
        let mut subscribers = resource.subscribers.lock().await;
        let Some(others) = subscribers.checked_sub(1) else { return };
        *subscribers = others;
        if others > 0 {
            return;
        }
        let options = CallOptions::default();
        if let Err(error) =
            self.upstream.host.unsubscribe_resource(uri, Some(&self.name), options).await
        {
            tracing::debug!(server = &*self.name, %error, "subscription not ended");
        }
    }
}
