//! The start, the memory and the end of a program without libc and without a runtime.
#![expect(unsafe_code, reason = "the program has no runtime below it")]

use core::alloc::{GlobalAlloc, Layout};
use core::arch::global_asm;
use core::panic::PanicInfo;
use core::ptr;

use innkeeper_supervisor::system::exit;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};

/// Exit code if the supervisor could not supervise a server.
const FAILED_EXIT_CODE: i32 = 2;

// The kernel passes the stack pointer alone. The program reads no argument and no variable.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "and rsp, -16",
    "call {main}",
    "ud2",
    main = sym start,
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl _start",
    "_start:",
    "mov x29, #0",
    "mov x30, #0",
    "bl {main}",
    "brk #1",
    main = sym start,
);

extern "C" fn start() -> ! {
    exit(innkeeper_supervisor::run().map_or(FAILED_EXIT_CODE, |()| 0))
}

/// Ends the program; the host then ends the tree.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(FAILED_EXIT_CODE)
}

/// Takes each allocation from the kernel: the supervisor makes some at the start of the server and
/// some in each round of kills.
struct PageAllocator;

#[global_allocator]
static ALLOCATOR: PageAllocator = PageAllocator;

// SAFETY: each allocation is a mapping of its own, whose address is a multiple of the page size.
unsafe impl GlobalAlloc for PageAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping overlaps no other.
        let mapping = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), layout.size(), access, MapFlags::PRIVATE)
        };
        mapping.map_or(ptr::null_mut(), |start| start.cast())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the conditions; the kernel clears a new mapping.
        unsafe { self.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller passes an allocation, which is a whole mapping.
        let _ = unsafe { rustix::mm::munmap(start.cast(), layout.size()) };
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller passes an allocation, which is a whole mapping.
        let moved =
            unsafe { rustix::mm::mremap(start.cast(), layout.size(), size, MremapFlags::MAYMOVE) };
        moved.map_or(ptr::null_mut(), |start| start.cast())
    }
}

// The compiler calls the functions below for copies and comparisons. A volatile access keeps it from
// replacing a loop by a call of the same function. The supervisor copies few bytes.

/// Copies memory that does not overlap.
///
/// # Safety
/// As for `memcpy` of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    for at in 0..count {
        // SAFETY: the caller passes memory of this size.
        unsafe { to.add(at).write_volatile(*from.add(at)) };
    }
    to
}

/// Copies memory that may overlap.
///
/// # Safety
/// As for `memmove` of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    if to.addr().wrapping_sub(from.addr()) >= count {
        // SAFETY: copying upwards overwrites no byte before it is read.
        return unsafe { memcpy(to, from, count) };
    }
    for at in (0..count).rev() {
        // SAFETY: the caller passes memory of this size.
        unsafe { to.add(at).write_volatile(*from.add(at)) };
    }
    to
}

/// Fills memory with a byte.
///
/// # Safety
/// As for `memset` of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
    for at in 0..count {
        // SAFETY: the caller passes memory of this size.
        unsafe { to.add(at).write_volatile(byte as u8) };
    }
    to
}

/// Compares memory.
///
/// # Safety
/// As for `memcmp` of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    for at in 0..count {
        // SAFETY: the caller passes memory of this size.
        let (left, right) =
            unsafe { (left.add(at).read_volatile(), right.add(at).read_volatile()) };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
    }
    0
}

/// Compares memory for equality.
///
/// # Safety
/// As for `bcmp` of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    // SAFETY: the caller keeps the conditions.
    unsafe { memcmp(left, right, count) }
}

/// Returns the length of a C string.
///
/// # Safety
/// As for `strlen` of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: the caller passes a text that ends with a zero.
    while unsafe { text.add(length).read_volatile() } != 0 {
        length += 1;
    }
    length
}
