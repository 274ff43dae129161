"""GET and HEAD metrics in the Prometheus text format."""

from __future__ import annotations

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from deepinfer_api.dependencies import ServicesDependency

router = APIRouter(tags=["operation"])


@router.head("/metrics", include_in_schema=False)
@router.get("/metrics", summary="Counts and times of this server")
async def metrics(services: ServicesDependency) -> Response:
    """All families; see docs/metrics.md."""
    return Response(services.exposition.render(), headers={"content-type": CONTENT_TYPE_LATEST})
