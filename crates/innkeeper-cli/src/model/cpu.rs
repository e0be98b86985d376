//! Whether this machine can run the server: it is built for one kind of processor only.

use std::fs;

/// What the server's code uses; without one of these the kernel kills it at its first such step.
const NEEDED: [&str; 4] = ["avx512f", "avx512bw", "avx512dq", "avx512vl"];

/// What this machine lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lack {
    /// Another system or another kind of processor.
    #[error("the local model's server is built for Linux on x86-64, and this is {os} on {arch}")]
    Platform { os: &'static str, arch: &'static str },
    /// An older processor, or one that does not tell.
    #[error("the local model's server needs a processor with AVX-512; this one has no {}",
        missing.join(", "))]
    Processor { missing: Vec<&'static str> },
}

/// Whether the server can run here.
///
/// # Errors
///
/// What is missing.
pub(crate) fn able() -> Result<(), Lack> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    if (os, arch) != ("linux", "x86_64") {
        return Err(Lack::Platform { os, arch });
    }
    // Where it cannot be read, no instruction is known to be there.
    judge(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn judge(told: &str) -> Result<(), Lack> {
    let flags = told.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    let missing: Vec<_> = NEEDED
        .into_iter()
        .filter(|needed| !flags.split_whitespace().any(|flag| flag == *needed))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(Lack::Processor { missing }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_without_one_of_the_instructions_is_refused_by_their_names() {
        let told =
            |flags: &str| format!("processor\t: 0\nflags\t\t: fpu {flags} sse\nbugs\t: none\n");
        assert_eq!(judge(&told("avx512f avx512bw avx512dq avx512vl")), Ok(()));
        let lack = judge(&told("avx512f avx512bw avx512vlx")).unwrap_err();
        assert!(lack.to_string().ends_with("has no avx512dq, avx512vl"), "{lack}");
        assert!(matches!(judge(""), Err(Lack::Processor { missing }) if missing.len() == 4));
    }
}
