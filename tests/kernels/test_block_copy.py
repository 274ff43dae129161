"""block_copy: whole blocks, bit for bit, all pairs at once."""

from __future__ import annotations

import pytest
import torch

from deepinfer_kernels.block_copy import block_copy, block_copy_ref
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.testing.generators import make_normal
from deepinfer_kernels.testing.numeric import assert_identical


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(5, 16, 1, 64), (6, 16, 3, 80), (4, 128, 2, 64)])
@pytest.mark.parametrize("pairs", [[], [(0, 3)], [(0, 3), (0, 1), (2, 2)]])
def test_kernel_and_reference_copy_blocks(shape, dtype, pairs):
    k, v = (make_normal(*shape, dtype=dtype, seed=seed) for seed in (1, 2))
    expected_k, expected_v = k.clone(), v.clone()
    for source, destination in pairs:
        expected_k[destination], expected_v[destination] = k[source], v[source]
    index = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)
    for function, ids in ((block_copy_ref, index), (block_copy, index), (block_copy, index.int())):
        k_copy, v_copy = k.clone(), v.clone()
        function(k_copy, v_copy, ids)
        assert_identical(k_copy, expected_k)
        assert_identical(v_copy, expected_v)


def test_nan_payloads_survive():
    k = torch.tensor([0x7FC01234, 0x3F800000], dtype=torch.int32).view(torch.float32).repeat(2, 16, 1, 32)
    k[1] = 0
    v = k.clone()
    block_copy(k, v, torch.tensor([[0, 1]]))
    assert torch.equal(k[1].view(torch.int32), k[0].view(torch.int32))


def test_block_id_outside_the_cache():
    k, v = torch.ones(3, 16, 1, 64), torch.ones(3, 16, 1, 64)
    with pytest.raises(KernelArgumentError, match=r"^pairs must be block ids in \[0, 3\)"):
        block_copy_ref(k, v, torch.tensor([[0, 3]]))
    block_copy(k, v, torch.tensor([[0, 3], [-1, 0]]))
    assert (k == 1).all()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("k_cache", {"k_cache": torch.zeros(4, 16, 64)}),
        ("k_cache", {"k_cache": torch.zeros(4, 16, 4, 64)[:, :, ::2], "v_cache": torch.zeros(4, 16, 2, 64)}),
        ("v_cache", {"v_cache": torch.zeros(5, 16, 2, 64)}),
        ("v_cache", {"v_cache": torch.zeros(8, 16, 2, 64)[::2]}),
        ("pairs", {"pairs": torch.zeros(3, dtype=torch.int64)}),
        ("pairs", {"pairs": torch.zeros(3, 2)}),
        ("pairs", {"pairs": torch.zeros(6, 2, dtype=torch.int64)[::2]}),
    ],
)
def test_argument_errors(name, change):
    arguments = {
        "k_cache": torch.zeros(4, 16, 2, 64),
        "v_cache": torch.zeros(4, 16, 2, 64),
        "pairs": torch.zeros(1, 2, dtype=torch.int64),
    }
    with pytest.raises(KernelArgumentError, match=f"^{name} must be "):
        block_copy(**(arguments | change))
