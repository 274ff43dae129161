//! Zeroed memory for weights, on large pages where the system gives them.

#![expect(unsafe_code, reason = "asks the allocator for aligned memory")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
#[cfg(all(target_os = "linux", not(miri)))]
use std::ops::Range;

const LARGE_PAGE: usize = 2 << 20;
const CACHE_LINE: usize = 64;

/// Asks for large pages wherever whole ones lie in `memory`: far fewer of them are looked up while
/// weights or a cache stream past.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn prefer_large_pages<T>(memory: &mut [T]) {
    let Range { start, end } = memory.as_mut_ptr_range();
    let first = start.addr().next_multiple_of(LARGE_PAGE);
    let last = end.addr() / LARGE_PAGE * LARGE_PAGE;
    if first < last {
        let address = start.cast::<libc::c_void>().with_addr(first);
        // SAFETY: the range lies within `memory`, which is borrowed mutably; the advice changes no
        // contents, and a refusal leaves ordinary pages.
        unsafe { libc::madvise(address, last - first, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn prefer_large_pages<T>(_memory: &mut [T]) {}

/// Bytes aligned to a cache line, or to 2 MiB where there are enough of them.
pub(crate) struct Pages {
    start: std::ptr::NonNull<u8>,
    layout: Layout,
    len: usize,
}

// SAFETY: the memory belongs to this value alone and is reached through its references.
unsafe impl Send for Pages {}
// SAFETY: as above; a shared reference only reads.
unsafe impl Sync for Pages {}

impl Pages {
    /// `len` zeros; `None` when that is more than memory can hold.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        let align = if len >= LARGE_PAGE {
            LARGE_PAGE
        } else {
            CACHE_LINE
        };
        let layout = Layout::from_size_align(len.max(1), align).ok()?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = std::ptr::NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        let mut pages = Self { start, layout, len };
        prefer_large_pages(pages.bytes_mut());
        Some(pages)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes that live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `bytes`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and not used after this.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
