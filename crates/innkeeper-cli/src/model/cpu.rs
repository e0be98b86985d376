//! Checks whether this machine can run the model server.

use std::fs;

/// CPU features that the server uses; on a CPU without one of these, the kernel kills the server
/// with SIGILL.
const REQUIRED_CPU_FLAGS: [&str; 4] = ["avx512f", "avx512bw", "avx512dq", "avx512vl"];

/// Why this machine cannot run the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnsupportedPlatform {
    /// Another operating system or CPU architecture.
    #[error("the local model server requires Linux on x86-64; this machine runs {os} on {arch}")]
    Target { os: &'static str, arch: &'static str },
    /// A CPU without required features, or with unknown features.
    #[error("the local model server requires a CPU with AVX-512; this CPU lacks {}",
        missing.join(", "))]
    CpuFeatures { missing: Vec<&'static str> },
}

/// Checks whether the server can run on this machine.
///
/// # Errors
///
/// The platform is not supported, or the CPU lacks features.
pub(crate) fn check_supported() -> Result<(), UnsupportedPlatform> {
    let os = std::env::consts::OS;
    let arch = std::env::consts::ARCH;
    if (os, arch) != ("linux", "x86_64") {
        return Err(UnsupportedPlatform::Target { os, arch });
    }
    // An unreadable file counts as a CPU without features.
    check_cpu_flags(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn check_cpu_flags(cpuinfo: &str) -> Result<(), UnsupportedPlatform> {
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    let missing: Vec<_> = REQUIRED_CPU_FLAGS
        .into_iter()
        .filter(|needed| !flags.split_whitespace().any(|flag| flag == *needed))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(UnsupportedPlatform::CpuFeatures { missing }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_without_required_instructions_is_rejected_by_their_names() {
        let cpuinfo =
            |flags: &str| format!("processor\t: 0\nflags\t\t: fpu {flags} sse\nbugs\t: none\n");
        assert_eq!(check_cpu_flags(&cpuinfo("avx512f avx512bw avx512dq avx512vl")), Ok(()));
        let error = check_cpu_flags(&cpuinfo("avx512f avx512bw avx512vlx")).unwrap_err();
        assert!(error.to_string().ends_with("lacks avx512dq, avx512vl"), "{error}");
        assert!(
            matches!(check_cpu_flags(""), Err(UnsupportedPlatform::CpuFeatures { missing }) if missing.len() == 4)
        );
    }
}
