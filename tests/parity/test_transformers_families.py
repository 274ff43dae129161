"""Logits of tiny random models of every family and file format against transformers, float32."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch

from deepinfer.config import EngineConfig, RopeScaling
from deepinfer.executor.input_batch import make_input_batch
from deepinfer.executor.request_states import RequestState, ScheduledRequest
from deepinfer.executor.weight_loading import load_weights
from deepinfer.layers.attention import AttentionMetadata
from deepinfer.loader import open_checkpoint
from deepinfer.loader.weight_map import HF_LAYER_NAMES, HF_LAYER_PREFIX, HF_MODEL_NAMES, canonical_names
from deepinfer.models.llama.model import LlamaModel
from deepinfer.quant.gguf_blocks import BLOCK_STORAGES, PLAIN_STORAGES
from deepinfer.sampling import SamplingRow
from deepinfer.sampling_params import SamplingParams
from deepinfer.testing import FAMILIES, make_random_tensors, make_tiny_config, write_gguf

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = pytest.mark.parity

BLOCK_SIZE = 16
NUM_TOKENS = 70  # several blocks, and more than twice the tiny mistral's window
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny operators gain nothing from more threads, and lose much where others use the machine."""
    torch.set_num_threads(1)


def prompt():
    return np.random.default_rng(5).integers(0, 256, NUM_TOKENS).tolist()


def our_logits(path, chunks=(NUM_TOKENS,)):
    """Logits [NUM_TOKENS, vocabulary] of the prompt, computed in chunks over scattered blocks."""
    checkpoint = open_checkpoint(path)
    config = checkpoint.config
    model = LlamaModel(config, max_model_len=256, dtype=torch.float32, device=torch.device("cpu"))
    load_weights(model, checkpoint)
    num_blocks = 2 * NUM_TOKENS // BLOCK_SIZE
    kv_cache = torch.full(
        (config.num_layers, 2, num_blocks, BLOCK_SIZE, config.num_kv_heads, config.head_dim), torch.nan
    )
    token_ids = prompt()
    sampling = SamplingRow(SamplingParams(), token_ids, NUM_TOKENS)
    state = RequestState("r", token_ids, NUM_TOKENS, sampling, list(range(num_blocks))[::-1], 0)
    logits = []
    for size in chunks:
        batch = make_input_batch([ScheduledRequest(state, size)], BLOCK_SIZE)
        metadata = AttentionMetadata(
            positions=torch.from_numpy(batch.positions),
            slot_mapping=torch.from_numpy(batch.slot_mapping),
            block_table=torch.from_numpy(batch.block_table),
            cu_seqlens_q=torch.from_numpy(batch.cu_seqlens_q),
            seq_lens=torch.from_numpy(batch.seq_lens),
            max_seqlen_q=size,
            max_seqlen_k=state.num_computed_tokens + size,
        )
        with torch.inference_mode():
            logits.append(model.compute_logits(model(torch.from_numpy(batch.input_ids), kv_cache, metadata)))
        state.num_computed_tokens += size
    return torch.cat(logits).numpy()


def their_logits(model):
    with torch.inference_mode():
        return model.eval()(torch.tensor([prompt()])).logits[0].numpy()


def assert_close(ours, theirs):
    scale = np.abs(theirs).max()
    assert scale > 0.5, "logits too small to tell anything"
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5 * scale)


def their_config(config, **options):
    kind = {"llama": transformers.LlamaConfig, "mistral": transformers.MistralConfig,
            "qwen2": transformers.Qwen2Config, "qwen3": transformers.Qwen3Config}[config.architecture]  # fmt: skip
    return kind(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_qo_heads,
        num_key_value_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        max_position_embeddings=config.max_position_embeddings,
        rms_norm_eps=config.rms_norm_eps,
        tie_word_embeddings=config.tie_word_embeddings,
        attn_implementation="eager",
        **({"sliding_window": config.sliding_window} if config.architecture == "mistral" else {}),
        **options,
    )


def randomise(model):
    """Norms and biases that are not 1 and 0, and gains near 1, so that every tensor matters."""
    generator = torch.Generator().manual_seed(3)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 1:
            parameter.data = (1.0 if "norm" in name else 0.0) + 0.2 * noise
        else:
            parameter.data = noise if "embed" in name else noise / parameter.shape[1] ** 0.5
    model.tie_weights()
    return model


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("dtype", "shard_size"), [(torch.float32, "50GB"), (torch.float32, "500KB"), (torch.bfloat16, "50GB")]
)
def test_directory(tmp_path, family, dtype, shard_size):
    model = randomise(transformers.AutoModelForCausalLM.from_config(their_config(make_tiny_config(family)))).to(dtype)
    model.save_pretrained(tmp_path, max_shard_size=shard_size)
    (tmp_path / "tokenizer.json").write_text("{}")
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard_size == "500KB")
    # Read again: a model that was converted to bfloat16 has rounded its rotary frequencies as well.
    options = {"dtype": torch.float32, "attn_implementation": "eager"}
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, **options)
    assert_close(our_logits(tmp_path), their_logits(model))


