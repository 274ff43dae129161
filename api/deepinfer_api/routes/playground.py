"""GET /: a small page to try the model in a browser."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse, Response

STATIC_FOLDER = Path(__file__).parent.parent / "static"

router = APIRouter(include_in_schema=False)


@router.api_route("/", methods=["GET", "HEAD"])
async def playground() -> FileResponse:
    """The page; its script and style come from /static."""
    return FileResponse(STATIC_FOLDER / "index.html", headers={"cache-control": "no-cache"})


@router.get("/favicon.ico")
async def favicon() -> Response:
    """Browsers ask for it; the page carries its own icon."""
    return Response(status_code=204)
