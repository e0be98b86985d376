//! System calls that `rustix` does not have, or has in a form for other purposes.
//!
//! In the small program, a system call is one instruction. Inside of an ordinary program, libc
//! makes the call.
#![expect(unsafe_code, reason = "`fork`, `execve` and new system calls have no safe interface")]

use alloc::vec::Vec;
use core::ffi::CStr;
use core::ptr;

use rustix::fd::BorrowedFd;
use rustix::io::{self, Errno};
use rustix::process::Pid;

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    Ruleset, SIGNAL_SET_WORDS, install_filter, landlock_version, open_signals, set_blocked_signals,
    set_default_action,
};

/// The arguments and the environment of a program, in the form of the kernel.
#[derive(Debug)]
pub struct ProgramVectors<'a> {
    program: &'a CStr,
    arguments: Vec<*const u8>,
    environment: Vec<*const u8>,
    strings: core::marker::PhantomData<&'a CStr>,
}

impl<'a> ProgramVectors<'a> {
    /// Prepares the vectors. The program is its first argument; `None` without a program.
    pub fn new(arguments: &[&'a CStr], environment: &[&'a CStr]) -> Option<Self> {
        let vector = |texts: &[&CStr]| -> Vec<*const u8> {
            let texts = texts.iter().map(|text| text.as_ptr().cast());
            texts.chain([ptr::null()]).collect()
        };
        Some(Self {
            program: arguments.first()?,
            arguments: vector(arguments),
            environment: vector(environment),
            strings: core::marker::PhantomData,
        })
    }

    /// Replaces this program; returns the reason if that fails. Searches no directory, and passes no
    /// file to a shell.
    pub fn execute(&self) -> Errno {
        // SAFETY: both vectors end with a null pointer, and their strings live as long as `self`.
        unsafe { raw::execve(self.program, self.arguments.as_ptr(), self.environment.as_ptr()) }
    }
}

/// The process after a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The new process.
    Child,
    /// The process that forked, with the id of the new process.
    Parent(Pid),
}

/// Makes a copy of this process.
///
/// # Errors
/// The system has no memory or no process id left.
///
/// # Safety
/// In a process with several threads, the child may only execute a program or exit, and may not
/// allocate.
pub unsafe fn fork() -> io::Result<Forked> {
    // SAFETY: the caller keeps the conditions.
    let pid = unsafe { raw::fork() }?;
    Ok(Pid::from_raw(pid).map_or(Forked::Child, Forked::Parent))
}

/// Ends this process at once, without destructors.
pub fn exit(code: i32) -> ! {
    raw::exit(code)
}

/// Opens a pipe whose ends the server does not inherit.
pub(crate) fn open_pipe() -> io::Result<(rustix::fd::OwnedFd, rustix::fd::OwnedFd)> {
    #[cfg(target_os = "linux")]
    return rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
    #[cfg(not(target_os = "linux"))]
    {
        let (reader, writer) = rustix::pipe::pipe()?;
        for end in [&reader, &writer] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
        }
        Ok((reader, writer))
    }
}

/// Returns standard input, which the host opened for the supervisor.
pub(crate) fn standard_input() -> BorrowedFd<'static> {
    // SAFETY: no code of the supervisor closes standard input. A closed one only makes calls fail.
    unsafe { BorrowedFd::borrow_raw(0) }
}

/// Returns the milliseconds of a clock that no one sets.
pub(crate) fn clock_milliseconds() -> u64 {
    let (seconds, nanoseconds) = raw::monotonic_clock();
    seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000)
}

/// Opens the process that connected a Unix socket, also after the end of the process.
///
/// # Errors
/// The kernel is older than Linux 6.5 (`NOPROTOOPT`), or nothing is left of the process.
#[cfg(all(target_os = "linux", not(innkeeper_freestanding)))]
pub fn open_peer(socket: BorrowedFd<'_>) -> io::Result<rustix::fd::OwnedFd> {
    raw::open_peer(socket)
}

/// Marks every descriptor from this number on, so that the server does not inherit it.
///
/// # Errors
/// The kernel is older than Linux 5.11.
#[cfg(target_os = "linux")]
pub(crate) fn close_range_on_exec(first: i32) -> io::Result<()> {
    linux::close_range_on_exec(first.unsigned_abs())
}

/// Marks a descriptor, so that the server does not inherit it; has no effect on a closed one.
pub(crate) fn close_on_exec(descriptor: i32) {
    // SAFETY: the borrow lasts for one call, which a closed descriptor only makes fail.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let _ = io::fcntl_setfd(descriptor, io::FdFlags::CLOEXEC);
}

