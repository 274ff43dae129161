"""What the process may use of the machine: processors and memory. No torch here."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Final

_CGROUP_CPU_LIMIT: Final = Path("/sys/fs/cgroup/cpu.max")
_CGROUP_MEMORY_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
_CGROUP_MEMORY_USED: Final = Path("/sys/fs/cgroup/memory.current")
_MEMORY_INFO: Final = Path("/proc/meminfo")


def count_usable_processors() -> int:
    """Processors by affinity and control group quota, at least 1."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        count = os.cpu_count() or 1
    quota, _, period = _read(_CGROUP_CPU_LIMIT).partition(" ")
    if quota.isdigit() and period.strip().isdigit() and int(period) > 0:
        count = min(count, math.ceil(int(quota) / int(period)))
    return max(count, 1)


def measure_available_memory_bytes() -> int:
    """Memory that can be taken without swapping, by the system's estimate and the control group's limit."""
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for line in _read(_MEMORY_INFO).splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            available = int(value.split()[0]) * 1024
    limit, used = _read(_CGROUP_MEMORY_LIMIT).strip(), _read(_CGROUP_MEMORY_USED).strip()
    if limit.isdigit() and used.isdigit():
        available = min(available, max(int(limit) - int(used), 0))
    return available


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
