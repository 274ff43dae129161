import random

import pytest

from deepinfer.cost import CAUTIOUS_COST, StepCost, StepCostModel, StepLoad, solve_non_negative

TRUE = StepCost(2e-3, 1.5e-4, 2e-8, 3e-4, 1e-7)


def make_load(rng):
    num_rows = rng.randrange(33)
    load = StepLoad(num_decode_rows=num_rows, num_decode_pairs=num_rows * rng.randrange(50, 2000))
    if not num_rows or rng.random() < 0.3:
        load.add_prefill(rng.choice([16, 64, 200, 512]), rng.randrange(3000))
    return load


@pytest.mark.parametrize("truth", [[1.0, 2.0, 3.0], [0.0, 2.0, 0.0], [5.0, 0.0, 1e-9], [0.0, 0.0, 0.0]])
def test_exact_data_give_the_exact_solution(truth):
    rng = random.Random(0)
    rows = [[1.0, rng.random() * 1e3, rng.random() * 1e9] for _ in range(20)]
    targets = [sum(a * b for a, b in zip(row, truth, strict=True)) for row in rows]
    found = solve_non_negative(rows, targets, [1.0] * 20)
    assert min(found) >= 0.0
    for row, target in zip(rows, targets, strict=True):
        assert sum(a * b for a, b in zip(row, found, strict=True)) == pytest.approx(target, rel=1e-6, abs=1e-9)


def test_a_negative_solution_is_pushed_to_the_best_border():
    # Unconstrained least squares would be (3, -1).
    assert solve_non_negative([[1.0, 0.0], [1.0, 1.0]], [3.0, 2.0], [1.0, 1.0]) == pytest.approx([2.5, 0.0])
    assert solve_non_negative([[1.0]], [-5.0], [1.0]) == [0.0]


def test_optimality_on_random_problems():
    rng = random.Random(1)
    for _ in range(30):
        rows = [[rng.gauss(0, 1) for _ in range(4)] for _ in range(8)]
        targets = [rng.gauss(0, 1) for _ in range(8)]
        found = solve_non_negative(rows, targets, [1.0] * 8)
        residuals = [
            sum(a * b for a, b in zip(row, found, strict=True)) - t for row, t in zip(rows, targets, strict=True)
        ]
        for column in range(4):  # the conditions of Karush, Kuhn and Tucker
            gradient = sum(row[column] * residual for row, residual in zip(rows, residuals, strict=True))
            assert gradient > -1e-9
            assert abs(gradient) < 1e-9 or found[column] == 0.0


def test_the_model_finds_the_truth_through_noise_and_disturbed_steps():
    rng = random.Random(1)
    model = StepCostModel()
    for _ in range(1500):
        load = make_load(rng)
        model.observe(load, TRUE.predict(load) * rng.gauss(1, 0.05) * (3 if rng.random() < 0.1 else 1))
    for _ in range(50):
        load = make_load(rng)
        assert model.cost.predict(load) == pytest.approx(TRUE.predict(load), rel=0.15)
    assert model.fit_error().median_ratio < 0.1


def test_a_handful_of_steps_is_enough_to_start_with():
    rng = random.Random(2)
    model = StepCostModel()
    for _ in range(40):
        load = make_load(rng)
        model.observe(load, TRUE.predict(load))
    for _ in range(50):
        load = make_load(rng)
        assert model.cost.predict(load) == pytest.approx(TRUE.predict(load), rel=0.5)


def test_what_was_never_measured_stays_cautious():
    model = StepCostModel()
    for _ in range(500):
        load = StepLoad(num_decode_rows=4, num_decode_pairs=400)
        model.observe(load, 3e-3)
    assert model.cost.predict(load) == pytest.approx(3e-3, rel=0.05)
    assert model.cost.prefill_token_seconds >= 0.5 * CAUTIOUS_COST.prefill_token_seconds


def test_the_model_follows_a_machine_that_changes():
    rng = random.Random(3)
    model = StepCostModel()
    for factor in (1.0, 3.0):
        for _ in range(3000):
            load = make_load(rng)
            model.observe(load, factor * TRUE.predict(load))
    load = StepLoad(num_decode_rows=8, num_decode_pairs=8000)
    assert model.cost.predict(load) == pytest.approx(3.0 * TRUE.predict(load), rel=0.15)


def test_errors_before_any_step_are_zero_and_bad_clocks_are_ignored():
    model = StepCostModel()
    model.observe(StepLoad(), 0.0)
    model.observe(StepLoad(), -1.0)
    assert model.num_steps == 0
    assert (model.fit_error().median_ratio, model.fit_error().p95_ratio) == (0.0, 0.0)


def test_no_step_is_free_whatever_was_measured():
    model = StepCostModel()
    load = StepLoad()
    load.add_prefill(64, 0)
    model.observe(load, 1e-12)
    model.observe(StepLoad(num_decode_rows=1, num_decode_pairs=10**6), 1e-12)
    assert model.num_steps == 2
    assert model.cost.predict(StepLoad()) > 0.0
    assert model.cost.predict(StepLoad(num_decode_rows=1)) > 0.0