#[cfg(target_os = "linux")]
mod linux {
    use core::mem::size_of;
    use core::ptr;

    use linux_raw_sys::general::{
        __NR_close_range, __NR_landlock_add_rule, __NR_landlock_create_ruleset,
        __NR_landlock_restrict_self, __NR_rt_sigaction, __NR_rt_sigprocmask, __NR_seccomp,
        __NR_signalfd4, O_CLOEXEC, O_NONBLOCK, SIG_SETMASK,
    };
    use linux_raw_sys::landlock::{
        LANDLOCK_CREATE_RULESET_VERSION, landlock_path_beneath_attr, landlock_rule_type,
        landlock_ruleset_attr,
    };
    use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
    use rustix::io::{self, Errno};
    use rustix::process::Signal;

    use super::raw::system_call;
    use crate::launch_request::HandledRights;

    /// Number of words in the kernel's set of signals.
    pub(crate) const SIGNAL_SET_WORDS: usize =
        if cfg!(any(target_arch = "mips", target_arch = "mips64")) { 2 } else { 1 };
    const SIGNAL_SET_BYTES: usize = SIGNAL_SET_WORDS * size_of::<u64>();

    /// `CLOSE_RANGE_CLOEXEC` (close_range(2)).
    const CLOSE_RANGE_CLOEXEC: usize = 4;

    /// `SECCOMP_SET_MODE_FILTER` (seccomp(2)).
    const SECCOMP_SET_MODE_FILTER: usize = 1;

    /// Bytes of one instruction of a filter (`sock_filter`).
    const FILTER_INSTRUCTION_BYTES: usize = 8;

    /// Words of a signal's action (`sigaction` of the kernel) on every architecture, and more.
    const ACTION_WORDS: usize = 16;

    fn address<T>(value: &T) -> usize {
        ptr::from_ref(value).expose_provenance()
    }

    /// Takes a descriptor that the kernel has just made.
    fn owned(descriptor: usize) -> io::Result<OwnedFd> {
        let number = i32::try_from(descriptor).map_err(|_| Errno::BADF)?;
        // SAFETY: the kernel returned a new descriptor that nothing else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(number) })
    }

    fn number(descriptor: BorrowedFd<'_>) -> usize {
        // A borrowed descriptor is not negative.
        descriptor.as_raw_fd().unsigned_abs() as usize
    }

    pub(super) fn close_range_on_exec(first: u32) -> io::Result<()> {
        let arguments = [first as usize, u32::MAX as usize, CLOSE_RANGE_CLOEXEC, 0];
        // SAFETY: the call changes a flag of descriptors and no memory.
        unsafe { system_call(__NR_close_range, arguments) }?;
        Ok(())
    }

    /// Blocks exactly these signals: a blocked signal waits until a [descriptor](open_signals) reads
    /// it.
    pub(crate) fn set_blocked_signals(signals: &[u64; SIGNAL_SET_WORDS]) -> io::Result<()> {
        let arguments = [SIG_SETMASK as usize, address(signals), 0, SIGNAL_SET_BYTES];
        // SAFETY: the kernel reads the set, which has the given size.
        unsafe { system_call(__NR_rt_sigprocmask, arguments) }?;
        Ok(())
    }

    /// Opens a descriptor that is readable while one of these blocked signals waits.
    pub(crate) fn open_signals(signals: &[u64; SIGNAL_SET_WORDS]) -> io::Result<OwnedFd> {
        let flags = (O_CLOEXEC | O_NONBLOCK) as usize;
        let arguments = [usize::MAX, address(signals), SIGNAL_SET_BYTES, flags];
        // SAFETY: the kernel reads the set, which has the given size.
        owned(unsafe { system_call(__NR_signalfd4, arguments) }?)
    }

    /// Sets the default action of a signal, which the host may ignore or handle.
    pub(crate) fn set_default_action(signal: Signal) -> io::Result<()> {
        // The default action has only zeros, whatever the order of the fields.
        let action = [0_usize; ACTION_WORDS];
        let signal = signal.as_raw().unsigned_abs() as usize;
        let arguments = [signal, address(&action), 0, SIGNAL_SET_BYTES];
        // SAFETY: the kernel reads the action, which is at least as large as the kernel's structure.
        unsafe { system_call(__NR_rt_sigaction, arguments) }?;
        Ok(())
    }

    pub(crate) fn landlock_version() -> io::Result<usize> {
        let arguments = [0, 0, LANDLOCK_CREATE_RULESET_VERSION as usize, 0];
        // SAFETY: with this flag, the kernel reads no memory.
        unsafe { system_call(__NR_landlock_create_ruleset, arguments) }
    }

