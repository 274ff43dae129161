"""Made-up prompts for benchmarks: words that are one token each, in a fixed order for a seed. Standard library only."""

import random

WORDS = (  # noqa: SIM905 - a table of words reads best as text
    "time year people way day man thing woman life child world school state family student group country "
    "problem hand part place case week company system program question work government number night point home "
    "water room mother area money story fact month lot right study book eye job word business issue side kind "
    "head house service friend father power hour game line end member law car city name president team minute "
    "idea body information back parent face others level office"
).split()


def words(rng: random.Random, count: int) -> str:
    """`count` words joined by spaces."""
    return " ".join(rng.choice(WORDS) for _ in range(count))


def make_prompts(count: int, num_tokens: int, *, shared: int = 0, seed: int = 0) -> list[str]:
    """`count` prompts of about `num_tokens` tokens each, the first `shared` of them equal in all."""
    prefix = words(random.Random(f"shared-{seed}"), shared)
    own = (words(random.Random(f"own-{seed}-{i}"), num_tokens - shared) for i in range(count))
    return [f"{prefix} {text}".strip() for text in own]
