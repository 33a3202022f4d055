"""Tables of the settings, from the models that check them: the names of the models are the directive's content."""

from importlib import import_module
from typing import Any

from docutils import nodes
from pydantic import BaseModel
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from orbitgp_paper.config import plain

LIMITS = {"minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}", "exclusiveMaximum": "< {}"}
LIMITS |= {"multipleOf": "a multiple of {}", "minItems": "at least {} entries", "maxItems": "at most {} entries"}
TYPES = {"integer": "whole number", "number": "number", "boolean": "`true` or `false`", "string": "text"}


NOTHING = '""'  # an empty text

#: words for blocks whose class is called otherwise
NAMES = {"Patch": "training"}


def number(value: Any) -> str:
    value = plain(value)
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else f"{value}"


def block_name(reference: str) -> str:
    """The words of a class's name: `#/$defs/GroupScheme` → group scheme."""
    name = reference.rsplit("/")[-1]
    return NAMES.get(name) or "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


def values(schema: dict[str, Any]) -> str:
    """What a key may have, in words."""
    if "$ref" in schema:
        return f"block: {block_name(schema['$ref'])}"
    if kinds := schema.get("discriminator", {}).get("mapping"):
        return "block of kind " + ", ".join(f"`{kind}`" for kind in kinds)
    if "anyOf" in schema:
        return " or ".join(values(part) for part in schema["anyOf"] if part.get("type") != "null")
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return ", ".join([f"list: each {values(schema['items'])}", *limits(schema)])
    if schema.get("type") == "object":
        inside = schema.get("additionalProperties") or next(iter(schema["patternProperties"].values()))
        return f"names, each with a {values(inside)}"
    return ", ".join([TYPES[schema["type"]], *limits(schema)])


def limits(schema: dict[str, Any]) -> list[str]:
    return [text.format(number(schema[key])) for key, text in LIMITS.items() if key in schema]


def default(schema: dict[str, Any], required: bool) -> str:
    if required:
        return "; **required**"
    value = schema.get("default")
    if value is None or isinstance(value, dict):
        return ""
    shown = str(value).lower() if isinstance(value, bool) else number(value)
    return f"; default `{shown or NOTHING}`"


def table(model: type[BaseModel]) -> list[str]:
    """The keys of a block, with what they may have and what they mean; as Markdown. The kind is in the heading."""
    schema = model.model_json_schema()
    blocks = schema.get("$defs", {})
    schema = schema if "properties" in schema else blocks[model.__name__]
    rows = ["| key | values | meaning |", "| --- | --- | --- |"]
    for key, field in schema["properties"].items():
        named = next((part["$ref"] for part in [field, *field.get("anyOf", [])] if "$ref" in part), "").rsplit("/")[-1]
        told = field.get("description") or blocks.get(named, {}).get("description", "By its `kind`.")
        if key != "kind":
            rows.append(f"| `{key}` | {values(field)}{default(field, key in schema.get('required', []))} | {told} |")
    return rows if len(rows) > 2 else []


class Settings(SphinxDirective):
    """One section a block: what it is, and its table."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        text = []
        for path in "\n".join(self.content).split():
            module, _, name = path.rpartition(".")
            model = getattr(import_module(module), name)
            text += [f"## {title(model)}", "", " ".join((model.__doc__ or "").split()), "", *table(model), ""]
        return self.parse_text_to_nodes("\n".join(text), allow_section_headings=True)


def title(model: type[BaseModel]) -> str:
    kind = model.model_fields.get("kind")
    return f"`kind: {kind.annotation.__args__[0]}`" if kind else block_name(model.__name__).capitalize()


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("settings", Settings)
    return {"parallel_read_safe": True}
