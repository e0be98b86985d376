//! How many connections the process can have open.

use crate::options::GatewayOptions;

/// The files that the gateway has open for each process of a server: three pipes and the socket of the
/// supervisor.
const FILES_OF_PROCESS: usize = 4;

/// The files that the gateway has open for everything else: its listeners, its log, connections to
/// remote servers and stores, and files that it reads.
const OTHER_FILES: usize = 128;

/// Returns the maximum number of open connections.
pub(super) fn max_connections(options: &GatewayOptions) -> usize {
    let Some(files) = max_files() else { return options.limits.max_connections };
    let maximum = with_files(options, files);
    if maximum < options.limits.max_connections {
        tracing::info!(
            connections = maximum,
            files,
            "fewer connections than usual: raise the limit of open files (`ulimit -n`, or \
             `LimitNOFILE` of systemd)"
        );
    }
    maximum
}

/// Leaves files for all processes of servers, but at most half of the files: with few files there are
/// not as many processes either.
fn with_files(options: &GatewayOptions, files: usize) -> usize {
    let of_processes = options.server_limits.max_processes.saturating_mul(FILES_OF_PROCESS);
    let reserve = of_processes.saturating_add(OTHER_FILES).min(files / 2);
    options.limits.max_connections.min(files - reserve).max(1)
}

/// Returns the number of files that the process can have open; `None` without a limit.
#[cfg(unix)]
fn max_files() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    usize::try_from(limit).ok()
}

#[cfg(not(unix))]
fn max_files() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: remote | clients open as many connections as the system permits files | files for
    /// servers are left | Isolation
    #[test]
    fn connections_leave_files_for_servers() {
        let options = GatewayOptions::default();
        for (files, connections) in
            [(256, 128), (1_024, 512), (4_096, 2_944), (20_000, 10_000), (1 << 20, 10_000)]
        {
            assert_eq!(with_files(&options, files), connections, "{files}");
        }
        assert!((2..=10_000).contains(&max_connections(&options)));
    }
}
