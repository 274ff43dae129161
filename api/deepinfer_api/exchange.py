"""What is known about one admitted request besides its tokens. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deepinfer_api.admission import Ticket
from deepinfer_api.settings import ServerSettings
from deepinfer_api.telemetry import ServerMetrics


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One admitted request and its place in the server.

    Attributes:
        route: short name of the route for the log.
        request_id: value of `x-request-id`.
        prompt_param: field that holds the prompt on this route, for error messages.
        headers: further headers of the answer.
        ignored_fields: fields of the body that changed nothing.
    """

    route: str
    request_id: str
    settings: ServerSettings
    metrics: ServerMetrics
    ticket: Ticket
    prompt_param: str
    headers: Mapping[str, str] = field(default_factory=dict)
    ignored_fields: list[str] = field(default_factory=list)
