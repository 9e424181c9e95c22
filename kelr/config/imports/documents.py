"""Reading the files of other tools: YAML and TOML, with keys that come twice refused and sizes bounded."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

from kelr.errors import BadInputError

_MAX_BYTES = 4 * 1024 * 1024


def not_of_a_tool(message: str, next_step: str) -> BadInputError:
    """The error for a file that is not as its tool writes it."""
    return BadInputError(message, next_step=next_step, code="import-garbled")


def text_of(path: Path) -> str:
    """The text of a file. Raises BadInputError."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise not_of_a_tool(f"{path} is larger than {_MAX_BYTES} bytes", "name a configuration file")
        return content.decode()
    except OSError as error:
        raise not_of_a_tool(
            f"cannot read {path}: {error.strerror or error}", "check the path and its permissions"
        ) from error
    except UnicodeDecodeError as error:
        # Not chained: the error holds the bytes.
        start = error.start
    raise not_of_a_tool(f"{path} is not text (byte {start} is not UTF-8)", "name a configuration file")


def yaml_of(path: Path) -> Mapping[str, Any]:
    """A YAML document that is a mapping. Raises BadInputError, also where a key comes twice."""
    import yaml  # noqa: PLC0415 - only for an import

    class Loader(yaml.SafeLoader):
        """Refuses a key that comes twice, of which YAML's own loader keeps the last."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
            seen: set[Any] = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if isinstance(key, Hashable) and key in seen:
                    line = key_node.start_mark.line + 1
                    raise not_of_a_tool(f"{path}, line {line}: {key} comes twice", "keep one of them")
                seen.add(key if isinstance(key, Hashable) else None)
            return super().construct_mapping(node, deep)

    try:
        found = yaml.load(text_of(path), Loader)
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
        # Not chained: the error holds what the file holds.
        raise not_of_a_tool(f"{path}{line}: no YAML: {error.problem}", "correct that file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise not_of_a_tool(f"{path}: no YAML: {type(error).__name__}", "correct that file") from None
    if not isinstance(found, dict):
        raise not_of_a_tool(f"{path} holds no settings", "name a configuration file of kafkactl or rpk")
    return found


def toml_of(path: Path) -> Mapping[str, Any]:
    """A TOML document. Raises BadInputError."""
    import tomllib  # noqa: PLC0415 - only for an import

    try:
        return tomllib.loads(text_of(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise not_of_a_tool(f"{path}: no TOML: {error}", "correct that file") from None


def lowered(values: object) -> dict[str, Any]:
    """A mapping with its keys in small letters, as a reader that does not tell them apart has it; else an empty one."""
    return {str(key).lower(): value for key, value in values.items()} if isinstance(values, dict) else {}


def is_on(value: object) -> bool:
    """Whether a flag is set, as Go's readers take it."""
    return value is True or (isinstance(value, str) and value.lower() in {"true", "1", "t", "yes", "on"}) or value == 1


def absolute(text: str, base: Path) -> str:
    """The path of a file that stands in another tool's configuration: beside that, or else in the working directory."""
    named = Path(text).expanduser()
    if named.is_absolute():
        return str(named)
    beside, here = base / named, Path.cwd() / named
    return str(here if here.exists() and not beside.exists() else beside.absolute())


def others(values: Mapping[str, Any], known: Iterable[str], prefix: str = "") -> list[str]:
    """The keys that nothing is known of, with where they stand."""
    return [
        f"{prefix}{key}" for key, value in values.items() if key not in set(known) and value not in (None, "", {}, [])
    ]
