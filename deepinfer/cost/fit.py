"""Keeps a `StepCost` in line with measured steps: robust against disturbed steps, forgets what is old."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from statistics import median

from deepinfer.cost.least_squares import solve_non_negative
from deepinfer.cost.step_cost import NUM_TERMS, StepCost, StepLoad

# What is assumed before anything was measured: a slow machine, so that first chunks are too small, not too large.
CAUTIOUS_COST = StepCost(
    base_seconds=5e-3,
    prefill_token_seconds=2e-3,
    prefill_pair_seconds=5e-8,
    decode_row_seconds=1e-3,
    decode_pair_seconds=2e-7,
)
_PRIOR_LOADS = (
    StepLoad(),
    StepLoad(num_prefill_tokens=256),
    StepLoad(num_prefill_pairs=256 * 1024),
    StepLoad(num_decode_rows=16),
    StepLoad(num_decode_pairs=16 * 1024),
)
_PRIOR_WEIGHT = 1e-4
_SAMPLES_PER_KIND = 9
_MAX_KINDS = 96
_LEAST_BASE_SECONDS = 1e-6  # no step takes no time, whatever a fit says
_REFIT_INTERVAL = 512
_NUM_ERRORS = 256


@dataclass(frozen=True, slots=True)
class FitError:
    """|predicted - measured| / measured over recent steps."""

    median_ratio: float
    p95_ratio: float


class StepCostModel:
    """A step cost that learns. Steps of similar size are one kind; each kind counts with its median time, so a step
    that was disturbed by another process changes nothing, and thousands of equal steps do not drown the rare ones."""

    def __init__(self, prior: StepCost = CAUTIOUS_COST) -> None:
        self.cost = prior
        self._prior = prior
        self._kinds: OrderedDict[tuple[int, int, int, int], deque[tuple[tuple[float, ...], float]]] = OrderedDict()
        self._errors: deque[float] = deque(maxlen=_NUM_ERRORS)
        self._num_steps = 0
        self._next_refit = 1

    @property
    def num_steps(self) -> int:
        """Steps observed."""
        return self._num_steps

    def observe(self, load: StepLoad, seconds: float) -> None:
        """Take in a measured step; refits now and then."""
        if seconds <= 0.0:
            return
        self._errors.append(abs(self.cost.predict(load) - seconds) / seconds)
        kind = (
            load.num_prefill_tokens.bit_length(),
            int(load.num_prefill_pairs).bit_length() // 2,
            load.num_decode_rows.bit_length(),
            load.num_decode_pairs.bit_length() // 2,
        )
        samples = self._kinds.get(kind)
        if samples is None:
            samples = self._kinds[kind] = deque(maxlen=_SAMPLES_PER_KIND)
            if len(self._kinds) > _MAX_KINDS:
                self._kinds.popitem(last=False)  # the kind not seen for the longest time
        else:
            self._kinds.move_to_end(kind)
        samples.append((load.terms(), seconds))
        self._num_steps += 1
        if self._num_steps >= self._next_refit:
            self._next_refit = self._num_steps + min(_REFIT_INTERVAL, max(1, self._num_steps // 4))
            self.refit()

    def refit(self) -> None:
        """Fit the cost to what is remembered, weighted by 1 / T^2: relative errors count."""
        rows: list[tuple[float, ...]] = []
        targets, weights = [], []
        for load in _PRIOR_LOADS:  # holds each coefficient at its prior until something was measured
            rows.append(load.terms())
            targets.append(self._prior.predict(load))
            weights.append(_PRIOR_WEIGHT / targets[-1] ** 2)
        for samples in self._kinds.values():
            seconds = median(sample[1] for sample in samples)
            rows.append(tuple(sum(terms[i] for terms, _ in samples) / len(samples) for i in range(NUM_TERMS)))
            targets.append(seconds)
            weights.append(1.0 / seconds**2)
        base_seconds, *others = solve_non_negative(rows, targets, weights)
        self.cost = StepCost(max(base_seconds, _LEAST_BASE_SECONDS), *others)

    def fit_error(self) -> FitError:
        """How well recent steps were predicted before they ran; zeros before the first."""
        ordered = sorted(self._errors)
        if not ordered:
            return FitError(0.0, 0.0)
        return FitError(ordered[len(ordered) // 2], ordered[int(0.95 * (len(ordered) - 1))])
