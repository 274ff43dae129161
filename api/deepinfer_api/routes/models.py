"""GET models and models/{id}: one object that clients of both protocols can read."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter

from deepinfer_api.dependencies import ServicesDependency
from deepinfer_api.errors import ApiError
from deepinfer_api.services import Services

router = APIRouter(tags=["models"])


def _card(services: Services) -> dict[str, Any]:
    settings = services.settings
    return {
        "id": settings.model_name,
        "object": "model",
        "created": services.created,
        "owned_by": "open-deepinfer",
        "max_model_len": services.loaded_model().backend.max_model_len,
        "aliases": list(settings.model_aliases),
        "type": "model",
        "display_name": settings.model_name,
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(services.created)),
    }


@router.get("/models", summary="List the served model")
async def list_models(services: ServicesDependency) -> dict[str, Any]:
    """The one model this server has; paging parameters are accepted and change nothing."""
    name = services.settings.model_name
    return {"object": "list", "data": [_card(services)], "has_more": False, "first_id": name, "last_id": name}


@router.get("/models/{model_id:path}", summary="Describe one model")
async def get_model(model_id: str, services: ServicesDependency) -> dict[str, Any]:
    """The model by its name or an alias; names may contain slashes."""
    if model_id not in services.settings.model_names:
        raise ApiError(
            404,
            f"the model {model_id!r} is not served here; this server has {', '.join(services.settings.model_names)}",
            param="model",
            code="model_not_found",
        )
    return _card(services)