    /// The rules of a sandbox.
    #[derive(Debug)]
    pub(crate) struct Ruleset(OwnedFd);

    impl Ruleset {
        pub(crate) fn new(handled: HandledRights) -> io::Result<Self> {
            let attributes = landlock_ruleset_attr {
                handled_access_fs: handled.files,
                handled_access_net: handled.network,
                scoped: handled.scopes,
            };
            let size = size_of::<landlock_ruleset_attr>();
            let arguments = [address(&attributes), size, 0, 0];
            // SAFETY: the kernel reads the attributes, which have the given size.
            owned(unsafe { system_call(__NR_landlock_create_ruleset, arguments) }?).map(Self)
        }

        /// Permits rights on a file, or on a directory with its whole content.
        pub(crate) fn permit(&self, rights: u64, path: BorrowedFd<'_>) -> io::Result<()> {
            let attributes =
                landlock_path_beneath_attr { allowed_access: rights, parent_fd: path.as_raw_fd() };
            let kind = landlock_rule_type::LANDLOCK_RULE_PATH_BENEATH as usize;
            let attributes = ptr::from_ref(&attributes).expose_provenance();
            let arguments = [number(rustix::fd::AsFd::as_fd(&self.0)), kind, attributes, 0];
            // SAFETY: the kernel reads the attributes of the rule's type.
            unsafe { system_call(__NR_landlock_add_rule, arguments) }?;
            Ok(())
        }

        /// Restricts this process and everything that it starts.
        pub(crate) fn restrict_self(&self) -> io::Result<()> {
            let arguments = [number(rustix::fd::AsFd::as_fd(&self.0)), 0, 0, 0];
            // SAFETY: the call reads no memory.
            unsafe { system_call(__NR_landlock_restrict_self, arguments) }?;
            Ok(())
        }
    }

    /// The kernel's `sock_fprog`.
    #[repr(C)]
    struct FilterProgram {
        instructions: u16,
        filter: *const u8,
    }

    /// Installs a filter of system calls for this process and everything that it starts.
    pub(crate) fn install_filter(filter: &[u8]) -> io::Result<()> {
        if filter.is_empty() || !filter.len().is_multiple_of(FILTER_INSTRUCTION_BYTES) {
            return Err(Errno::INVAL);
        }
        let instructions = filter.len() / FILTER_INSTRUCTION_BYTES;
        let instructions = u16::try_from(instructions).map_err(|_| Errno::INVAL)?;
        let program = FilterProgram { instructions, filter: filter.as_ptr() };
        let arguments =
            [SECCOMP_SET_MODE_FILTER, 0, ptr::from_ref(&program).expose_provenance(), 0];
        // SAFETY: the kernel copies as many instructions as the filter has, from any alignment.
        unsafe { system_call(__NR_seccomp, arguments) }?;
        Ok(())
    }
}

#[cfg(innkeeper_freestanding)]
mod raw {
    use core::arch::asm;
    use core::ffi::CStr;
    use core::ptr;

    use linux_raw_sys::general::{
        __NR_clock_gettime, __NR_clone, __NR_execve, __NR_exit_group, CLOCK_MONOTONIC, SIGCHLD,
    };
    use rustix::io::{self, Errno};

    /// Largest error number that a system call returns, negated.
    const MAX_ERRNO: usize = 4095;

    /// Makes a system call.
    ///
    /// # Safety
    /// The arguments are valid for the call.
    pub(super) unsafe fn system_call(number: u32, arguments: [usize; 4]) -> io::Result<usize> {
        // SAFETY: the caller passes valid arguments.
        let result = unsafe {
            call([number as usize, arguments[0], arguments[1], arguments[2], arguments[3], 0])
        };
        if result > usize::MAX - MAX_ERRNO {
            return Err(Errno::from_raw_os_error(result.wrapping_neg() as i32));
        }
        Ok(result)
    }

