"""Which rows of a step need logits, and what their logits become. Numpy only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepinfer.executor.request_states import ScheduledRequest
from deepinfer.outputs import ModelRunnerOutput


def select_logit_rows(scheduled: Sequence[ScheduledRequest], cu_seqlens_q: NDArray[np.int32]) -> NDArray[np.int64]:
    """Rows of the forward pass from which a token is chosen: the last one of each request that reached its end."""
    rows = [end - 1 for item, end in zip(scheduled, cu_seqlens_q[1:], strict=True) if item.samples_token]
    return np.asarray(rows, np.int64)


def choose_tokens(scheduled: Sequence[ScheduledRequest], logits: NDArray[np.float32]) -> ModelRunnerOutput:
    """Argmax of each row, appended to its request."""
    output = ModelRunnerOutput()
    choosing = (item.state for item in scheduled if item.samples_token)
    for state, token_id in zip(choosing, logits.argmax(axis=-1).tolist(), strict=True):
        state.token_ids.append(token_id)
        output.sampled_token_ids[state.request_id] = [token_id]
    return output
