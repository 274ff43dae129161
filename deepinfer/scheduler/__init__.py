"""Continuous batching over a paged KV cache. No torch, no numpy."""

from deepinfer.scheduler.drafts import DraftPolicy
from deepinfer.scheduler.request_queue import RequestQueue
from deepinfer.scheduler.scheduler import Scheduler

__all__ = ["DraftPolicy", "RequestQueue", "Scheduler"]
