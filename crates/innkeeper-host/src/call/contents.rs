//! Reads prompts and resources from the cache or the server, and scans them.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::{check_prompt_result, check_read_result};
use innkeeper_protocol::{ViewError, method};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{CallOptions, scan_request_error};
use crate::cache::{CacheKey, CacheRead, CacheReadError, CachedResult, FetchedResult};
use crate::catalog::Catalog;
use crate::connection::result_type::ResultType;
use crate::connection::{Connection, Member, RequestParams, RequestSpec, ResultRejection};
use crate::error::{CallError, UnavailableReason, Violation};
use crate::event::CallOutcome;
use crate::guard::{ItemKind, Scanner};

/// Gets a prompt by its public name.
pub(crate) async fn get_prompt(
    catalog: &Catalog,
    name: &str,
    arguments: &Map<String, Value>,
    options: CallOptions,
) -> Result<Box<RawValue>, CallError> {
    let key = CacheKey::prompt(name, arguments).of_principal(options.client.principal.clone());
    let route = match catalog.prompt(name) {
        Ok(route) => route,
        Err(error) => {
            return read_unavailable(catalog, ItemKind::Prompt, name, &key, &options, error);
        }
    };
    let problems = prompt_argument_problems(&route.required_arguments, arguments);
    if !problems.is_empty() {
        return Err(CallError::Validation { item: name.into(), problems });
    }
    let connection = &*route.connection;
    let client_meta = &connection.negotiated.client_meta;
    let meta = options.caller_meta(client_meta, name)?;
    let request = ContentRequest {
        method: method::PROMPTS_GET,
        item: &route.name,
        key: &key,
        connection,
        scanner: route.scanner.as_deref(),
    };
    let timeout = options.timeout.unwrap_or(route.timeout);
    // Many servers refuse a request without the optional arguments.
    let members: [Member<'_>; 2] = [("name", &route.name), ("arguments", arguments)];
    let result = request
        .read(
            timeout,
            &options,
            RequestParams::Members(&members, options.meta_for_request(client_meta, &meta)),
            check_prompt_result,
        )
        .await;
    result.map_err(|error| error.with_called_name(name))
}

fn prompt_argument_problems(
    required: &[Box<str>],
    arguments: &Map<String, Value>,
) -> Vec<Violation> {
    let mut problems = Vec::new();
    for required in required.iter().filter(|required| !arguments.contains_key(&***required)) {
        let message = format!("missing required argument `{required}`");
        problems.push(Violation { pointer: String::new(), message });
    }
    for (key, _) in arguments.iter().filter(|(_, value)| !value.is_string()) {
        let message = "expected string: prompt arguments are strings".to_owned();
        let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        problems.push(Violation { pointer, message });
    }
    problems
}

/// Reads a resource from `server`, or from the server that lists the URI.
pub(crate) async fn read_resource(
    catalog: &Catalog,
    uri: &str,
    server: Option<&str>,
    options: CallOptions,
) -> Result<Box<RawValue>, CallError> {
    let key = CacheKey::resource(uri).of_principal(options.client.principal.clone());
    let route = match catalog.resource(uri, server) {
        Ok(route) => route,
        Err(error) => {
            return read_unavailable(catalog, ItemKind::Resource, uri, &key, &options, error);
        }
    };
    let connection = &*route.connection;
    let client_meta = &connection.negotiated.client_meta;
    let meta = options.caller_meta(client_meta, uri)?;
    let request = ContentRequest {
        method: method::RESOURCES_READ,
        item: uri,
        key: &key,
        connection,
        scanner: route.scanner.as_deref(),
    };
    let timeout = options.timeout.unwrap_or(route.timeout);
    request
        .read(
            timeout,
            &options,
            RequestParams::Members(&[("uri", &uri)], options.meta_for_request(client_meta, &meta)),
            check_read_result,
        )
        .await
}

/// Returns the stale result of an unavailable server, or the error.
fn read_unavailable(
    catalog: &Catalog,
    kind: ItemKind,
    requested: &str,
    key: &CacheKey,
    options: &CallOptions,
    error: CallError,
) -> Result<Box<RawValue>, CallError> {
    let Some((entry, item)) = catalog.last_entry(&error, kind, requested) else {
        return Err(error);
    };
    let (method, scanner) = match kind {
        ItemKind::Prompt => (method::PROMPTS_GET, entry.content_scanners.prompts.as_deref()),
        ItemKind::Tool | ItemKind::Resource | ItemKind::Template => {
            (method::RESOURCES_READ, entry.content_scanners.resources.as_deref())
        }
    };
    let request = ContentRequest { method, item, key, connection: &entry.connection, scanner };
    request.read_stale(options, error)
}

/// A request for a prompt or resource, with its cache key.
struct ContentRequest<'a> {
    method: &'static str,
    item: &'a str,
    key: &'a CacheKey,
    connection: &'a Connection,
    scanner: Option<&'a Scanner>,
}

