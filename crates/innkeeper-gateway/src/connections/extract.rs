//! The connection of a request to a route of an application, and routes that need a feature.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Request};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, header};

use super::error::{ConnectionError, ErrorCode};
use super::options::{CONNECTION_ID_COOKIE, CONNECTION_ID_HEADER};
use super::service::ConnectionService;
use super::state::{ConnectionId, ConnectionState};
use crate::http_access::HttpAccess;
use crate::principal::Principal;
use crate::rejection::Rejection;

/// Returns the id of a connection in the headers of a request: the header has precedence over the
/// cookie.
///
/// # Errors
///
/// Returns an error for a request without an id, for one with several in a header or in cookies, of
/// which a proxy may check another one, and for a text that is not an id.
pub(crate) fn connection_id(headers: &HeaderMap) -> Result<ConnectionId, ConnectionError> {
    let mut values = headers.get_all(CONNECTION_ID_HEADER).iter();
    let text = match (values.next(), values.next()) {
        (Some(_), Some(_)) => return Err(ConnectionError::several_ids()),
        (Some(value), None) => value.to_str().ok(),
        (None, _) => Some(cookie(headers)?.ok_or_else(ConnectionError::missing_id)?),
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(ConnectionError::unknown)
}

fn cookie(headers: &HeaderMap) -> Result<Option<&str>, ConnectionError> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim(), value.trim()))
    });
    let mut ids = pairs.filter(|(name, _)| *name == CONNECTION_ID_COOKIE).map(|(_, value)| value);
    match (ids.next(), ids.next()) {
        (Some(_), Some(_)) => Err(ConnectionError::several_ids()),
        (id, _) => Ok(id),
    }
}

/// Finds the connections of requests to the routes of an application.
#[derive(Clone, Debug)]
pub struct ConnectionAccess {
    service: ConnectionService,
    access: Arc<HttpAccess>,
}

impl ConnectionAccess {
    /// Creates the access of a service. Origin and credential of each request are checked as by the
    /// gateway.
    pub fn new(service: ConnectionService, access: impl Into<Arc<HttpAccess>>) -> Self {
        Self { service, access: access.into() }
    }

    /// Returns a router whose handlers can have [`Connection`] and [`RequireFeature`] as arguments.
    ///
    /// # Examples
    ///
    /// ```
    /// use axum::routing::get;
    /// use innkeeper_gateway::connections::{Connection, ConnectionAccess};
    ///
    /// async fn greet(Connection(connection): Connection) -> String {
    ///     format!("Hello, {}!", connection.client_info.name)
    /// }
    ///
    /// fn routes(access: &ConnectionAccess) -> axum::Router {
    ///     access.router(axum::Router::new().route("/some-endpoint", get(greet)))
    /// }
    /// ```
    pub fn router<S: Clone + Send + Sync + 'static>(&self, router: Router<S>) -> Router<S> {
        let access = self.clone();
        router.layer(from_fn(move |mut request: Request, next: Next| {
            request.extensions_mut().insert(access.clone());
            next.run(request)
        }))
    }

    /// Works like [`Self::router`]. All routes answer with the status 501 unless the connection of
    /// the request has a feature.
    pub fn feature_router<S: Clone + Send + Sync + 'static>(
        &self,
        feature: impl Into<Arc<str>>,
        router: Router<S>,
    ) -> Router<S> {
        let access = self.clone();
        let feature = feature.into();
        router.layer(from_fn(move |request: Request, next: Next| {
            let access = access.clone();
            let feature = feature.clone();
            async move { access.run_with_feature(&feature, request, next).await }
        }))
    }

    async fn run_with_feature(self, feature: &str, request: Request, next: Next) -> Response {
        let (mut parts, body) = request.into_parts();
        let found = self.feature_connection(&parts, feature).await;
        match found {
            Ok(connection) => {
                parts.extensions.insert(connection);
                parts.extensions.insert(self);
                next.run(Request::from_parts(parts, body)).await
            }
            Err(error) => error.into_response(),
        }
    }

    async fn feature_connection(
        &self,
        parts: &Parts,
        feature: &str,
    ) -> Result<ConnectionState, ExtractError> {
        let connection = self.find(parts).await?;
        if self.service.is_feature_enabled(feature, &connection) {
            return Ok(connection);
        }
        Err(ConnectionError::feature_not_enabled(feature).into())
    }

    /// Returns the active connection of a request. A request is looked up once.
    async fn find(&self, parts: &Parts) -> Result<ConnectionState, ExtractError> {
        if let Some(found) = parts.extensions.get::<ConnectionState>() {
            return Ok(found.clone());
        }
        let user: Principal = self.access.admit(parts).await.map_err(ExtractError::Rejection)?;
        let id = connection_id(&parts.headers)?;
        Ok(self.service.active_connection(id, &user).await?)
    }

    fn of(parts: &Parts) -> Result<Self, ExtractError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            let message = "the route has no connections: pass its router to \
                           `ConnectionAccess::router`";
            tracing::error!(path = parts.uri.path(), message);
            ConnectionError::new(ErrorCode::InternalError, "the route is set up wrongly").into()
        })
    }
}

