//! The launch that the host sends to the supervisor, in a binary form.
//!
//! The host prepares everything: the variables of the environment, the rights of the sandbox and
//! the compiled filters. The supervisor reads the launch without copying a string.
//!
//! A number is little-endian, a string is its length and its bytes, a C string ends with a zero.

use alloc::vec::Vec;
use core::ffi::CStr;

/// Version of the form, so that another version of the supervisor refuses the launch.
const VERSION: u32 = 1;

/// Number of bytes of the length before a launch.
pub const PREFIX_BYTES: usize = 4;

/// Maximum size of a launch in bytes: Linux allows at most 6 MiB of arguments and environment; the
/// rest is for the paths of the sandbox.
pub const MAX_LAUNCH_BYTES: usize = 16 << 20;

/// Value of an absent limit: the kernel's `RLIM_INFINITY`.
const NO_LIMIT: u64 = u64::MAX;

/// The server process that the supervisor starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchRequest<'a> {
    /// The program, as a path, and its arguments. The program is its first argument too.
    pub arguments: Vec<&'a CStr>,
    /// The complete environment, each as `NAME=value`.
    pub environment: Vec<&'a CStr>,
    /// Working directory; empty for the directory of the supervisor.
    pub directory: &'a CStr,
    /// Maximum number of processes in the tree.
    pub max_processes: Option<u64>,
    /// Limits of each process.
    pub limits: Limits,
    /// Sandbox of the server.
    pub sandbox: Option<Sandbox<'a>>,
}

/// The resource limits of each process of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Hard limit `RLIMIT_LOCKS`, which marks the processes of the tree.
    pub locks: Option<u64>,
    /// Bytes of a core file.
    pub core: Option<u64>,
    /// Number of open files.
    pub open_files: Option<u64>,
    /// Bytes of a written file.
    pub file_size: Option<u64>,
    /// Seconds of CPU time.
    pub cpu_seconds: Option<u64>,
    /// Bytes of private writable memory.
    pub memory: Option<u64>,
}

/// The restrictions of a server by the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox<'a> {
    /// The handled rights by version of Landlock, from version 1 on.
    pub handled: Vec<HandledRights>,
    /// Rights that apply to a file; the other rights apply to directories only.
    pub file_rights: u64,
    /// The permitted paths.
    pub rules: Vec<PathRule<'a>>,
    /// Filters of system calls, each an array of the kernel's `sock_filter`.
    pub filters: Vec<&'a [u8]>,
}

/// What a ruleset of Landlock handles: everything handled is refused unless a rule permits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandledRights {
    /// Rights on files and directories.
    pub files: u64,
    /// Rights on TCP ports.
    pub network: u64,
    /// Objects outside of the sandbox that the server cannot reach.
    pub scopes: u64,
}

/// Permits rights on a path and on everything below the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRule<'a> {
    /// The permitted rights.
    pub rights: u64,
    /// Whether the rule does not apply to root.
    pub except_root: bool,
    /// The path; skipped if it does not exist.
    pub path: &'a CStr,
}

/// A launch is larger than [`MAX_LAUNCH_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchTooLarge;

impl LaunchRequest<'_> {
    /// Encodes the launch with its length prefix.
    ///
    /// # Errors
    /// The launch is larger than [`MAX_LAUNCH_BYTES`].
    pub fn encode(&self) -> Result<Vec<u8>, LaunchTooLarge> {
        let Self { arguments, environment, directory, max_processes, limits, sandbox } = self;
        let Limits { locks, core, open_files, file_size, cpu_seconds, memory } = *limits;
        let mut frame = Writer(alloc::vec![0; PREFIX_BYTES]);
        frame.number(VERSION);
        for limit in [*max_processes, locks, core, open_files, file_size, cpu_seconds, memory] {
            frame.wide(limit.unwrap_or(NO_LIMIT));
        }
        frame.bytes(directory.to_bytes_with_nul());
        for list in [arguments, environment] {
            frame.count(list.len());
            list.iter().for_each(|text| frame.bytes(text.to_bytes_with_nul()));
        }
        frame.number(sandbox.is_some().into());
        if let Some(Sandbox { handled, file_rights, rules, filters }) = sandbox {
            frame.count(handled.len());
            for HandledRights { files, network, scopes } in handled {
                [*files, *network, *scopes].into_iter().for_each(|rights| frame.wide(rights));
            }
            frame.wide(*file_rights);
            frame.count(rules.len());
            for PathRule { rights, except_root, path } in rules {
                frame.wide(*rights);
                frame.number((*except_root).into());
                frame.bytes(path.to_bytes_with_nul());
            }
            frame.count(filters.len());
            filters.iter().for_each(|filter| frame.bytes(filter));
        }
        frame.finish()
    }
}