impl ContentRequest<'_> {
    /// Returns the cached result, else the server's result, else a stale result.
    async fn read(
        &self,
        timeout: Duration,
        options: &CallOptions,
        params: RequestParams<'_>,
        check: impl FnOnce(&RawValue) -> Result<(), ViewError>,
    ) -> Result<Box<RawValue>, CallError> {
        let &Self { method, item, connection, .. } = self;
        let cache_read = connection
            .freshness
            .cache
            .read(self.key, options.bypasses_cache(), timeout, |timeout| {
                self.fetch(timeout, options, params, check)
            })
            .await;
        match cache_read {
            Ok(CacheRead::Fetched(result)) => {
                connection.instruments.metrics.record_cache_lookup(false);
                Ok(result)
            }
            Ok(CacheRead::Cached(cached, age)) => {
                connection.instruments.metrics.record_cache_lookup(true);
                let server = &*connection.server;
                let age_s = age.as_secs_f64();
                tracing::debug!(server, method, item, age_s, "cache hit");
                self.scan_cached(&cached)?;
                Ok(cached.result().to_owned())
            }
            Err(CacheReadError::Failed(error)) => self.read_stale(options, error),
            Err(CacheReadError::Timeout) => {
                let server = connection.server.clone();
                tracing::warn!(server = &*server, method, item, "shared request timed out");
                Err(CallError::Timeout { server, item: item.into(), timeout, is_total: false })
            }
        }
    }

    /// Sends the request to the server.
    async fn fetch(
        &self,
        timeout: Duration,
        options: &CallOptions,
        params: RequestParams<'_>,
        check: impl FnOnce(&RawValue) -> Result<(), ViewError>,
    ) -> Result<FetchedResult, CallError> {
        let &Self { method, item, connection, scanner, .. } = self;
        let caller = options.caller(item)?;
        let spec = RequestSpec {
            options: options.for_request(caller.as_ref()),
            ..RequestSpec::new(method, item, params, timeout)
        };
        let check_complete = |raw: &RawValue, kind| match kind {
            ResultType::Complete => check(raw),
            ResultType::InputRequired | ResultType::Task => Ok(()),
        };
        let Some(scanner) = scanner else {
            return connection
                .request(&spec, |raw, kind| {
                    check_complete(raw, kind)?;
                    Ok(CallOutcome::Ok)
                })
                .await;
        };
        let report_verdict =
            |verdict| connection.report_findings(scanner.item_kind(), item, verdict);
        let mut clean = false;
        let reply = connection
            .request_scanned(
                &spec,
                |raw, kind| {
                    check_complete(raw, kind)?;
                    let verdict = scanner.scan_result(raw);
                    clean = verdict.is_none();
                    report_verdict(verdict).map_or(Ok(CallOutcome::Ok), |findings| {
                        Err(ResultRejection::Withheld(findings))
                    })
                },
                |error| report_verdict(scan_request_error(scanner, error)),
            )
            .await?;
        Ok(FetchedResult { clean, ..reply })
    }

    /// Scans a cached result, unless the result is already scanned and clean: the result may be
    /// older than the setting that enables scanning. A withheld result is removed from the cache.
    fn scan_cached(&self, cached: &Arc<CachedResult>) -> Result<(), CallError> {
        let &Self { item, connection, .. } = self;
        let Some(scanner) = self.scanner.filter(|_| !cached.is_clean()) else { return Ok(()) };
        let verdict = scanner.scan_result(cached.result());
        if verdict.is_none() {
            cached.mark_clean();
        }
        let Some(findings) = connection.report_findings(scanner.item_kind(), item, verdict) else {
            return Ok(());
        };
        connection.freshness.cache.remove_if_same(self.key, cached);
        let server = connection.server.clone();
        let item = item.into();
        Err(CallError::Withheld { server, item, findings })
    }

    /// Returns the marked stale result of an unavailable server, or the error. A caller with
    /// `fresh` and a server that was shut down get the error.
    fn read_stale(
        &self,
        options: &CallOptions,
        error: CallError,
    ) -> Result<Box<RawValue>, CallError> {
        let is_unavailable = matches!(&error, CallError::Unavailable { reason, .. } if *reason != UnavailableReason::Shutdown);
        let stale = if is_unavailable && !options.bypasses_cache() {
            self.connection.freshness.cache.get_stale(self.key)
        } else {
            None
        };
        let Some((cached, age)) = stale else { return Err(error) };
        self.scan_cached(&cached)?;
        let server = &*self.connection.server;
        let age_s = age.as_secs_f64();
        let method = self.method;
        let item = self.key.item();
        let error: &dyn std::error::Error = &error;
        tracing::warn!(server, method, item, age_s, error, "stale result returned");
        Ok(cached.to_stale(age))
    }
}
