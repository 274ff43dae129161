//! Slices for tables that are read at random: on Linux they lie on huge pages where the system has some.
//!
//! With pages of 4 KiB nearly every look into such a table also misses the processor's cache of page addresses.

use std::ops::{Deref, DerefMut};

/// Size of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// Tables below this size stay on ordinary pages.
const MIN_BYTES: usize = 1 << 20;

/// A slice of fixed length; a large one starts at a huge page.
#[derive(Debug)]
pub(crate) struct LargeSlice<T> {
    /// The slice and, before it, items that only fill up the page before.
    items: Vec<T>,
    first: usize,
}

impl<T> LargeSlice<T> {
    /// A slice of `len` items that `make` gives.
    #[must_use]
    pub(crate) fn new(len: usize, make: impl FnMut() -> T) -> Self {
        let is_large =
            len * size_of::<T>() >= MIN_BYTES && HUGE_PAGE.is_multiple_of(size_of::<T>());
        let spare = if is_large {
            HUGE_PAGE / size_of::<T>()
        } else {
            0
        };
        let mut items: Vec<T> = Vec::with_capacity(len + spare);
        let first = if is_large {
            ask_for_huge_pages(&mut items);
            items.as_ptr().align_offset(HUGE_PAGE).min(spare)
        } else {
            0
        };
        items.resize_with(first + len, make);
        Self { items, first }
    }
}

impl<T> Deref for LargeSlice<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.items[self.first..]
    }
}

impl<T> DerefMut for LargeSlice<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[self.first..]
    }
}

/// Asks the system to back the memory of an empty vector, before anything was written to it, with huge pages.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn ask_for_huge_pages<T>(items: &mut Vec<T>) {
    const PAGE: usize = 4096;
    let memory = items.spare_capacity_mut();
    let start = memory.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(PAGE);
    let Some(length) = size_of_val(memory).checked_sub(skipped) else {
        return;
    };
    // SAFETY: the range lies inside the vector's own memory and starts at a page. The advice changes neither its
    // content nor who may use it, and whether the system follows it makes no difference to the program.
    unsafe {
        libc::madvise(start.add(skipped).cast(), length, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages<T>(_items: &mut Vec<T>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_its_items_and_starts_at_a_page_if_large() {
        for len in [0, 1, 1000, 1 << 18, 300_000] {
            let mut slice = LargeSlice::new(len, || 7);
            for (number, item) in slice.iter_mut().enumerate() {
                *item += number as u64;
            }
            assert_eq!(slice.len(), len);
            assert!(slice.iter().copied().eq(7..7 + len as u64));
            if len * 8 >= MIN_BYTES {
                assert_eq!(slice.as_ptr().addr() % HUGE_PAGE, 0);
            }
        }
    }
}
