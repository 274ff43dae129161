//! A weight matrix, repacked once from the bytes of a model file.

use crate::error::{Error, Result};
use crate::format::{GROUP, Packing, Storage};
use crate::pages::Pages;

/// The bytes of one matrix as they lie in a model file.
#[derive(Clone, Copy)]
pub struct RawMatrix<'a> {
    /// For error messages.
    pub name: &'a str,
    /// How the numbers are stored.
    pub storage: Storage,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub columns: usize,
    /// Rows one after the other, blocks along the columns.
    pub data: &'a [u8],
    /// n > 0: the rows of n heads are stored for rotation of neighbouring pairs.
    pub num_interleaved_heads: usize,
}

/// Weights of a linear layer: y = x W^T.
pub struct PackedMatrix {
    storage: Storage,
    rows: usize,
    columns: usize,
    blocks_per_group: usize,
    pages: Pages,
}

/// Calls `$integer` with `$format` as the integer format of a storage, or `$float` as the float format.
macro_rules! with_format {
    ($storage:expr, $format:ident => $integer:expr, $float:expr) => {{
        use $crate::format::{Bf16, F16, F32, K4, K5, K6, Q4Offset, Q4Symmetric, Q8, Storage};
        macro_rules! run {
            ($type:ident, $body:expr) => {{
                type $format = $type;
                $body
            }};
        }
        match $storage {
            Storage::F32 => run!(F32, $float),
            Storage::F16 => run!(F16, $float),
            Storage::Bf16 => run!(Bf16, $float),
            Storage::Q4_0 => run!(Q4Symmetric, $integer),
            Storage::Q4_1 => run!(Q4Offset, $integer),
            Storage::Q8_0 => run!(Q8, $integer),
            Storage::Q4K => run!(K4, $integer),
            Storage::Q5K => run!(K5, $integer),
            Storage::Q6K => run!(K6, $integer),
        }
    }};
}
pub(crate) use with_format;

impl PackedMatrix {
    /// Repacks a matrix with `num_threads` threads.
    ///
    /// # Errors
    /// [`Error::Tensor`] when the bytes do not fit the shape or a scale is not finite.
    pub fn pack(raw: &RawMatrix<'_>, num_threads: usize) -> Result<Self> {
        let row_bytes = check(raw)?;
        with_format!(raw.storage, F => pack_as::<F>(raw, row_bytes, num_threads), pack_as::<F>(raw, row_bytes, num_threads))
    }

    /// Outputs.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Inputs.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes of memory that the weights take.
    #[must_use]
    pub fn num_bytes(&self) -> usize {
        self.pages.bytes().len()
    }

    pub(crate) fn storage(&self) -> Storage {
        self.storage
    }

    /// Groups of 16 rows; the last may hold fewer.
    pub(crate) fn num_groups(&self) -> usize {
        self.rows.div_ceil(GROUP)
    }

    /// The blocks of one group, along the columns.
    pub(crate) fn group<F: Packing>(&self, group: usize) -> &[F::Block] {
        let blocks: &[F::Block] = bytemuck::cast_slice(self.pages.bytes());
        &blocks[group * self.blocks_per_group..][..self.blocks_per_group]
    }
}

/// Bytes of one row, where shape and data agree.
fn check(raw: &RawMatrix<'_>) -> Result<usize> {
    let fail = |problem: String| Err(Error::tensor(raw.name, problem));
    let (rows, columns, unit) = (raw.rows, raw.columns, raw.storage.block_columns());
    if rows == 0 || columns == 0 {
        return fail(format!(
            "its shape is {rows} x {columns}, but both must be at least 1"
        ));
    }
    if !columns.is_multiple_of(unit) {
        return fail(format!(
            "it has {columns} columns, but {:?} needs a multiple of {unit}",
            raw.storage
        ));
    }
    let row_bytes = columns / unit * raw.storage.block_bytes();
    if row_bytes.checked_mul(rows) != Some(raw.data.len()) {
        let got = raw.data.len();
        return fail(format!(
            "it holds {got} bytes, but {rows} rows of {row_bytes} bytes are due; the file is damaged"
        ));
    }
    let heads = raw.num_interleaved_heads;
    if heads > 0 && (!rows.is_multiple_of(heads) || !(rows / heads).is_multiple_of(2)) {
        return fail(format!(
            "its {rows} rows cannot be {heads} heads of an even size"
        ));
    }
    Ok(row_bytes)
}

/// The file's row that stands at `row` once every head has its first halves before its second halves.
pub(crate) fn source_row(num_rows: usize, num_interleaved_heads: usize, row: usize) -> usize {
    if num_interleaved_heads == 0 {
        return row;
    }
    let head_dim = num_rows / num_interleaved_heads;
    let (head, within) = (row / head_dim, row % head_dim);
    let (half, pair) = (within / (head_dim / 2), within % (head_dim / 2));
    head * head_dim + 2 * pair + half
}

fn pack_as<F: Packing>(
    raw: &RawMatrix<'_>,
    row_bytes: usize,
    num_threads: usize,
) -> Result<PackedMatrix> {
    let blocks_per_group = raw.columns / raw.storage.block_columns();
    let num_groups = raw.rows.div_ceil(GROUP);
    let num_bytes = num_groups
        .checked_mul(blocks_per_group)
        .and_then(|n| n.checked_mul(size_of::<F::Block>()));
    let Some(mut pages) = num_bytes.and_then(Pages::zeroed) else {
        return Err(Error::tensor(raw.name, "it is larger than memory can be"));
    };
    let blocks: &mut [F::Block] = bytemuck::cast_slice_mut(pages.bytes_mut());
    let groups_per_thread = num_groups.div_ceil(num_threads.max(1));
    std::thread::scope(|scope| {
        let parts = blocks
            .chunks_mut(groups_per_thread * blocks_per_group)
            .enumerate();
        let tasks: Vec<_> = parts
            .map(|(part, blocks)| {
                let first = part * groups_per_thread;
                scope.spawn(move || {
                    pack_groups::<F>(raw, row_bytes, first, blocks, blocks_per_group)
                })
            })
            .collect();
        tasks.into_iter().try_for_each(|task| {
            task.join()
                .unwrap_or_else(|_| Err(Error::tensor(raw.name, "packing stopped unexpectedly")))
        })
    })?;
    Ok(PackedMatrix {
        storage: raw.storage,
        rows: raw.rows,
        columns: raw.columns,
        blocks_per_group,
        pages,
    })
}

fn pack_groups<F: Packing>(
    raw: &RawMatrix<'_>,
    row_bytes: usize,
    first_group: usize,
    blocks: &mut [F::Block],
    blocks_per_group: usize,
) -> Result<()> {
    let block_bytes = raw.storage.block_bytes();
    for (offset, group) in blocks.chunks_exact_mut(blocks_per_group).enumerate() {
        let first_row = (first_group + offset) * GROUP;
        let rows: [Option<&[u8]>; GROUP] = std::array::from_fn(|lane| {
            let row = first_row + lane;
            (row < raw.rows).then(|| {
                &raw.data[source_row(raw.rows, raw.num_interleaved_heads, row) * row_bytes..]
                    [..row_bytes]
            })
        });
        for (index, block) in group.iter_mut().enumerate() {
            let sources = rows.map(|row| row.map(|row| &row[index * block_bytes..][..block_bytes]));
            F::pack(&sources, block).map_err(|lane| {
                let row = source_row(raw.rows, raw.num_interleaved_heads, first_row + lane);
                Error::tensor(
                    raw.name,
                    format!("block {index} of row {row} holds a number that is not finite"),
                )
            })?;
        }
    }
    Ok(())
}
