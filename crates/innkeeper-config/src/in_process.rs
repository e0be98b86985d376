//! Adds the servers in the process of the application to a configuration.

use crate::checks::names;
use crate::config::Config;
use crate::diagnostic::{Diagnostic, Position};
use crate::settings::server::{ServerConfig, TransportConfig};

/// The source of a server without an entry, in diagnostics.
const SOURCE: &str = "HostBuilder";

impl Config {
    /// Adds an in-process server with default settings, unless the configuration has an entry of
    /// the type `in-process`, a disabled entry or an invalid entry with this name.
    ///
    /// # Errors
    ///
    /// Returns the problem of an invalid name, of an entry of another type, or of a server whose
    /// name differs only in case.
    pub fn add_in_process(&mut self, name: &str) -> Result<(), Diagnostic> {
        let code = Position { source: SOURCE.into(), line: 0, column: 0 };
        let problem = |at: &Position, key: String, message: String, hint: &str| {
            Err(Diagnostic { hint: Some(hint.to_owned()), ..Diagnostic::error(at, key, message) })
        };
        if let Some(message) = names::rejection_reason(name) {
            return problem(&code, format!("servers.{name}"), message, names::NAME_HINT);
        }
        if let Some(server) = self.servers.get(name) {
            if server.transport == TransportConfig::InProcess {
                return Ok(());
            }
            let kind = server.transport.kind();
            let message = format!("the application connects this server; the type is `{kind}`");
            let hint = "write `\"type\": \"in-process\"` in place of `command` or `url`";
            return problem(&server.position, format!("{}.type", server.key), message, hint);
        }
        if self.disabled.contains_key(name) || self.invalid.contains_key(name) {
            return Ok(());
        }
        let mut others = self.servers.keys().chain(self.disabled.keys()).chain(self.invalid.keys());
        if let Some(other) = others.find(|other| other.eq_ignore_ascii_case(name)) {
            let message = format!("differs from `{other}` only in case");
            return problem(&code, format!("servers.{name}"), message, "use another name");
        }
        let key = format!("servers.{name}");
        let transport = TransportConfig::InProcess;
        let server = ServerConfig::new(&self.host, name.to_owned(), key, code, transport);
        self.servers.insert(name.to_owned(), server);
        Ok(())
    }
}
