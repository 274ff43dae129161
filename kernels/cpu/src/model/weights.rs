//! The weights of a model, gathered tensor by tensor.

use super::ModelShape;
use crate::error::{Error, Result};
use crate::format::Storage;
use crate::matrix::{PackedMatrix, RawMatrix, source_row};
use half::{bf16, f16};

/// A tensor as it lies in a model file.
#[derive(Clone, Copy)]
pub struct RawTensor<'a> {
    /// Canonical name, like `layers.3.q_proj`.
    pub name: &'a str,
    /// Spelling of its storage, like `q4_1` or `f32`.
    pub storage: &'a str,
    /// One or two sizes.
    pub shape: &'a [usize],
    /// Its bytes.
    pub data: &'a [u8],
    /// n > 0: the rows of n heads are stored for rotation of neighbouring pairs.
    pub num_interleaved_heads: usize,
}

/// Weights of one layer.
#[derive(Default)]
pub(crate) struct Layer<M = PackedMatrix, V = Vec<f32>> {
    pub(crate) attn_norm: V,
    pub(crate) q_proj: M,
    pub(crate) k_proj: M,
    pub(crate) v_proj: M,
    pub(crate) q_bias: Option<Vec<f32>>,
    pub(crate) k_bias: Option<Vec<f32>>,
    pub(crate) v_bias: Option<Vec<f32>>,
    pub(crate) q_norm: Option<Vec<f32>>,
    pub(crate) k_norm: Option<Vec<f32>>,
    pub(crate) o_proj: M,
    pub(crate) mlp_norm: V,
    pub(crate) gate_proj: M,
    pub(crate) up_proj: M,
    pub(crate) down_proj: M,
}

impl Layer {
    fn matrices(&self) -> [&PackedMatrix; 7] {
        [
            &self.q_proj,
            &self.k_proj,
            &self.v_proj,
            &self.o_proj,
            &self.gate_proj,
            &self.up_proj,
            &self.down_proj,
        ]
    }
}

/// A layer while tensors arrive.
type PartialLayer = Layer<Option<PackedMatrix>, Option<Vec<f32>>>;

/// A complete model.
pub struct Weights {
    pub(crate) shape: ModelShape,
    pub(crate) embed_tokens: PackedMatrix,
    pub(crate) final_norm: Vec<f32>,
    pub(crate) lm_head: Option<PackedMatrix>,
    pub(crate) layers: Vec<Layer>,
}

impl Weights {
    /// The output head: its own matrix, or the embeddings.
    pub(crate) fn head(&self) -> &PackedMatrix {
        self.lm_head.as_ref().unwrap_or(&self.embed_tokens)
    }

    fn matrices(&self) -> impl Iterator<Item = &PackedMatrix> {
        std::iter::once(&self.embed_tokens)
            .chain(&self.lm_head)
            .chain(self.layers.iter().flat_map(Layer::matrices))
    }

    /// Bytes of memory that matrices take.
    #[must_use]
    pub fn num_bytes(&self) -> usize {
        self.matrices().map(PackedMatrix::num_bytes).sum()
    }

    /// Whether some matrix is multiplied with floats.
    pub(crate) fn has_floats(&self) -> bool {
        self.matrices().any(|matrix| matrix.storage().is_float())
    }
}

/// Takes tensors in any order and repacks each at once.
pub struct WeightsBuilder {
    shape: ModelShape,
    num_threads: usize,
    embed_tokens: Option<PackedMatrix>,
    final_norm: Option<Vec<f32>>,
    lm_head: Option<PackedMatrix>,
    layers: Vec<PartialLayer>,
}

impl WeightsBuilder {
    /// A builder that repacks with `num_threads` threads.
    ///
    /// # Errors
    /// [`Error::Shape`] when no kernels exist for the shape.
    pub fn new(shape: ModelShape, num_threads: usize) -> Result<Self> {
        shape.check()?;
        let layers = (0..shape.num_layers)
            .map(|_| PartialLayer::default())
            .collect();
        Ok(Self {
            shape,
            num_threads,
            embed_tokens: None,
            final_norm: None,
            lm_head: None,
            layers,
        })
    }

    /// Takes one tensor.
    ///
    /// # Errors
    /// [`Error::Tensor`] when its name, storage, shape or data is not what the model needs.
    pub fn insert(&mut self, raw: &RawTensor<'_>) -> Result<()> {
        let shape = &self.shape;
        let threads = self.num_threads;
        let hidden = shape.hidden_size;
        match raw.name {
            "embed_tokens" => {
                self.embed_tokens = Some(matrix(raw, shape.vocab_size, hidden, threads)?);
            }
            "lm_head" => self.lm_head = Some(matrix(raw, shape.vocab_size, hidden, threads)?),
            "final_norm" => self.final_norm = Some(vector(raw, hidden)?),
            name => {
                let unknown = || Error::tensor(name, "this model has no tensor of that name");
                let (index, field) = name
                    .strip_prefix("layers.")
                    .and_then(|rest| rest.split_once('.'))
                    .ok_or_else(unknown)?;
                let index: usize = index.parse().map_err(|_| unknown())?;
                let layer = self.layers.get_mut(index).ok_or_else(unknown)?;
                let (queries, keys) = (shape.attention_size(), shape.num_kv_heads * shape.head_dim);
                let inner = shape.intermediate_size;
                match field {
                    "attn_norm" => layer.attn_norm = Some(vector(raw, hidden)?),
                    "q_proj" => layer.q_proj = Some(matrix(raw, queries, hidden, threads)?),
                    "k_proj" => layer.k_proj = Some(matrix(raw, keys, hidden, threads)?),
                    "v_proj" => layer.v_proj = Some(matrix(raw, keys, hidden, threads)?),
                    "q_bias" => layer.q_bias = Some(vector(raw, queries)?),
                    "k_bias" => layer.k_bias = Some(vector(raw, keys)?),
                    "v_bias" => layer.v_bias = Some(vector(raw, keys)?),
                    "q_norm" => layer.q_norm = Some(vector(raw, shape.head_dim)?),
                    "k_norm" => layer.k_norm = Some(vector(raw, shape.head_dim)?),
                    "o_proj" => layer.o_proj = Some(matrix(raw, hidden, queries, threads)?),
                    "mlp_norm" => layer.mlp_norm = Some(vector(raw, hidden)?),
                    "gate_proj" => layer.gate_proj = Some(matrix(raw, inner, hidden, threads)?),
                    "up_proj" => layer.up_proj = Some(matrix(raw, inner, hidden, threads)?),
                    "down_proj" => layer.down_proj = Some(matrix(raw, hidden, inner, threads)?),
                    _ => return Err(unknown()),
                }
            }
        }
        Ok(())
    }