impl<'a> LaunchRequest<'a> {
    /// Parses a launch without its length prefix; `None` if it is damaged or of another version.
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let mut frame = Reader(body);
        if frame.number()? != VERSION {
            return None;
        }
        let request = Self {
            max_processes: frame.limit()?,
            limits: Limits {
                locks: frame.limit()?,
                core: frame.limit()?,
                open_files: frame.limit()?,
                file_size: frame.limit()?,
                cpu_seconds: frame.limit()?,
                memory: frame.limit()?,
            },
            directory: frame.c_str()?,
            arguments: frame.list(Reader::c_str)?,
            environment: frame.list(Reader::c_str)?,
            sandbox: if frame.number()? == 0 { None } else { Some(frame.sandbox()?) },
        };
        (frame.0.is_empty() && !request.arguments.is_empty()).then_some(request)
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn wide(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes a length; a longer list makes the launch too large.
    fn count(&mut self, count: usize) {
        self.number(u32::try_from(count).unwrap_or(u32::MAX));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Writes the length of the launch into its prefix.
    fn finish(self) -> Result<Vec<u8>, LaunchTooLarge> {
        let mut frame = self.0;
        let length = frame.len() - PREFIX_BYTES;
        if length > MAX_LAUNCH_BYTES {
            return Err(LaunchTooLarge);
        }
        let length = u32::try_from(length).map_err(|_| LaunchTooLarge)?;
        frame[..PREFIX_BYTES].copy_from_slice(&length.to_le_bytes());
        Ok(frame)
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn wide(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn limit(&mut self) -> Option<Option<u64>> {
        self.wide().map(|limit| Some(limit).filter(|limit| *limit != NO_LIMIT))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn c_str(&mut self) -> Option<&'a CStr> {
        CStr::from_bytes_with_nul(self.bytes()?).ok()
    }

    /// Reads a list; each item takes some bytes, so that a damaged length ends the list early.
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok()?;
        let mut list = Vec::new();
        // Each item has at least the four bytes of its length.
        list.try_reserve_exact(count.min(self.0.len() / PREFIX_BYTES)).ok()?;
        for _ in 0..count {
            list.push(item(self)?);
        }
        Some(list)
    }

    fn sandbox(&mut self) -> Option<Sandbox<'a>> {
        Some(Sandbox {
            handled: self.list(|frame| {
                let files = frame.wide()?;
                let network = frame.wide()?;
                Some(HandledRights { files, network, scopes: frame.wide()? })
            })?,
            file_rights: self.wide()?,
            rules: self.list(|frame| {
                let rights = frame.wide()?;
                let except_root = frame.number()? != 0;
                Some(PathRule { rights, except_root, path: frame.c_str()? })
            })?,
            filters: self.list(Self::bytes)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confined() -> LaunchRequest<'static> {
        LaunchRequest {
            arguments: vec![c"/bin/\xff\x80", c"\"; rm -rf $HOME\n", c""],
            environment: vec![c"A=b=c", c"EMPTY="],
            directory: c"/srv",
            max_processes: Some(8),
            limits: Limits { locks: Some(1 << 61), core: Some(0), ..Limits::default() },
            sandbox: Some(Sandbox {
                handled: vec![HandledRights { files: 1, network: 2, scopes: 3 }; 7],
                file_rights: 5,
                rules: vec![PathRule { rights: 4, except_root: true, path: c"/proc" }],
                filters: vec![b"12345678", b""],
            }),
        }
    }

    #[test]
    fn a_launch_is_read_back_as_it_was_written() {
        let free = LaunchRequest { arguments: vec![c"/bin/true"], ..LaunchRequest::default() };
        for launch in [confined(), free] {
            let frame = launch.encode().unwrap();
            let (prefix, body) = frame.split_first_chunk().unwrap();
            assert_eq!(u32::from_le_bytes(*prefix) as usize, body.len());
            assert_eq!(LaunchRequest::parse(body), Some(launch));
        }
    }

    /// Attack: processes | a launch is cut off, longer than its parts, of another version, or has
    /// damaged lengths | the supervisor refuses the launch and starts nothing | No orphan
    #[test]
    fn a_damaged_launch_is_refused() {
        let frame = confined().encode().unwrap();
        let body = &frame[PREFIX_BYTES..];
        for end in 0..body.len() {
            assert_eq!(LaunchRequest::parse(&body[..end]), None, "{end} bytes");
        }
        assert_eq!(LaunchRequest::parse(&[body, b"x"].concat()), None);
        let mut other = body.to_vec();
        other[0] += 1;
        assert_eq!(LaunchRequest::parse(&other), None, "another version");
        for at in 0..body.len() - 3 {
            let mut damaged = body.to_vec();
            damaged[at..at + 4].fill(0xff);
            // A damaged number is another number; a damaged length is refused without a panic.
            let _ = LaunchRequest::parse(&damaged);
        }
        let nothing = LaunchRequest::default().encode().unwrap();
        assert_eq!(LaunchRequest::parse(&nothing[PREFIX_BYTES..]), None, "no program");
    }

    #[test]
    fn a_launch_at_the_limit_is_sent_and_one_byte_more_is_refused() {
        let frame = |size| Writer(vec![0; PREFIX_BYTES + size]).finish();
        assert!(frame(MAX_LAUNCH_BYTES).is_ok());
        assert_eq!(frame(MAX_LAUNCH_BYTES + 1), Err(LaunchTooLarge));
    }
}
