//! Memory whose disjoint parts several threads use at the same time.

#![expect(
    unsafe_code,
    reason = "threads write disjoint ranges of one allocation"
)]

use crate::pages::prefer_large_pages;
use std::cell::UnsafeCell;
use std::ops::Range;

/// An array whose callers promise, range by range, that nobody else touches what they write.
pub(crate) struct Shared<T> {
    cells: Box<[UnsafeCell<T>]>,
}

// SAFETY: all access goes through the unsafe methods below, whose callers rule out races.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> From<Box<[T]>> for Shared<T> {
    fn from(values: Box<[T]>) -> Self {
        // SAFETY: `UnsafeCell<T>` has the layout of `T`, so that the slice is the same memory.
        let cells = unsafe { Box::from_raw(Box::into_raw(values) as *mut [UnsafeCell<T>]) };
        Self { cells }
    }
}

impl<T: bytemuck::Zeroable + Copy> Shared<T> {
    /// `len` zeros. Memory that is never written stays untouched, so that it costs nothing.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self::from(bytemuck::zeroed_slice_box(len))
    }

    /// As [`Shared::zeroed`], on large pages where the system gives them; `None` when it does not have
    /// so much.
    pub(crate) fn try_zeroed(len: usize) -> Option<Self> {
        let mut values = bytemuck::try_zeroed_slice_box(len).ok()?;
        prefer_large_pages(&mut values);
        Some(Self::from(values))
    }

    /// Reads a range.
    ///
    /// # Safety
    /// Nobody writes in the range while the result lives.
    pub(crate) unsafe fn get(&self, range: Range<usize>) -> &[T] {
        let cells = &self.cells[range];
        // SAFETY: the cells are initialised, and the caller excludes writers.
        unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), cells.len()) }
    }

    /// Writes a range.
    ///
    /// # Safety
    /// Nobody else reads or writes in the range while the result lives.
    #[expect(
        clippy::mut_from_ref,
        reason = "the caller promises that the range is its own"
    )]
    pub(crate) unsafe fn get_mut(&self, range: Range<usize>) -> &mut [T] {
        let cells = &self.cells[range];
        // SAFETY: the cells are initialised and allow writes, and the caller excludes everybody else.
        unsafe { std::slice::from_raw_parts_mut(UnsafeCell::raw_get(cells.as_ptr()), cells.len()) }
    }

    /// Writes one element, whose neighbours others may be writing.
    ///
    /// # Safety
    /// Nobody else reads or writes this element at the same time.
    pub(crate) unsafe fn set(&self, index: usize, value: T) {
        // SAFETY: the index is checked, and the caller excludes everybody else.
        unsafe { *self.cells[index].get() = value }
    }
}
