//! Makes a launched server ready: handshake, then the lists.

use std::sync::Arc;

use innkeeper_protocol::Era;
use tokio::time::Instant;

use super::clock::run_while_alive;
use super::{Endpoint, Launcher, StartClock, StartedServer, install};
use crate::cache::Cache;
use crate::catalog::{CatalogEntry, Introduction};
use crate::connection::call_permits::CallPermits;
use crate::connection::handshake::{
    HandshakeClient, HandshakeProbe, HandshakeResult, continue_session, perform_handshake,
};
use crate::connection::listing::{read_all, report_missing, report_quarantined};
use crate::connection::log_level;
use crate::connection::meta::ClientMeta;
use crate::connection::timeout_streak::TimeoutStreak;
use crate::connection::{
    Connection, ConnectionNumber, Freshness, Instruments, Negotiated, RequestLimits, listen,
};
use crate::error::{StartFailureReason, StartPhase};
use crate::event::HostEvent;
use crate::server::Server;

impl Launcher {
    /// Returns the catalog entry of the server, or the phase that failed.
    pub(super) async fn make_ready(
        &self,
        server: &Server,
        endpoint: &Endpoint,
        running: &mut StartedServer,
        opening: HandshakeProbe,
        clock: &mut StartClock,
    ) -> Result<CatalogEntry, (StartPhase, StartFailureReason)> {
        let mut server_seen = true;
        if let Endpoint::Child(launch) = endpoint
            && install::is_package_runner(&launch.program)
        {
            let StartedServer { instance, session, stderr, .. } = &mut *running;
            let report_install = || {
                let server = server.name.clone();
                let package = install::package_name(launch);
                self.host.events.publish(HostEvent::Installing { server, package });
            };
            let watch = install::InstallWatch { launch, stderr, report_install: &report_install };
            server_seen = install::wait_for_server_process(instance, session, watch, clock).await?;
        }
        self.host.events.publish(HostEvent::Handshake { server: server.name.clone() });
        let handshake = self.negotiate(server, running, opening, server_seen, clock).await?;
        let HandshakeResult { revision, meta, capabilities, server_info, instructions, .. } =
            handshake;
        if let (Some(http_session), Some(result)) =
            (&running.http_session, handshake.initialize_result)
        {
            http_session.set_initialize_result(result);
        }
        if let Endpoint::Child(launch) = endpoint {
            if handshake.ignored_discover {
                self.silent_servers.add(launch);
            } else if revision.era() == Era::Modern {
                self.silent_servers.remove(launch);
            }
        }
        running.capabilities = capabilities;
        let config = server.config();
        let cache = Arc::new(Cache::new(config.calls.cache));
        running.session.set_cache(cache.clone());
        let connection = Arc::new(Connection {
            server: server.name.clone(),
            number: ConnectionNumber::next(),
            session: running.session.clone(),
            negotiated: Negotiated {
                revision,
                tasks: running.capabilities.tasks,
                capabilities: running.capabilities.raw.clone(),
                declares_logging: running.capabilities.logging,
                client_meta: meta.as_deref().map(ClientMeta::from_raw).unwrap_or_default(),
            },
            limits: RequestLimits {
                permits: CallPermits::new(config.calls.max_concurrent),
                max_total_timeout: config.calls.max_total_timeout,
                retry: config.calls.retry,
            },
            freshness: Freshness::new(cache),
            instruments: Instruments {
                metrics: server.metrics.clone(),
                timeout_streak: TimeoutStreak::new(config.calls.unavailable_after_timeouts),
                telemetry: self.client.telemetry.for_connection(
                    &server.name,
                    revision,
                    endpoint.network(),
                ),
            },
            host: self.host.clone(),
        });
        log_level::set_detached(&connection, self.client.log_levels.get(&server.name));
        listen::start(&connection, &running.capabilities, &self.host.tasks).await;
        let mut excluded = Vec::new();
        let remaining = clock.deadline().saturating_duration_since(Instant::now());
        let reading = read_all(&connection, &running.capabilities, remaining, &mut excluded);
        let listing = run_while_alive(&mut running.instance, clock, reading)
            .await
            .map_err(|reason| (StartPhase::Lists, reason))?;
        report_missing(&self.host.events, &server.name, &listing);
        let config = server.config();
        let entry = CatalogEntry::new(
            connection,
            &config,
            Introduction { server_info, instructions, is_withheld: false },
            listing,
            &mut excluded,
        );
        report_quarantined(&self.host.events, &server.name, &excluded);
        Ok(entry)
    }

    /// Performs the handshake, or verifies that the server still knows the session of another host.
    async fn negotiate(
        &self,
        server: &Server,
        running: &mut StartedServer,
        opening: HandshakeProbe,
        server_seen: bool,
        clock: &mut StartClock,
    ) -> Result<HandshakeResult, (StartPhase, StartFailureReason)> {
        let capabilities = self.host.callbacks.capabilities(&server.name);
        let client =
            HandshakeClient { server: &server.name, info: &self.client.info, capabilities };
        let StartedServer { instance, session, http_session, .. } = &mut *running;
        let continued = http_session.as_ref().and_then(|state| state.continued());
        if let Some((initialized, revision)) = continued {
            let continuing =
                continue_session(session, &server.name, initialized, revision, clock.deadline());
            let continuing = run_while_alive(instance, clock, continuing).await;
            continuing.map_err(|reason| (StartPhase::Handshake, reason))
        } else if server_seen {
            let handshake = perform_handshake(session, client, opening, clock.deadline());
            let handshake = run_while_alive(instance, clock, handshake).await;
            handshake.map_err(|reason| (StartPhase::Handshake, reason))
        } else {
            let handshake =
                perform_handshake(session, client, opening, install::latest_deadline(clock));
            install::handshake_during_install(instance, session, clock, handshake).await
        }
    }
}
