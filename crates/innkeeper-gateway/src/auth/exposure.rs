//! Decides where the gateway may listen without authentication.

use std::net::SocketAddr;

use crate::host_name::is_loopback;

/// The two permissions to serve the network without authentication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExposurePermissions {
    /// `serve.allowUnauthenticated` in the configuration.
    pub configuration: bool,
    /// The flag of the command line.
    pub command_line: bool,
}

/// The gateway would serve every client of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{listen}` is an address of the network and no authentication is configured: every client could \
     use every server"
)]
pub struct ExposureError {
    /// Address to listen on.
    pub listen: SocketAddr,
}

/// Checks that the gateway requires a credential, listens on a loopback address, or has both
/// permissions: a mistake in one place exposes nothing.
///
/// # Errors
///
/// Returns an error if none of this holds.
pub fn check_exposure(
    listen: SocketAddr,
    requires_credential: bool,
    permissions: ExposurePermissions,
) -> Result<(), ExposureError> {
    let is_permitted = permissions.configuration && permissions.command_line;
    if requires_credential || is_loopback(listen.ip()) || is_permitted {
        return Ok(());
    }
    Err(ExposureError { listen })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: remote | the gateway listens on the network without authentication, with one of the
    /// two permissions | the gateway does not start | Complete checks
    #[test]
    fn the_network_is_served_without_authentication_only_with_both_permissions() {
        let permissions =
            |configuration, command_line| ExposurePermissions { configuration, command_line };
        for (listen, requires_credential, permissions, is_allowed) in [
            ("127.0.0.1:1", false, permissions(false, false), true),
            ("[::1]:1", false, permissions(false, false), true),
            ("[::ffff:127.0.0.1]:1", false, permissions(false, false), true),
            ("0.0.0.0:1", true, permissions(false, false), true),
            ("0.0.0.0:1", false, permissions(true, true), true),
            ("0.0.0.0:1", false, permissions(true, false), false),
            ("0.0.0.0:1", false, permissions(false, true), false),
            ("[::]:1", false, permissions(false, false), false),
            ("192.168.0.1:1", false, permissions(false, false), false),
        ] {
            let result = check_exposure(listen.parse().unwrap(), requires_credential, permissions);
            assert_eq!(result.is_ok(), is_allowed, "{listen}");
        }
    }
}
