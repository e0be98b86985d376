//! Clients that receive notifications about changes: clients of the legacy era, and subscriptions
//! of the modern era.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_protocol::request_meta::META_SUBSCRIPTION_ID;
use innkeeper_protocol::{envelope, method};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::json_text;
use crate::offering::ListKind;
use crate::options::EndpointOptions;
use crate::principal::Principal;
use crate::quota::{Quota, QuotaExceeded, Reservation};
use crate::sink::MessageSink;
use crate::view::View;

/// Maximum number of subscribed resources of one client.
pub(crate) const MAX_SUBSCRIBED_RESOURCES: usize = 1_024;

/// Maximum number of bytes of the subscribed resources of all clients.
const MAX_SUBSCRIBED_BYTES: usize = 64 << 20;

/// What a subscribed resource takes in addition to its URI, roughly.
const RESOURCE_BYTES: usize = 256;

/// The lists whose changes a subscriber receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListFilter {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl ListFilter {
    pub(crate) const ALL: Self = Self { tools: true, prompts: true, resources: true };

    fn includes(self, kind: ListKind) -> bool {
        match kind {
            ListKind::Tools => self.tools,
            ListKind::Prompts => self.prompts,
            ListKind::Resources | ListKind::ResourceTemplates => self.resources,
        }
    }
}

/// Resources by server and URI.
type SubscribedResources = HashMap<(Arc<str>, Box<str>), SubscribedResource>;

#[derive(Debug)]
struct SubscribedResource {
    is_confirmed: bool,
    _memory: Reservation,
}

/// A receiver of notifications.
#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(crate) endpoint: usize,
    pub(crate) view: Arc<View>,
    pub(crate) sink: MessageSink,
    pub(crate) lists: ListFilter,
    /// The id of the request that opened the subscription, in the modern era.
    pub(crate) subscription_id: Option<Box<RawValue>>,
    resources: Mutex<SubscribedResources>,
}

impl Subscriber {
    pub(crate) fn new(
        endpoint: usize,
        view: Arc<View>,
        sink: MessageSink,
        lists: ListFilter,
        subscription_id: Option<Box<RawValue>>,
    ) -> Self {
        Self { endpoint, view, sink, lists, subscription_id, resources: Mutex::default() }
    }

    fn is_of(&self, view: &Arc<View>, endpoint: usize) -> bool {
        self.endpoint == endpoint && Arc::ptr_eq(&self.view, view)
    }

    fn resources(&self) -> MutexGuard<'_, SubscribedResources> {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a resource that the server does not have yet. Returns `None` if there are too many, else
    /// whether the resource is new.
    pub(crate) fn add_resource(
        &self,
        server: &Arc<str>,
        uri: &str,
        memory: Reservation,
    ) -> Option<bool> {
        let mut resources = self.resources();
        let key = (server.clone(), uri.into());
        if resources.contains_key(&key) {
            return Some(false);
        }
        let added = SubscribedResource { is_confirmed: false, _memory: memory };
        (resources.len() < MAX_SUBSCRIBED_RESOURCES).then(|| resources.insert(key, added).is_none())
    }

    /// Records that the server has the subscription. Returns false if the subscriber removed the
    /// resource in the meantime.
    pub(crate) fn confirm_resource(&self, server: &Arc<str>, uri: &str) -> bool {
        let mut resources = self.resources();
        let confirmed = resources.get_mut(&(server.clone(), uri.into()));
        confirmed.is_some_and(|resource| !std::mem::replace(&mut resource.is_confirmed, true))
    }

    pub(crate) fn remove_resource(&self, server: &Arc<str>, uri: &str) -> bool {
        let removed = self.resources().remove(&(server.clone(), uri.into()));
        removed.is_some_and(|resource| resource.is_confirmed)
    }

    /// Removes a resource that the server does not have.
    pub(crate) fn remove_unconfirmed(&self, server: &Arc<str>, uri: &str) {
        let key = (server.clone(), uri.into());
        let mut resources = self.resources();
        if resources.get(&key).is_some_and(|resource| !resource.is_confirmed) {
            resources.remove(&key);
        }
    }

    /// Removes all resources; returns those whose servers have the subscription.
    pub(crate) fn take_resources(&self) -> Vec<(Arc<str>, Box<str>)> {
        let resources = std::mem::take(&mut *self.resources()).into_iter();
        resources.filter(|(_, resource)| resource.is_confirmed).map(|(key, _)| key).collect()
    }

    pub(crate) fn has_resources(&self) -> bool {
        !self.resources().is_empty()
    }

    fn has_resource(&self, server: &Arc<str>, uri: &str) -> bool {
        self.resources().contains_key(&(server.clone(), uri.into()))
    }

    /// Sends a notification with parameters of a server or of the gateway.
    pub(crate) fn notify(&self, method: &str, params: Option<&RawValue>) {
        let tagged = self.subscription_id.as_ref().map(|id| {
            let meta = json!({ META_SUBSCRIPTION_ID: id });
            json_text::with_meta_member(params.map(RawValue::get), META_SUBSCRIPTION_ID, &meta)
        });
        let mut message = Vec::new();
        let written = match &tagged {
            Some(params) => envelope::write_notification(&mut message, method, Some(params)),
            None => envelope::write_notification(&mut message, method, params),
        };
        if written.is_ok() {
            self.sink.notify(message.into());
        }
    }
}

#[derive(Debug)]
pub(crate) struct Subscribers {
    all: Mutex<HashMap<u64, Arc<Subscriber>>>,
    next: AtomicU64,
    memory: Arc<Quota>,
}

