//! The paged cache of keys and values, in half precision or in 8 bits.
//!
//! A block holds `block_size` positions of every layer and KV head:
//! `[layer][kv head]`, then keys as `[position / 16][head_dim][16]` and values as `[position][head_dim]`.
//! In 8 bits each position has a scale for its key and one for its value beside that:
//! `[layer][kv head]`, then `[position]` of keys and `[position]` of values.

#![expect(
    unsafe_code,
    reason = "threads write positions of one cache at the same time"
)]

use super::ModelShape;
use crate::error::{Error, Result};
use crate::kernels::{CHUNK, KEY_TILE, Kernels, KvTile, Tiles};
use crate::shared::Shared;

/// How keys and values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum KvStorage {
    /// Half precision.
    #[default]
    F16,
    /// 8-bit integers with a scale for each key and each value.
    Int8,
}

impl KvStorage {
    /// The form named `name`.
    ///
    /// # Errors
    /// [`Error::Shape`] when there is no such form.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "float16" => Ok(Self::F16),
            "int8" => Ok(Self::Int8),
            _ => Err(Error::shape("kv_storage", name, "float16 or int8")),
        }
    }
}

/// Keys and values of all blocks.
pub(crate) struct KvCache {
    num_blocks: usize,
    block_size: usize,
    num_layers: usize,
    num_kv_heads: usize,
    head_dim: usize,
    numbers: Numbers,
}

enum Numbers {
    Half(Shared<u16>),
    Byte {
        codes: Shared<i8>,
        scales: Shared<f32>,
    },
}

/// One KV head of one layer in one block.
#[derive(Clone, Copy)]
pub(crate) struct Slab {
    index: usize,
}