    #[cfg(target_arch = "x86_64")]
    unsafe fn call([number, a, b, c, d, e]: [usize; 6]) -> usize {
        let result;
        // SAFETY: the kernel changes the named registers and the memory that the arguments name.
        unsafe {
            asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c,
                 in("r10") d, in("r8") e, lateout("rcx") _, lateout("r11") _, options(nostack));
        }
        result
    }

    #[cfg(target_arch = "aarch64")]
    unsafe fn call([number, a, b, c, d, e]: [usize; 6]) -> usize {
        let result;
        // SAFETY: the kernel changes the result's register and the memory that the arguments name.
        unsafe {
            asm!("svc 0", in("x8") number, inlateout("x0") a => result, in("x1") b, in("x2") c,
                 in("x3") d, in("x4") e, options(nostack));
        }
        result
    }

    pub(super) unsafe fn fork() -> io::Result<i32> {
        // SAFETY: without flags, `clone` copies the process as `fork` does.
        let pid = unsafe { system_call(__NR_clone, [SIGCHLD as usize, 0, 0, 0]) }?;
        i32::try_from(pid).map_err(|_| Errno::INVAL)
    }

    pub(super) unsafe fn execve(
        program: &CStr,
        arguments: *const *const u8,
        environment: *const *const u8,
    ) -> Errno {
        let call = [
            program.as_ptr().expose_provenance(),
            arguments.expose_provenance(),
            environment.expose_provenance(),
            0,
        ];
        // SAFETY: the caller passes vectors that end with a null pointer.
        unsafe { system_call(__NR_execve, call) }.err().unwrap_or(Errno::INVAL)
    }

    pub(super) fn exit(code: i32) -> ! {
        loop {
            // SAFETY: the call ends the process.
            let _ =
                unsafe { system_call(__NR_exit_group, [code.cast_unsigned() as usize, 0, 0, 0]) };
        }
    }

    pub(super) fn monotonic_clock() -> (u64, u64) {
        let mut time = [0_u64; 2];
        let arguments =
            [CLOCK_MONOTONIC as usize, ptr::from_mut(&mut time).expose_provenance(), 0, 0];
        // SAFETY: the kernel writes two words on a 64-bit system.
        let _ = unsafe { system_call(__NR_clock_gettime, arguments) };
        (time[0], time[1])
    }
}

#[cfg(not(innkeeper_freestanding))]
mod raw {
    use core::ffi::CStr;

    use rustix::io::{self, Errno};

    /// Returns the error of the last call of libc in this thread.
    fn last_error() -> Errno {
        #[cfg(target_os = "linux")]
        // SAFETY: libc returns the address of this thread's error number.
        let location = unsafe { libc::__errno_location() };
        #[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
        // SAFETY: libc returns the address of this thread's error number.
        let location = unsafe { libc::__error() };
        #[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
        // SAFETY: libc returns the address of this thread's error number.
        let location = unsafe { libc::__errno() };
        // SAFETY: the address is valid as long as the thread.
        Errno::from_raw_os_error(unsafe { *location })
    }

    /// Makes a system call.
    ///
    /// # Safety
    /// The arguments are valid for the call.
    #[cfg(target_os = "linux")]
    pub(super) unsafe fn system_call(number: u32, [a, b, c, d]: [usize; 4]) -> io::Result<usize> {
        let number = libc::c_long::from(number.cast_signed());
        // SAFETY: the caller passes valid arguments; the last one is unused.
        let result = unsafe { libc::syscall(number, a, b, c, d, 0_usize) };
        usize::try_from(result).map_err(|_| last_error())
    }

    pub(super) unsafe fn fork() -> io::Result<i32> {
        // SAFETY: the caller keeps the conditions of the child.
        let pid = unsafe { libc::fork() };
        if pid < 0 { Err(last_error()) } else { Ok(pid) }
    }

    pub(super) unsafe fn execve(
        program: &CStr,
        arguments: *const *const u8,
        environment: *const *const u8,
    ) -> Errno {
        // SAFETY: the caller passes vectors that end with a null pointer.
        unsafe { libc::execve(program.as_ptr(), arguments.cast(), environment.cast()) };
        last_error()
    }

    #[cfg(target_os = "linux")]
    pub(super) fn open_peer(socket: rustix::fd::BorrowedFd<'_>) -> io::Result<rustix::fd::OwnedFd> {
        use rustix::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

        /// `SO_PEERPIDFD` (unix(7)).
        const PEER_PROCESS: libc::c_int = 77;

        let mut descriptor: libc::c_int = -1;
        let mut size = core::mem::size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the kernel writes one descriptor and its size.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                PEER_PROCESS,
                core::ptr::from_mut(&mut descriptor).cast(),
                &raw mut size,
            )
        };
        if result < 0 {
            return Err(last_error());
        }
        if descriptor < 0 {
            return Err(Errno::BADF);
        }
        // SAFETY: the kernel returned a new descriptor that nothing else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    pub(super) fn exit(code: i32) -> ! {
        // SAFETY: the call ends the process.
        unsafe { libc::_exit(code) }
    }

    pub(super) fn monotonic_clock() -> (u64, u64) {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        (time.tv_sec.unsigned_abs(), u64::try_from(time.tv_nsec).unwrap_or(0))
    }
}
