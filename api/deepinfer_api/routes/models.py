"""GET models and models/{id}: one object that clients of both protocols can read."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter

from deepinfer_api.dependencies import ServicesDependency
from deepinfer_api.services import Services

router = APIRouter(tags=["models"])


def _card(services: Services) -> dict[str, Any]:
    model = services.loaded_model()
    return {
        "id": model.name,
        "object": "model",
        "created": services.created,
        "owned_by": "open-deepinfer",
        "max_model_len": model.backend.max_model_len,
        "aliases": list(services.settings.model_aliases),
        "type": "model",
        "display_name": model.name,
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(services.created)),
    }


@router.get("/models", summary="List the served model")
async def list_models(services: ServicesDependency) -> dict[str, Any]:
    """The one model this server has; paging parameters are accepted and change nothing."""
    card = _card(services)
    return {"object": "list", "data": [card], "has_more": False, "first_id": card["id"], "last_id": card["id"]}


@router.get("/models/{model_id:path}", summary="Describe one model")
async def get_model(model_id: str, services: ServicesDependency) -> dict[str, Any]:
    """The model by its name or an alias; names may contain slashes."""
    services.check_model_name(model_id)
    return _card(services)
