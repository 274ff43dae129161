"""One cost model for chunk sizes, fairness and, later, routing and simulation. Pure Python."""

from deepinfer.cost.fit import CAUTIOUS_COST, FitError, StepCostModel
from deepinfer.cost.least_squares import solve_non_negative
from deepinfer.cost.step_cost import StepCost, StepLoad

__all__ = ["CAUTIOUS_COST", "FitError", "StepCost", "StepCostModel", "StepLoad", "solve_non_negative"]
