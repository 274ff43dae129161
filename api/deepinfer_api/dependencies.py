"""Depends providers: the only readers of `app.state`."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request

from deepinfer_api.services import Services


async def services_of(request: Request) -> Services:
    """The server's shared objects."""
    return cast(Services, request.app.state.services)


ServicesDependency = Annotated[Services, Depends(services_of)]
