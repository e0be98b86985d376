//! The replicas of a gateway that share a Redis: which of them owns a session or the servers of a
//! principal, and what each knows of the calls of the others.

mod lease;
mod ownership;
mod rates;
mod records;
mod scripts;
mod sealed_sessions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_host::config::Secret;
use uuid::Uuid;

use crate::redis_client::RedisClient;
use crate::store_error::StoreError;
use crate::tasks::GatewayTasks;

pub(crate) use self::ownership::{Claim, OwnedKey, Ownership, ReplicaAddress};
pub(crate) use self::records::{
    CallRecord, EntryKind, LogEntry, RecordRejection, SessionRecord, StreamLog, session_names,
};

pub(crate) use self::sealed_sessions::SealedFor;

use self::lease::Lease;
use self::ownership::OwnedKeys;
use self::records::EndedCalls;

/// Shortest duration of a lease: Redis gets two seconds for each response.
const MIN_LEASE: Duration = Duration::from_secs(3);

/// Time beyond two leases in which a request finds an owner.
const OWNER_TIME: Duration = Duration::from_secs(5);

/// The settings of one replica.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// The URL under which the other replicas reach [`Gateway::serve_replicas`](crate::Gateway::serve_replicas).
    pub url: String,
    /// The secret that all replicas share.
    pub secret: Secret,
    /// Time after which another replica takes over what this replica owns when it no longer responds,
    /// at least 3 s. Default: 10 s.
    pub lease: Duration,
    /// Time after which Redis forgets what no client uses. Set to
    /// [`GatewayOptions::idle_session`](crate::GatewayOptions::idle_session).
    pub idle: Duration,
}

/// One replica among those that share a Redis. Clones share the replica.
///
/// A replica has a lease. What it owns, another replica can claim as soon as the lease has ended by the
/// clock of Redis; the replica itself stops earlier by its own clock.
#[derive(Clone)]
pub struct Replicas(Arc<Shared>);

struct Shared {
    id: String,
    options: ReplicaOptions,
    redis: Arc<RedisClient>,
    lease: Lease,
    owned: OwnedKeys,
    ended: EndedCalls,
}

impl fmt::Debug for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replicas")
            .field("id", &self.0.id)
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

impl Replicas {
    /// Joins the replicas of a Redis.
    ///
    /// # Errors
    ///
    /// Redis does not respond, or rejects a script.
    pub async fn join(
        redis: Arc<RedisClient>,
        options: ReplicaOptions,
    ) -> Result<Self, StoreError> {
        let options = ReplicaOptions { lease: options.lease.max(MIN_LEASE), ..options };
        let shared = Shared {
            id: Uuid::new_v4().simple().to_string(),
            lease: Lease::new(options.lease),
            options,
            redis,
            owned: OwnedKeys::default(),
            ended: EndedCalls::default(),
        };
        let replicas = Self(Arc::new(shared));
        replicas.renew_lease().await?;
        Ok(replicas)
    }

    /// Renews the lease and removes the records of ended calls, in tasks of the gateway.
    pub(crate) fn start(&self, tasks: &GatewayTasks) {
        tasks.spawn(self.clone().keep_lease());
        tasks.spawn(self.clone().remove_ended_calls());
        tasks.spawn(self.clone().remove_broken_calls());
    }

    /// Returns the id of this replica, which no other process has.
    pub(crate) fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns the secret that all replicas share.
    pub(crate) fn secret(&self) -> &Secret {
        &self.0.options.secret
    }

    pub(crate) fn lease_time(&self) -> Duration {
        self.0.options.lease
    }

    /// Returns the time in which a request finds an owner, and may be passed on several times.
    pub(crate) fn owner_time(&self) -> Duration {
        2 * self.0.options.lease + OWNER_TIME
    }
}

#[cfg(test)]
mod tests;
