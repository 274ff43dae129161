//! The paged cache of keys and values, in half precision.
//!
//! A block holds `block_size` positions of every layer and KV head:
//! `[layer][kv head]`, then keys as `[position / 16][head_dim][16]` and values as `[position][head_dim]`.

#![expect(
    unsafe_code,
    reason = "threads write positions of one cache at the same time"
)]

use super::ModelShape;
use crate::error::{Error, Result};
use crate::kernels::{CHUNK, KEY_TILE, Kernels, KvTile};
use crate::shared::Shared;

/// Keys and values of all blocks.
pub(crate) struct KvCache {
    num_blocks: usize,
    block_size: usize,
    num_layers: usize,
    num_kv_heads: usize,
    head_dim: usize,
    values: Shared<u16>,
}

/// One KV head of one layer in one block.
#[derive(Clone, Copy)]
pub(crate) struct Slab {
    start: usize,
}

impl KvCache {
    /// A cache of zeros; memory is taken from the system when a block is first written.
    ///
    /// # Errors
    /// [`Error::Shape`] when a size is impossible.
    pub(crate) fn new(shape: &ModelShape, num_blocks: usize, block_size: usize) -> Result<Self> {
        if !(block_size.is_power_of_two() && (KEY_TILE..=CHUNK).contains(&block_size)) {
            return Err(Error::shape(
                "block_size",
                block_size,
                format!("a power of two from {KEY_TILE} to {CHUNK}"),
            ));
        }
        if num_blocks == 0 || u32::try_from(num_blocks).is_err() {
            return Err(Error::shape(
                "num_blocks",
                num_blocks,
                "from 1 to 4294967295",
            ));
        }
        let ModelShape {
            num_layers,
            num_kv_heads,
            head_dim,
            ..
        } = *shape;
        let per_block = 2 * num_layers * num_kv_heads * head_dim * block_size;
        let values = num_blocks
            .checked_mul(per_block)
            .and_then(Shared::try_zeroed);
        let Some(values) = values else {
            let rule = format!(
                "fewer: the system has no memory for blocks of {} bytes",
                2 * per_block
            );
            return Err(Error::shape("num_blocks", num_blocks, rule));
        };
        Ok(Self {
            num_blocks,
            block_size,
            num_layers,
            num_kv_heads,
            head_dim,
            values,
        })
    }

    pub(crate) fn num_blocks(&self) -> usize {
        self.num_blocks
    }

    pub(crate) fn block_size(&self) -> usize {
        self.block_size
    }

    fn slab_len(&self) -> usize {
        2 * self.block_size * self.head_dim
    }

    /// Where a KV head of a layer lies in a block.
    pub(crate) fn slab(&self, block: u32, layer: usize, kv_head: usize) -> Slab {
        let index = (block as usize * self.num_layers + layer) * self.num_kv_heads + kv_head;
        Slab {
            start: index * self.slab_len(),
        }
    }

    /// Stores the key of one position.
    ///
    /// # Safety
    /// Nobody else reads or writes this position of this slab at the same time.
    pub(crate) unsafe fn store_key(
        &self,
        slab: Slab,
        position: usize,
        key: &[f32],
        kernels: &dyn Kernels,
        narrow: &mut [u16],
    ) {
        let narrow = &mut narrow[..self.head_dim];
        kernels.narrow(key, narrow);
        let within = position % self.block_size;
        let tile = slab.start + within / KEY_TILE * self.head_dim * KEY_TILE + within % KEY_TILE;
        for (column, value) in narrow.iter().enumerate() {
            // SAFETY: this number belongs to the position, which is the caller's alone.
            unsafe { self.values.set(tile + column * KEY_TILE, *value) }
        }
    }

    /// Stores the value of one position.
    ///
    /// # Safety
    /// As [`KvCache::store_key`].
    pub(crate) unsafe fn store_value(
        &self,
        slab: Slab,
        position: usize,
        value: &[f32],
        kernels: &dyn Kernels,
    ) {
        let start = slab.start + (self.block_size + position % self.block_size) * self.head_dim;
        // SAFETY: this row belongs to the position, which is the caller's alone.
        let row = unsafe { self.values.get_mut(start..start + self.head_dim) };
        kernels.narrow(value, row);
    }

    /// 16 positions of a slab, from `position` on, a multiple of 16.
    ///
    /// # Safety
    /// Nobody writes to the slab while the result lives.
    pub(crate) unsafe fn tile(&self, slab: Slab, position: usize) -> KvTile<'_> {
        let len = self.head_dim * KEY_TILE;
        let keys = slab.start + position % self.block_size / KEY_TILE * len;
        let values = keys + self.block_size * self.head_dim;
        // SAFETY: promised by the caller for the whole slab.
        unsafe {
            KvTile {
                keys: self.values.get(keys..keys + len),
                values: self.values.get(values..values + len),
            }
        }
    }

    /// Copies whole blocks, in order.
    ///
    /// # Safety
    /// Nobody else uses the cache at the same time.
    ///
    /// # Errors
    /// [`Error::Plan`] when a block does not exist; then nothing is copied.
    pub(crate) unsafe fn copy_blocks(&self, copies: &[(u32, u32)]) -> Result<()> {
        for (index, &(source, target)) in copies.iter().enumerate() {
            if let Some(block) = [source, target]
                .into_iter()
                .find(|block| *block as usize >= self.num_blocks)
            {
                return Err(Error::plan(
                    "block_copies",
                    index,
                    block,
                    format!("below {}", self.num_blocks),
                ));
            }
        }
        let len = self.num_layers * self.num_kv_heads * self.slab_len();
        for &(source, target) in copies.iter().filter(|(source, target)| source != target) {
            let (source, target) = (source as usize * len, target as usize * len);
            // SAFETY: two different blocks, and nobody else uses the cache.
            let (source, target) = unsafe {
                (
                    self.values.get(source..source + len),
                    self.values.get_mut(target..target + len),
                )
            };
            target.copy_from_slice(source);
        }
        Ok(())
    }
}
