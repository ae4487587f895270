"""A paper's protocol compared with the catalogues, and how many of its printed numbers have an address."""

from pydantic import BaseModel

from thaw.core.errors import UserError
from thaw.core.phrases import written
from thaw.planning.papers import printed_tables
from thaw.schema.catalogue import Catalogue
from thaw.schema.keys import fields_by_name
from thaw.schema.phases import PhaseConfig
from thaw.schema.reference import ProtocolItem


def protocol_for_spec(paper: str, catalogue: Catalogue) -> list[list]:
    """Return the lines of a paper's protocol: what, as the paper, as here, why, whether ours is read from a setting.

    Without a difference why is empty. Raises UserError for a setting that the catalogues lack, and for a difference
    without a reason.
    """
    reference, document = printed_tables.read(catalogue.folders, paper)
    lines = []
    for index, item in enumerate(reference.protocol):
        place = f"{document.place(['protocol', index])}: {paper}.protocol: {item.what}"
        lines.append([item.what, _said(item.paper), *_here(item, catalogue, place), item.setting is not None])
    if precision := catalogue.computed.get("precision"):
        why = "the experiment says so (compute: precision)"
        lines.append(["precision of what trains", "not stated", precision, why, True])
    return lines


def _here(item: ProtocolItem, catalogue: Catalogue, place: str) -> tuple[str, str]:
    """Return what is here and why it differs."""
    if item.setting is None:
        return item.here or "", item.why or ""
    value = setting(item.setting, catalogue, place)
    if value == item.paper or _said(value) == _said(item.paper):
        return "the same", ""
    if not item.why:
        raise UserError(f"{place}: the paper has {_said(item.paper)}, {item.setting} is {_said(value)}; say why:")
    return _said(value), item.why


def setting(path: str, catalogue: Catalogue, place: str):
    """Return a setting of the catalogues by its path, as strategies.lee_full.phases.1.batch_size."""
    block, name, *keys = path.split(".")
    value = catalogue.get(block, name, place)
    for key in keys:
        try:
            value = _step(value, key)
        except (AttributeError, IndexError, KeyError) as error:
            raise UserError(f"{place}: {path}: there is no {key}") from error
    return list(value) if isinstance(value, tuple) else value


def _step(value, key: str):
    """Return what a key leads to: a field by any of its names, an item of a list counted from 1, an entry of a grid."""
    if isinstance(value, list):
        return value[int(key) - 1]
    if isinstance(value, dict):
        return value[fields_by_name(PhaseConfig).get(key, key)]
    if key == "options":
        return value.kind_options
    model: type[BaseModel] = type(value)
    return getattr(value, fields_by_name(model).get(key, key))


def _said(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(written, value)) if isinstance(value, list) else written(value)