    /// The model, once every tensor was given.
    ///
    /// # Errors
    /// [`Error::Tensor`] naming the first that is missing.
    pub fn finish(self) -> Result<Weights> {
        let layers = self
            .layers
            .into_iter()
            .enumerate()
            .map(|(index, layer)| finish_layer(index, layer));
        Ok(Weights {
            layers: layers.collect::<Result<_>>()?,
            shape: self.shape,
            embed_tokens: present("embed_tokens", self.embed_tokens)?,
            final_norm: present("final_norm", self.final_norm)?,
            lm_head: self.lm_head,
        })
    }
}

fn present<T>(name: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::tensor(name, "it is missing from the model file"))
}

fn finish_layer(index: usize, layer: PartialLayer) -> Result<Layer> {
    let name = |field: &str| format!("layers.{index}.{field}");
    Ok(Layer {
        attn_norm: present(&name("attn_norm"), layer.attn_norm)?,
        q_proj: present(&name("q_proj"), layer.q_proj)?,
        k_proj: present(&name("k_proj"), layer.k_proj)?,
        v_proj: present(&name("v_proj"), layer.v_proj)?,
        q_bias: layer.q_bias,
        k_bias: layer.k_bias,
        v_bias: layer.v_bias,
        q_norm: layer.q_norm,
        k_norm: layer.k_norm,
        o_proj: present(&name("o_proj"), layer.o_proj)?,
        mlp_norm: present(&name("mlp_norm"), layer.mlp_norm)?,
        gate_proj: present(&name("gate_proj"), layer.gate_proj)?,
        up_proj: present(&name("up_proj"), layer.up_proj)?,
        down_proj: present(&name("down_proj"), layer.down_proj)?,
    })
}

fn check_shape(raw: &RawTensor<'_>, expected: &[usize]) -> Result<()> {
    if raw.shape == expected {
        return Ok(());
    }
    Err(Error::tensor(
        raw.name,
        format!("its shape is {:?}, but {expected:?} is due", raw.shape),
    ))
}

fn matrix(
    raw: &RawTensor<'_>,
    rows: usize,
    columns: usize,
    num_threads: usize,
) -> Result<PackedMatrix> {
    check_shape(raw, &[rows, columns])?;
    let Some(storage) = Storage::from_name(raw.storage) else {
        let problem = format!(
            "its storage {:?} is not covered by the native operators; use the torch backend",
            raw.storage
        );
        return Err(Error::tensor(raw.name, problem));
    };
    PackedMatrix::pack(&raw_matrix(raw, storage, rows, columns), num_threads)
}

fn raw_matrix<'a>(
    raw: &RawTensor<'a>,
    storage: Storage,
    rows: usize,
    columns: usize,
) -> RawMatrix<'a> {
    let RawTensor {
        name,
        data,
        num_interleaved_heads,
        ..
    } = *raw;
    RawMatrix {
        name,
        storage,
        rows,
        columns,
        data,
        num_interleaved_heads,
    }
}

/// A norm or bias as floats.
fn vector(raw: &RawTensor<'_>, len: usize) -> Result<Vec<f32>> {
    check_shape(raw, &[len])?;
    let halves = |widen: fn(u16) -> f32| {
        let (pairs, rest) = raw.data.as_chunks::<2>();
        rest.is_empty().then(|| {
            pairs
                .iter()
                .map(|pair| widen(u16::from_le_bytes(*pair)))
                .collect::<Vec<f32>>()
        })
    };
    let values = match raw.storage {
        "f32" => {
            let (words, rest) = raw.data.as_chunks::<4>();
            rest.is_empty()
                .then(|| words.iter().map(|word| f32::from_le_bytes(*word)).collect())
        }
        "f16" => halves(|bits| f16::from_bits(bits).to_f32()),
        "bf16" => halves(|bits| bf16::from_bits(bits).to_f32()),
        other => {
            return Err(Error::tensor(
                raw.name,
                format!("its storage is {other:?}, but f32, f16 or bf16 is due"),
            ));
        }
    };
    let Some(values) = values.filter(|values| values.len() == len) else {
        let got = raw.data.len();
        return Err(Error::tensor(
            raw.name,
            format!("it holds {got} bytes, too few or many for {len} numbers; the file is damaged"),
        ));
    };
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        return Err(Error::tensor(
            raw.name,
            format!("number {index} is not finite"),
        ));
    }
    Ok((0..len)
        .map(|row| values[source_row(len, raw.num_interleaved_heads, row)])
        .collect())
}