impl Default for Subscribers {
    fn default() -> Self {
        let memory = Quota::new(MAX_SUBSCRIBED_BYTES);
        Self { all: Mutex::default(), next: AtomicU64::default(), memory }
    }
}

/// A subscriber in the register; dropping the value removes it.
#[derive(Debug)]
pub(crate) struct Subscription {
    owner: Arc<Subscribers>,
    number: u64,
    pub(crate) subscriber: Arc<Subscriber>,
}

impl Subscribers {
    fn all(&self) -> MutexGuard<'_, HashMap<u64, Arc<Subscriber>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves memory for a subscribed resource of a principal.
    pub(crate) fn reserve(
        &self,
        principal: &Principal,
        uri: &str,
    ) -> Result<Reservation, QuotaExceeded> {
        self.memory.reserve(principal, uri.len() + RESOURCE_BYTES)
    }

    /// Adds a subscriber of an endpoint with these options.
    pub(crate) fn add(
        self: &Arc<Self>,
        subscriber: Subscriber,
        endpoint: &EndpointOptions,
    ) -> Subscription {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let subscriber = Arc::new(subscriber);
        self.all().insert(number, subscriber.clone());
        subscriber.view.watch(subscriber.endpoint, endpoint);
        Subscription { owner: self.clone(), number, subscriber }
    }

    pub(crate) fn current(&self) -> Vec<Arc<Subscriber>> {
        self.all().values().cloned().collect()
    }

    pub(crate) fn has_any(&self, view: &Arc<View>, endpoint: usize) -> bool {
        self.all().values().any(|subscriber| subscriber.is_of(view, endpoint))
    }

    /// Tells the subscribers of an endpoint and view which lists changed.
    pub(crate) fn notify_lists(&self, view: &Arc<View>, endpoint: usize, changed: [bool; 4]) {
        for subscriber in self.current() {
            if !subscriber.is_of(view, endpoint) {
                continue;
            }
            let kinds = ListKind::ALL.into_iter().zip(changed).filter(|(_, changed)| *changed);
            let mut methods: Vec<&str> = kinds
                .filter(|(kind, _)| subscriber.lists.includes(*kind))
                .map(|(kind, _)| list_changed_method(kind))
                .collect();
            methods.dedup();
            for method in methods {
                subscriber.notify(method, None);
            }
        }
    }

    /// Tells the subscribers of a resource that the resource changed.
    pub(crate) fn notify_resource(
        &self,
        is_of_view: impl Fn(&View) -> bool,
        server: &Arc<str>,
        uri: &str,
        params: &RawValue,
    ) {
        for subscriber in self.current() {
            if is_of_view(&subscriber.view) && subscriber.has_resource(server, uri) {
                subscriber.notify(method::RESOURCES_UPDATED, Some(params));
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.owner.all().remove(&self.number);
    }
}

fn list_changed_method(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => method::TOOLS_LIST_CHANGED,
        ListKind::Prompts => method::PROMPTS_LIST_CHANGED,
        ListKind::Resources | ListKind::ResourceTemplates => method::RESOURCES_LIST_CHANGED,
    }
}

/// The notifications that a subscription of the modern era requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestedNotifications {
    pub(crate) lists: ListFilter,
    pub(crate) resources: Vec<String>,
    /// Whether the client requests notifications about tasks, which the gateway does not send.
    pub(crate) has_tasks: bool,
}

impl RequestedNotifications {
    /// Reads the parameters of `subscriptions/listen`. Unknown notifications are ignored, and are
    /// absent in the acknowledgement.
    pub(crate) fn from_params(params: Option<&RawValue>) -> Option<Self> {
        let params: Value = serde_json::from_str(params?.get()).ok()?;
        let filter = params.get("notifications")?.as_object()?;
        let is_set = |key: &str| filter.get(key).and_then(Value::as_bool).unwrap_or_default();
        let lists = ListFilter {
            tools: is_set("toolsListChanged"),
            prompts: is_set("promptsListChanged"),
            resources: is_set("resourcesListChanged"),
        };
        let resources = match filter.get("resourceSubscriptions") {
            None | Some(Value::Null) => Vec::new(),
            Some(uris) => {
                let uris = uris.as_array()?.iter().map(|uri| uri.as_str().map(ToOwned::to_owned));
                uris.collect::<Option<_>>()?
            }
        };
        let has_tasks = filter.get("taskIds").is_some_and(|ids| !ids.is_null());
        Some(Self { lists, resources, has_tasks })
    }

    pub(crate) fn acknowledgement(&self) -> Value {
        let mut filter = Map::new();
        let lists = [
            ("toolsListChanged", self.lists.tools),
            ("promptsListChanged", self.lists.prompts),
            ("resourcesListChanged", self.lists.resources),
        ];
        for (key, is_set) in lists {
            if is_set {
                filter.insert(key.to_owned(), Value::Bool(true));
            }
        }
        if !self.resources.is_empty() {
            filter.insert("resourceSubscriptions".to_owned(), json!(self.resources));
        }
        json!({ "notifications": filter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap()
    }

    #[test]
    fn the_acknowledgement_names_what_the_subscription_will_receive() {
        let params = json!({ "notifications": {
            "toolsListChanged": true, "promptsListChanged": false, "weather": true,
            "resourceSubscriptions": ["a://1"],
        }});
        let requested = RequestedNotifications::from_params(Some(&raw(&params))).unwrap();
        assert_eq!(
            requested.acknowledgement(),
            json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["a://1"] }}),
        );
        for invalid in [json!({}), json!({ "notifications": { "resourceSubscriptions": [1] } })] {
            assert_eq!(RequestedNotifications::from_params(Some(&raw(&invalid))), None);
        }
    }
}