impl KvCache {
    /// A cache of zeros; memory is taken from the system when a block is first written.
    ///
    /// # Errors
    /// [`Error::Shape`] when a size is impossible.
    pub(crate) fn new(
        shape: &ModelShape,
        num_blocks: usize,
        block_size: usize,
        storage: KvStorage,
    ) -> Result<Self> {
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
        let positions = num_layers * num_kv_heads * block_size;
        let len = num_blocks.checked_mul(2 * positions * head_dim);
        let numbers = len.and_then(|len| match storage {
            KvStorage::F16 => Shared::try_zeroed(len).map(Numbers::Half),
            KvStorage::Int8 => Some(Numbers::Byte {
                codes: Shared::try_zeroed(len)?,
                scales: Shared::try_zeroed(len / head_dim)?,
            }),
        });
        let Some(numbers) = numbers else {
            let rule = format!(
                "fewer: the system has no memory for blocks of {} numbers",
                2 * positions * head_dim
            );
            return Err(Error::shape("num_blocks", num_blocks, rule));
        };
        Ok(Self {
            num_blocks,
            block_size,
            num_layers,
            num_kv_heads,
            head_dim,
            numbers,
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
        Slab { index }
    }

    /// Where the scale of a position's key lies; that of its value lies a block's size behind it.
    fn scale_index(&self, slab: Slab, position: usize) -> usize {
        2 * slab.index * self.block_size + position % self.block_size
    }

    /// Stores the key of one position; `narrow` has room for it.
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
        let within = position % self.block_size;
        let tile = slab.index * self.slab_len()
            + within / KEY_TILE * self.head_dim * KEY_TILE
            + within % KEY_TILE;
        let narrow = &mut narrow[..self.head_dim];
        match &self.numbers {
            Numbers::Half(values) => {
                kernels.narrow(key, narrow);
                for (column, value) in narrow.iter().enumerate() {
                    // SAFETY: this number belongs to the position, which is the caller's alone.
                    unsafe { values.set(tile + column * KEY_TILE, *value) }
                }
            }
            Numbers::Byte { codes, scales } => {
                let narrow: &mut [i8] = &mut bytemuck::cast_slice_mut(narrow)[..self.head_dim];
                let scale = kernels.narrow_to_bytes(key, narrow);
                // SAFETY: as above.
                unsafe { scales.set(self.scale_index(slab, position), scale) }
                for (column, code) in narrow.iter().enumerate() {
                    // SAFETY: as above.
                    unsafe { codes.set(tile + column * KEY_TILE, *code) }
                }
            }
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
        let row = self.block_size + position % self.block_size;
        let start = slab.index * self.slab_len() + row * self.head_dim;
        let range = start..start + self.head_dim;
        match &self.numbers {
            // SAFETY: this row belongs to the position, which is the caller's alone.
            Numbers::Half(values) => kernels.narrow(value, unsafe { values.get_mut(range) }),
            Numbers::Byte { codes, scales } => {
                // SAFETY: as above.
                let scale = kernels.narrow_to_bytes(value, unsafe { codes.get_mut(range) });
                let index = self.scale_index(slab, position) + self.block_size;
                // SAFETY: as above.
                unsafe { scales.set(index, scale) }
            }
        }
    }

    /// Calls `work` with the tiles of 16 positions that begin at the given positions of slabs.
    ///
    /// # Safety
    /// Nobody writes to the slabs meanwhile.
    pub(crate) unsafe fn with_tiles<T>(
        &self,
        places: impl Iterator<Item = (Slab, usize)>,
        work: impl FnOnce(Tiles<'_>) -> T,
    ) -> T {
        match &self.numbers {
            Numbers::Half(numbers) => {
                let tiles: Vec<_> = places
                    // SAFETY: promised by the caller.
                    .map(|(slab, position)| unsafe { self.tile(slab, position, numbers, None) })
                    .collect();
                work(Tiles::Half(&tiles))
            }
            Numbers::Byte { codes, scales } => {
                let tiles: Vec<_> = places
                    // SAFETY: promised by the caller.
                    .map(|(slab, position)| unsafe {
                        self.tile(slab, position, codes, Some(scales))
                    })
                    .collect();
                work(Tiles::Byte(&tiles))
            }
        }
    }

    /// 16 positions of a slab, from `position` on, a multiple of 16.
    ///
    /// # Safety
    /// Nobody writes to the slab while the result lives.
    unsafe fn tile<'a, N: bytemuck::Pod>(
        &self,
        slab: Slab,
        position: usize,
        numbers: &'a Shared<N>,
        scales: Option<&'a Shared<f32>>,
    ) -> KvTile<'a, N> {
        let len = self.head_dim * KEY_TILE;
        let within = position % self.block_size;
        let keys = slab.index * self.slab_len() + within / KEY_TILE * len;
        let values = keys + self.block_size * self.head_dim;
        let scale = self.scale_index(slab, position);
        let scales_from = |start: usize| {
            // SAFETY: promised by the caller for the whole slab.
            scales.map_or(&[][..], |scales| unsafe {
                scales.get(start..start + KEY_TILE)
            })
        };
        // SAFETY: as above.
        unsafe {
            KvTile {
                keys: numbers.get(keys..keys + len),
                values: numbers.get(values..values + len),
                key_scales: scales_from(scale),
                value_scales: scales_from(scale + self.block_size),
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
            // SAFETY: two different blocks, and nobody else uses the cache.
            unsafe {
                match &self.numbers {
                    Numbers::Half(values) => copy(values, source, target, len),
                    Numbers::Byte { codes, scales } => {
                        copy(codes, source, target, len);
                        copy(scales, source, target, len / self.head_dim);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Copies part `source` of `len` numbers to part `target`.
///
/// # Safety
/// The parts differ, and nobody else uses them at the same time.
unsafe fn copy<T: bytemuck::Pod>(numbers: &Shared<T>, source: u32, target: u32, len: usize) {
    let (source, target) = (source as usize * len, target as usize * len);
    // SAFETY: promised by the caller.
    unsafe {
        let source = numbers.get(source..source + len);
        numbers
            .get_mut(target..target + len)
            .copy_from_slice(source);
    }
}
