"""Liveness, readiness, version."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse

from deepinfer import __version__
from deepinfer_api.dependencies import ServicesDependency
from deepinfer_api.errors import unavailable
from deepinfer_api.services import ServerState

router = APIRouter(tags=["operation"])


@router.head("/health", include_in_schema=False)
@router.get("/health", summary="Is the process alive and its engine not broken?")
async def health(services: ServicesDependency) -> JSONResponse:
    """200 also while loading and draining; 503 when only a restart helps."""
    if services.is_dead:
        raise unavailable("the engine has stopped after an internal error; restart the server", "engine_dead", 30)
    if services.is_stuck:
        limit = services.settings.step_timeout_seconds
        raise unavailable(f"a step of the engine takes more than {limit:g} s; restart the server", "engine_stuck", 30)
    return JSONResponse({"status": "ok", "state": services.state})


@router.head("/ready", include_in_schema=False)
@router.get("/ready", summary="Will a request be served now?")
async def ready(services: ServicesDependency) -> JSONResponse:
    """503 while loading, draining, or after a failure of the engine."""
    services.ready_model()
    return JSONResponse({"status": "ok", "state": ServerState.READY})


@router.get("/version", summary="Version of the server")
async def version() -> dict[str, Any]:
    """Its number."""
    return {"version": __version__}