ROPE_OPTIONS = {
    "llama3": {"rope_type": "llama3", "rope_theta": 500000.0, **LLAMA3},
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    "base": {"rope_type": "default", "rope_theta": 1000000.0},
}


@pytest.mark.parametrize("rope", ROPE_OPTIONS)
def test_rope_options(tmp_path, rope):
    config = their_config(make_tiny_config("llama"), rope_parameters=ROPE_OPTIONS[rope])
    model = randomise(transformers.LlamaForCausalLM(config))
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    assert_close(our_logits(tmp_path), their_logits(model))


@pytest.mark.parametrize("window", [None, 1, 7, 64])
def test_windows(tmp_path, window):
    model = randomise(transformers.MistralForCausalLM(their_config(make_tiny_config("mistral", sliding_window=window))))
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    assert_close(our_logits(tmp_path, chunks=(1, 30, 1, 38)), their_logits(model))


def load_dequantised(config, tensors, **options):
    """The transformers model of these tensors, dequantised by the gguf package."""
    model = transformers.AutoModelForCausalLM.from_config(their_config(config, **options))
    names = canonical_names(config.num_layers, HF_MODEL_NAMES, HF_LAYER_PREFIX, HF_LAYER_NAMES)
    file_names = {name: file_name for file_name, name in names.items()}
    weights = {}
    for name, tensor in tensors.items():
        rows = tensor.data.reshape(tensor.shape[0], -1)
        values = gguf.dequantize(rows, gguf.GGMLQuantizationType[tensor.storage.upper()]).reshape(tensor.shape)
        weights[file_names[name]] = torch.from_numpy(values.copy())
    if config.tie_word_embeddings:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model.load_state_dict(weights)
    return model


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("storage", PLAIN_STORAGES + BLOCK_STORAGES)
def test_gguf_file(tmp_path, family, storage):
    config = make_tiny_config(family)
    tensors = make_random_tensors(config, storage)
    write_gguf(tmp_path / "m.gguf", config, tensors)
    assert_close(our_logits(tmp_path / "m.gguf"), their_logits(load_dequantised(config, tensors)))


def test_gguf_file_with_rope_frequency_factors(tmp_path):
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    options = ROPE_OPTIONS["llama3"]
    config = make_tiny_config("llama", rope_theta=options["rope_theta"], rope_scaling=RopeScaling(kind="linear"))
    tensors = make_random_tensors(config, "q8_0")
    model = load_dequantised(config, tensors, rope_parameters=options)
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](model.config, "cpu")
    plain = options["rope_theta"] ** -(torch.arange(0, config.head_dim, 2) / config.head_dim)
    write_gguf(tmp_path / "m.gguf", config, tensors, extra_tensors={"rope_freqs.weight": (plain / scaled).numpy()})
    assert_close(our_logits(tmp_path / "m.gguf"), their_logits(model))


@pytest.mark.parametrize("family", FAMILIES)
def test_chunks_do_not_change_the_result(tmp_path, family):
    config = make_tiny_config(family)
    write_gguf(tmp_path / "m.gguf", config, make_random_tensors(config, "q4_1"))
    whole = our_logits(tmp_path / "m.gguf")
    for chunks in ((1,) * NUM_TOKENS, (16, 16, 16, 22), (33, 1, 36)):
        assert_close(our_logits(tmp_path / "m.gguf", chunks), whole)


def test_executor_chooses_the_best_token(tmp_path):
    """The same through the executor's factory: greedy ids of a tiny model equal those of transformers."""
    from deepinfer.executor.factory import make_executor
    from deepinfer.outputs import NewRequestData, SchedulerOutput

    config = make_tiny_config("qwen3")
    tensors = make_random_tensors(config, "q5_k")
    write_gguf(tmp_path / "m.gguf", config, tensors)
    path = tmp_path / "m.gguf"
    executor = make_executor(EngineConfig(model=path, cpu_backend="torch", num_threads=1), open_checkpoint(path))
    new = NewRequestData("r", prompt(), NUM_TOKENS, SamplingParams(temperature=0), frozenset(), [0, 1, 2], 0)
    result = executor.execute(SchedulerOutput([new], num_scheduled_tokens={"r": NUM_TOKENS}))
    best = int(their_logits(load_dequantised(config, tensors))[-1].argmax())
    assert result.sampled_token_ids == {"r": [best]}
    executor.close()
