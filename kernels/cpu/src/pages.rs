//! Zeroed memory for weights, on large pages where the system gives them.

#![expect(unsafe_code, reason = "asks the allocator for aligned memory")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

const LARGE_PAGE: usize = 2 << 20;
const CACHE_LINE: usize = 64;

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
        let pages = Self { start, layout, len };
        pages.advise_large();
        Some(pages)
    }

    #[cfg(target_os = "linux")]
    fn advise_large(&self) {
        if self.layout.align() == LARGE_PAGE {
            let whole = self.len / LARGE_PAGE * LARGE_PAGE;
            // SAFETY: the range lies within this allocation; the advice changes no contents, and a
            // refusal leaves ordinary pages.
            unsafe { libc::madvise(self.start.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn advise_large(&self) {}

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
