"""The application: routes, middleware, and the one error handler around a backend and a codec."""

from __future__ import annotations

import time

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.staticfiles import StaticFiles

from deepinfer import __version__
from deepinfer_api.backends.base import GenerationBackend
from deepinfer_api.codec import Codec
from deepinfer_api.errors import ApiError, invalid_request, to_api_error
from deepinfer_api.middleware import GuardMiddleware, RequestIdMiddleware
from deepinfer_api.routes import chat_completions, completions, health, metrics, models, playground, tokens
from deepinfer_api.schemas.validation import field_path
from deepinfer_api.services import Services
from deepinfer_api.settings import ServerSettings

PREFIXES = ("/v1", "", "/beta", "/beta/v1")
"""Clients disagree about the base URL; only the first is documented."""

EXPOSED_HEADERS = (
    "x-request-id",
    "request-id",
    "x-ignored-fields",
    "retry-after",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
)


def create_app(backend: GenerationBackend | None, codec: Codec | None, settings: ServerSettings) -> FastAPI:
    """Build the application.

    Args:
        backend: what generates; None while the model still loads (`app.state.services.attach` brings it later).
        codec: text to ids and back; None together with `backend`.
        settings: options.
    """
    services = Services(settings, created=int(time.time()))
    if backend is not None and codec is not None:
        services.attach(backend, codec)
    app = FastAPI(title="open-deepinfer", version=__version__, redoc_url=None)
    app.state.services = services
    api = APIRouter()
    for module in (chat_completions, completions, models, tokens, health, metrics):
        api.include_router(module.router)
    for prefix in PREFIXES:
        app.include_router(api, prefix=prefix, include_in_schema=prefix == PREFIXES[0])
    app.include_router(playground.router)
    app.mount("/static", StaticFiles(directory=playground.STATIC_FOLDER), name="static")
    app.add_exception_handler(ApiError, _answer_error)
    app.add_exception_handler(HTTPException, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_error)
    # The last one added is the outermost.
    app.add_middleware(GuardMiddleware, settings=settings, metrics=services.metrics)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=settings.cors_origins,
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=EXPOSED_HEADERS,
        max_age=86400,
    )
    app.add_middleware(RequestIdMiddleware)
    return app


async def _answer_error(request: Request, failure: Exception) -> JSONResponse:
    if isinstance(failure, RequestValidationError):
        first = failure.errors()[0]
        failure = invalid_request(str(first["msg"]), field_path(first["loc"][1:]))
    error = to_api_error(failure)
    return JSONResponse(error.body(), error.status, error.headers)
