"""The playground: a page that uses this server's API and the parts of `unmask page`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.responses import FileResponse, Response

from unmask import embedded, page
from unmask.rules.recipes import RECIPES
from unmask.server.errors import ApiError
from unmask.server.prepare import ServedModel
from unmask.trace.recording.records import without_swd

STATIC = Path(__file__).parent / "static"
PARTS = {file.name: file for kind in ("*.js", "*.css") for file in page.FOLDER.glob(kind)}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
EXAMPLE = "Ann has 12 pens. She buys 3, then loses 5. How many now?"  # a task of the embedded model


def add_playground(app: FastAPI) -> None:
    """Serve the page at the root."""

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return FileResponse(STATIC / "index.html", headers={"Content-Security-Policy": POLICY})

    @app.get("/static/page/{name}", include_in_schema=False)
    async def part(name: str) -> Response:
        if name not in PARTS:
            raise ApiError(404, "this file does not exist")
        return FileResponse(PARTS[name])

    app.mount("/static", StaticFiles(directory=STATIC))


def defaults_of(served: ServedModel) -> dict[str, Any]:
    """The defaults of a request and the recipes it may name, for the model's card."""
    resolved, is_embedded = served.session.resolve(), served.session.name == embedded.NAME
    rule = resolved.settings.rule
    plain = without_swd(rule)
    return {
        "rule": str(rule),
        "rule_without_swd": None if plain is None else str(plain),
        "length": resolved.length,
        "recipes": {r.name: r.rule for r in RECIPES.values() if "{" not in r.rule},
        "example": EXAMPLE if is_embedded else None,
    }
