"""Choice of the next token from logits on the host. Numpy only, no torch."""

from deepinfer.sampling.logprobs import compute_prompt_logprobs, compute_token_logprob
from deepinfer.sampling.row import SamplingRow
from deepinfer.sampling.sampler import SampledRows, Sampler, find_candidates

__all__ = [
    "SampledRows",
    "Sampler",
    "SamplingRow",
    "compute_prompt_logprobs",
    "compute_token_logprob",
    "find_candidates",
]
