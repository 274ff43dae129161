"""Every tensor of a checkpoint has one place in the model, and every number of the model one source."""

from __future__ import annotations

import pytest
import torch

from deepinfer.loader.weight_map import expected_shapes
from deepinfer.models.llama.model import LlamaModel
from deepinfer.models.llama.weights import weight_destinations
from deepinfer.testing import FAMILIES, make_tiny_config


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tied", [False, True])
def test_destinations_cover_the_model_exactly(family, tied):
    config = make_tiny_config(family, tie_word_embeddings=tied)
    model = LlamaModel(config, max_model_len=16, dtype=torch.float32, device=torch.device("cpu"))
    destinations = weight_destinations(model)
    assert {name: tuple(target.shape) for name, target in destinations.items()} == expected_shapes(config)
    for parameter in model.parameters():
        parameter.data.fill_(0)
    for target in destinations.values():
        target.add_(1)  # a number filled twice would be 2, one without a source 0
    assert all(bool((parameter == 1).all()) for parameter in model.parameters())
    assert not any(parameter.requires_grad for parameter in model.parameters())
