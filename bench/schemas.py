"""Ten JSON Schemas of the kinds that programs ask for."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def _object(properties: Schema, required: list[str] | None = None) -> Schema:
    names = list(properties) if required is None else required
    return {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }


TEXT: Schema = {"type": "string", "maxLength": 24}
WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": 9999}
SCHEMAS: dict[str, Schema] = {
    "user": _object(
        {
            "id": {"type": "string", "format": "uuid"},
            "name": TEXT,
            "active": {"type": "boolean"},
            "born": {"type": "string", "format": "date"},
            "role": {"enum": ["admin", "editor", "guest"]},
        }
    ),
    "invoice": _object(
        {
            "number": {"type": "string", "pattern": "^INV-[0-9]{4}$"},
            "due": {"type": "string", "format": "date"},
            "lines": {
                "type": "array",
                "minItems": 1,
                "maxItems": 3,
                "items": _object(
                    {
                        "item": TEXT,
                        "count": WHOLE,
                        "price": {"type": "number", "minimum": 0, "maximum": 1000},
                    }
                ),
            },
            "currency": {"enum": ["EUR", "USD", "JPY"]},
        }
    ),
    "event": _object(
        {
            "title": TEXT,
            "start": {"type": "string", "format": "date-time"},
            "people": {"type": "array", "items": TEXT, "maxItems": 4},
            "place": {"type": ["string", "null"]},
        },
        ["title", "start", "place"],
    ),
    "weather": _object(
        {
            "city": TEXT,
            "celsius": {"type": "integer", "minimum": -60, "maximum": 60},
            "sky": {"enum": ["clear", "clouds", "rain", "snow"]},
        }
    ),
    "address": _object(
        {
            "street": TEXT,
            "city": TEXT,
            "zip": {"type": "string", "pattern": r"^\d{5}$"},
            "geo": _object({"lat": {"type": "number"}, "lon": {"type": "number"}}),
        }
    ),
    "review": _object(
        {
            "stars": {"type": "integer", "minimum": 1, "maximum": 5},
            "text": TEXT,
            "tags": {"type": "array", "items": {"enum": ["cheap", "good", "bad"]}, "maxItems": 3},
        }
    ),
    "log": _object(
        {
            "at": {"type": "string", "format": "time"},
            "level": {"enum": ["debug", "info", "error"]},
            "host": {"type": "string", "format": "ipv4"},
            "message": {"type": "string"},
        }
    ),
    "tree": {
        "$defs": {
            "node": _object(
                {
                    "value": WHOLE,
                    "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
                }
            )
        },
        "$ref": "#/$defs/node",
    },
    "shape": {
        "anyOf": [
            _object({"kind": {"const": "circle"}, "radius": {"type": "number"}}),
            _object({"kind": {"const": "box"}, "width": WHOLE, "height": WHOLE}),
        ]
    },
    "call": _object(
        {
            "tool": {"enum": ["search", "open"]},
            "arguments": {
                "type": "object",
                "additionalProperties": {"type": ["string", "integer"]},
            },
            "mail": {"type": "string", "format": "email"},
        },
        ["tool", "arguments"],
    ),
}

TEN_FIELDS = _object(
    {
        "name": {"type": "string"},
        "id": {"type": "string", "format": "uuid"},
        "age": WHOLE,
        "price": {"type": "number"},
        "active": {"type": "boolean"},
        "born": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "level": {"enum": ["low", "mid", "high"]},
        "address": SCHEMAS["address"],
        "note": {"type": ["string", "null"]},
    }
)
