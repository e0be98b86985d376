//! Forwards the events of a host to the clients that may see them.

use std::sync::{Arc, Weak};

use innkeeper_host::{CallOptions, CallReference, HostEvent};
use innkeeper_protocol::view::Task;
use innkeeper_protocol::{envelope, method, skim};
use serde_json::value::RawValue;
use tokio::sync::broadcast::error::RecvError;

use super::Servers;
use crate::task_ids::{related_task, task_id};
use crate::upstream::Upstream;

/// Returns a task that runs until the host or the gateway ends. `client` is the number of the client of a
/// session with a host of its own.
pub(super) fn forward_events(
    servers: Weak<Servers>,
    upstream: &Arc<Upstream>,
    client: Option<u64>,
) -> impl Future<Output = ()> + use<> {
    let mut events = upstream.host.events();
    let upstream = Arc::downgrade(upstream);
    async move {
        loop {
            let event = events.recv().await;
            let (Some(servers), Some(upstream)) = (servers.upgrade(), upstream.upgrade()) else {
                return;
            };
            if let Ok(event) = &event {
                servers.observers.audit_log.record_host_event(event);
            }
            if let Some(client) = client.filter(|_| changes_remote_sessions(&event)) {
                servers.record_changed_session(client);
            }
            match event {
                Ok(HostEvent::Notification { server, method, params, call }) => {
                    let params = params.as_deref();
                    forward_notification(&servers, &upstream, &server, &method, params, &call);
                }
                Ok(HostEvent::Reloaded { .. }) => {
                    upstream.read_names();
                    servers.notify_changes(&upstream);
                }
                Ok(HostEvent::Ready { server, .. }) => {
                    if !upstream.servers.contains(&server) {
                        // A reload has added it.
                        upstream.read_names();
                    }
                    upstream.remember(&server);
                    upstream.remove_ended_tasks();
                    servers.count_process(&upstream, &server);
                    servers.tasks.spawn(renew_subscriptions(upstream.clone(), server));
                    servers.notify_changes(&upstream);
                }
                Ok(HostEvent::CatalogChanged { server }) => {
                    upstream.remember(&server);
                    servers.notify_changes(&upstream);
                }
                Ok(HostEvent::Unavailable { server, .. }) => {
                    if !upstream.dormant.is_unstarted(&server) {
                        upstream.dormant.record_end(Some(&server));
                    }
                    upstream.servers.server_use(&server).open_tasks.clear();
                    servers.notify_changes(&upstream);
                    servers.stop_ended(&upstream, server);
                }
                Ok(HostEvent::Stopped { server }) => {
                    upstream.dormant.record_end(Some(&server));
                    upstream.remove_ended_tasks();
                    servers.notify_changes(&upstream);
                }
                Err(RecvError::Lagged(_)) => {
                    upstream.read_names();
                    upstream.dormant.record_end(None);
                    upstream.remove_ended_tasks();
                    servers.notify_changes(&upstream);
                }
                Ok(_) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }
}

/// Returns whether the sessions with remote servers may have changed.
fn changes_remote_sessions(event: &Result<HostEvent, RecvError>) -> bool {
    matches!(
        event,
        Ok(HostEvent::Ready { .. }
            | HostEvent::Unavailable { .. }
            | HostEvent::Stopped { .. }
            | HostEvent::Reinitialized { .. })
            | Err(RecvError::Lagged(_))
    )
}

impl Servers {
    /// Tells the clients which lists changed since the last call.
    pub(super) fn notify_changes(&self, upstream: &Arc<Upstream>) {
        let mut views = vec![self.sharing.shared_view.clone()];
        for subscriber in self.observers.subscribers.current() {
            if !views.iter().any(|view| Arc::ptr_eq(view, &subscriber.view)) {
                views.push(subscriber.view.clone());
            }
        }
        for view in views.iter().filter(|view| view.contains(upstream)) {
            for (index, endpoint) in self.endpoints.all().iter().enumerate() {
                let endpoint = &endpoint.options;
                let changed = view.changed_lists(index, endpoint, || {
                    self.observers.subscribers.has_any(view, index)
                });
                if changed != [false; 4] {
                    self.observers.subscribers.notify_lists(view, index, changed);
                }
            }
        }
    }
}

/// Subscribes again at a server that restarted: its process does not know the subscribers.
async fn renew_subscriptions(upstream: Arc<Upstream>, server: Arc<str>) {
    let server_use = upstream.servers.server_use(&server);
    for uri in server_use.subscriptions.uris() {
        let resource = server_use.subscriptions.resource(&uri);
        let subscribers = resource.subscribers.lock().await;
        let options = CallOptions::default();
        if *subscribers > 0
            && let Err(error) = upstream.host.subscribe_resource(&uri, Some(&server), options).await
        {
            tracing::warn!(server = &*server, %error, "subscription not renewed after a restart");
        }
    }
}

fn forward_notification(
    servers: &Servers,
    upstream: &Arc<Upstream>,
    server: &Arc<str>,
    method: &str,
    params: Option<&RawValue>,
    call: &CallReference,
) {
    let is_status = matches!(method, method::TASKS_STATUS | method::TASKS_CHANGED);
    let task = if is_status { params.and_then(|params| task_id(params.get())) } else { None };
    if let Some(task) = task.or_else(|| related_task(params)) {
        // The stream of a request for the result of a task gets the other notifications.
        if is_status || *call == CallReference::Unknown {
            forward_of_task(upstream, server, method, params, &task);
        }
        return;
    }
    match method {
        // Without a task, a status belongs to nobody.
        _ if is_status => {}
        method::RESOURCES_UPDATED => {
            let Some(params) = params else { return };
            let uri = skim::member(params.get(), "uri").and_then(skim::decode_string);
            if let Some(uri) = uri {
                servers.observers.subscribers.notify_resource(|view| view.contains(upstream), server, &uri, params);
            }
        }
        // The catalog reports these after the host has read the list.
        method::TOOLS_LIST_CHANGED
        | method::PROMPTS_LIST_CHANGED
        | method::RESOURCES_LIST_CHANGED
        // These belong to a call, whose stream gets them.
        | method::PROGRESS
        | method::CANCELLED
        | method::SUBSCRIPTIONS_ACKNOWLEDGED => {}
        _ if *call != CallReference::Unknown => {}
        _ => forward_unattributed(servers, upstream, server, method, params),
    }
}

/// Forwards a notification about a task to the connection or session that created the task.
fn forward_of_task(
    upstream: &Upstream,
    server: &Arc<str>,
    method: &str,
    params: Option<&RawValue>,
    task_id: &str,
) {
    let server_use = upstream.servers.server_use(server);
    let found = server_use.open_tasks.find(task_id);
    if method == method::TASKS_STATUS
        && params.is_some_and(|params| {
            Task::from_raw(params).is_ok_and(|task| task.status.is_terminal())
        })
    {
        server_use.open_tasks.end(task_id);
    }
    let Some((ids, Some(client))) = found else { return };
    // Clients of the modern era poll.
    let has_tasks =
        client.settings.identity().is_some_and(|identity| identity.revision.has_core_tasks());
    let Some(params) = params.filter(|_| has_tasks) else { return };
    let mut message = Vec::new();
    let params = ids.for_client(params);
    if envelope::write_notification(&mut message, method, Some(&params)).is_ok() {
        client.general.notify(message.into());
    }
}

/// Forwards a notification that belongs to no call, for example a log message, if all clients
/// that ever used the host are of one principal: it may contain what another client sent.
fn forward_unattributed(
    servers: &Servers,
    upstream: &Arc<Upstream>,
    server: &Arc<str>,
    method: &str,
    params: Option<&RawValue>,
) {
    // Clients of the modern era over HTTP have no connection, and a server may remember a client that
    // has gone.
    if upstream.users.has_several_principals() {
        tracing::debug!(server = &**server, "notification without a call not forwarded");
        return;
    }
    let subscribers = servers.observers.subscribers.current();
    for subscriber in subscribers.iter().filter(|subscriber| subscriber.view.contains(upstream)) {
        // A subscription of the modern era receives only what it requested.
        let offers = servers
            .endpoints
            .get(subscriber.endpoint)
            .is_some_and(|endpoint| endpoint.options.has_server(server));
        if subscriber.subscription_id.is_none() && offers {
            subscriber.notify(method, params);
        }
    }
}
