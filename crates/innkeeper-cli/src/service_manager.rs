//! The interface of a service manager such as systemd: a listening socket for this process, and
//! messages about its state.

mod listener;
mod notifier;

use innkeeper_host::Environment;

pub(crate) use listener::HandedOverSockets;
pub(crate) use notifier::{ServiceNotifier, ServiceState};

/// Number of sockets that the service manager hands over.
const SOCKET_COUNT_VARIABLE: &str = "LISTEN_FDS";

/// Process that the sockets are for.
const SOCKET_OWNER_VARIABLE: &str = "LISTEN_PID";

/// Names of the sockets, separated by colons.
const SOCKET_NAMES_VARIABLE: &str = "LISTEN_FDNAMES";

/// Socket for messages about the state of the process.
const NOTIFY_VARIABLE: &str = "NOTIFY_SOCKET";

/// The variables that are for this process alone.
const VARIABLES: [&str; 7] = [
    SOCKET_COUNT_VARIABLE,
    SOCKET_OWNER_VARIABLE,
    SOCKET_NAMES_VARIABLE,
    "LISTEN_PIDFDID",
    NOTIFY_VARIABLE,
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// What a service manager handed to this process.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    pub(crate) sockets: Option<HandedOverSockets>,
    pub(crate) notifier: ServiceNotifier,
}

impl ServiceManager {
    /// Reads the variables of the service manager, and returns the environment without them: neither
    /// a server nor another program inherits the sockets. Must be called before a thread starts.
    pub(crate) fn take(environment: Environment) -> (Self, Environment) {
        let sockets = HandedOverSockets::take(&environment);
        let notifier = ServiceNotifier::new(environment.get(NOTIFY_VARIABLE));
        (Self { sockets, notifier }, environment.without_variables(&VARIABLES))
    }
}
