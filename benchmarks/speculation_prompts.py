"""Prompts whose answers repeat much of them: code to be edited, notes to be summarised. Standard library only."""

from __future__ import annotations

import random

_NOUNS = ("order", "invoice", "sensor", "ticket", "parcel", "account", "booking", "reading", "shipment", "message")
_VERBS = ("load", "check", "merge", "store", "count", "filter", "rename", "group", "archive", "compare")
_FIELDS = ("price", "weight", "status", "owner", "amount", "region", "length", "score", "level", "delay")
_PLACES = ("harbour", "valley", "station", "library", "workshop", "orchard", "museum", "bakery", "shipyard", "school")
_PEOPLE = ("Mira", "Tomas", "Ines", "Joren", "Salma", "Viktor", "Noa", "Emeka", "Lucia", "Hanne")
_EVENTS = (
    "the roof was repaired before the first storm",
    "two new machines arrived and were tested for a week",
    "the opening hours were extended until nine in the evening",
    "a broken pump flooded the cellar and was replaced",
    "visitors asked for a quieter room, which is being planned",
    "the supplier raised prices by six percent",
    "a class of thirty children came to see the work",
    "the old ledger was copied and put into the archive",
    "nobody was hurt when a shelf fell over at night",
    "the budget for spring was agreed after a long talk",
)


def make_edit_prompt(number: int) -> str:
    """Code and the wish to have it back with a name changed."""
    rng = random.Random(f"edit-{number}")
    noun, field, other = rng.choice(_NOUNS), rng.choice(_FIELDS), rng.choice(_FIELDS)
    verbs = rng.sample(_VERBS, 2)
    code = f"""def {verbs[0]}_{noun}s({noun}s, limit):
    result = []
    for {noun} in {noun}s:
        if {noun}.{field} > limit:
            result.append({noun})
    return result


def {verbs[1]}_{noun}s({noun}s):
    total = 0
    for {noun} in {noun}s:
        if {noun}.{other} is not None:
            total += {noun}.{field}
    return total
"""
    wish = "Rewrite this Python code with the argument `limit` renamed to `bound`. Give only the code."
    return f"{wish}\n\n```python\n{code}```"


def make_summary_prompt(number: int) -> str:
    """Notes of a week and the wish for a summary."""
    rng = random.Random(f"summary-{number}")
    place = rng.choice(_PLACES)
    people = rng.sample(_PEOPLE, 4)
    events = rng.sample(_EVENTS, 4)
    days = ("Monday", "Tuesday", "Thursday", "Friday")
    notes = " ".join(
        f"On {day} {person} wrote about the {place}: {event}."
        for day, person, event in zip(days, people, events, strict=True)
    )
    return f"Summarise these notes in a few sentences, keeping names and days.\n\n{notes}"


PROMPT_KINDS = {"edit": make_edit_prompt, "summary": make_summary_prompt}