/// The active connection of a request.
///
/// A test of a handler can make up the connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection(pub ConnectionState);

/// The name of a feature as a type, for [`RequireFeature`].
pub trait FeatureName: 'static {
    /// The name.
    const NAME: &'static str;
}

/// The active connection of a request, if it has a feature; the response is otherwise the error
/// -32006 with the status 501.
///
/// # Examples
///
/// ```
/// use innkeeper_gateway::connections::{FeatureName, RequireFeature};
///
/// struct RunnerManagement;
///
/// impl FeatureName for RunnerManagement {
///     const NAME: &'static str = "tool.runner_management";
/// }
///
/// async fn list_runners(feature: RequireFeature<RunnerManagement>) -> String {
///     format!("runners of {}", feature.connection.client_info.name)
/// }
/// ```
pub struct RequireFeature<F> {
    /// The connection.
    pub connection: ConnectionState,
    feature: PhantomData<fn() -> F>,
}

impl<F: FeatureName> RequireFeature<F> {
    /// Creates the argument of a handler, for tests. Nothing is checked.
    pub fn new(connection: ConnectionState) -> Self {
        Self { connection, feature: PhantomData }
    }
}

impl<F: FeatureName> fmt::Debug for RequireFeature<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connection = &self.connection;
        f.debug_struct("RequireFeature")
            .field("feature", &F::NAME)
            .field("connection", connection)
            .finish()
    }
}

/// The response to a request without a usable connection.
#[derive(Debug)]
pub enum ExtractError {
    /// The gateway does not permit the request.
    Rejection(Rejection),
    /// The request has no usable connection.
    Connection(ConnectionError),
}

impl From<ConnectionError> for ExtractError {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}

impl IntoResponse for ExtractError {
    fn into_response(self) -> Response {
        match self {
            Self::Rejection(rejection) => rejection_response(&rejection),
            Self::Connection(error) => error.into_response(),
        }
    }
}

/// Returns the response of the connection service to a request that the gateway does not permit.
pub(crate) fn rejection_response(rejection: &Rejection) -> Response {
    let code = match rejection.status().as_u16() {
        401 | 403 => ErrorCode::ResourceAccessDenied,
        _ => ErrorCode::TransportError,
    };
    let mut response = ConnectionError::new(code, rejection.message()).into_response();
    *response.status_mut() = rejection.status();
    response.headers_mut().extend(rejection.headers().clone());
    response
}

impl<S: Sync> FromRequestParts<S> for Connection {
    type Rejection = ExtractError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ExtractError> {
        let access = ConnectionAccess::of(parts)?;
        let connection = access.find(parts).await?;
        parts.extensions.insert(connection.clone());
        Ok(Self(connection))
    }
}

impl<S: Sync, F: FeatureName> FromRequestParts<S> for RequireFeature<F> {
    type Rejection = ExtractError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ExtractError> {
        let access = ConnectionAccess::of(parts)?;
        let connection = access.feature_connection(parts, F::NAME).await?;
        parts.extensions.insert(connection.clone());
        Ok(Self::new(connection))
    }
}
