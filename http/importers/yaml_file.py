"""Reader for untrusted YAML of other tools, with anchors and merges.

libyaml reads nested text recursively in C, and an alias repeats a whole value. So depth and
expanded size are checked before the document is built. A number such as 1:30 has base 60: one of
many digits would take hours.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import yaml

DEPTH_MOST: Final = 64
# Nodes of the document, each counted again where an alias repeats it.
NODES_MOST: Final = 200_000
# Characters of the document, counted in the same way.
TEXT_MOST: Final = 16 << 20
# The largest number of 64 bits has 20 digits.
NUMBER_LONGEST: Final = 40
_NUMBERS: Final = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BadYaml(ValueError):
    """The text is not YAML, or exceeds the limit in the message."""


def read_yaml(data: bytes) -> Any:
    """Returns the document. Raises: BadYaml."""
    try:
        _expect_shallow(yaml.parse(data, Loader=_LOADER))
        loader = _LOADER(data)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _expect_bounded(node)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except BadYaml:
        raise
    # ValueError: a date or a number that does not exist.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadYaml("is no YAML") from error


def read_documents(data: bytes, most: int) -> list[Any]:
    """Returns the documents of a stream. The bounds are those of all of them together.

    Raises:
        BadYaml.
    """
    try:
        _expect_shallow(yaml.parse(data, Loader=_LOADER))
        loader = _LOADER(data)
        found, nodes = list[Any](), 0
        try:
            while loader.check_node():
                if len(found) == most:
                    raise BadYaml("has too many documents: divide it")
                node = loader.get_node()
                nodes += _expect_bounded(node)
                if nodes > NODES_MOST:
                    raise BadYaml(f"has more than {NODES_MOST} values with all aliases expanded")
                found.append(loader.construct_document(node))
        finally:
            loader.dispose()
    except BadYaml:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadYaml("is no YAML") from error
    return found


def _expect_shallow(events: Iterable[yaml.Event]) -> None:
    """Checks the depth, and the number of values before they are in memory."""
    depth, count = 0, 0
    for event in events:
        count += isinstance(event, yaml.NodeEvent)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH_MOST:
            raise BadYaml(f"is nested deeper than {DEPTH_MOST}")
        if count > NODES_MOST:
            raise BadYaml(f"has more than {NODES_MOST} values")


def _expect_bounded(root: yaml.Node) -> int:
    """Checks the size of the expanded document, and returns its number of values.

    A node inside itself would be infinite.
    """
    sizes: dict[int, tuple[int, int]] = {}
    inside: set[int] = set()

    def size_of(node: yaml.Node) -> tuple[int, int]:
        """Returns the number of values, and that of their characters."""
        key = id(node)
        if key in sizes:
            return sizes[key]
        if key in inside:
            raise BadYaml("contains an alias of a value that contains it")
        inside.add(key)
        nodes, characters = 1, 0
        for one in _inner(node):
            of_one = size_of(one)
            nodes, characters = nodes + of_one[0], characters + of_one[1]
        if isinstance(node, yaml.ScalarNode):
            characters = len(node.value)
            if node.tag in _NUMBERS and characters > NUMBER_LONGEST:
                raise BadYaml(f"contains a number of more than {NUMBER_LONGEST} characters")
        inside.remove(key)
        if nodes > NODES_MOST:
            raise BadYaml(f"has more than {NODES_MOST} values with all aliases expanded")
        if characters > TEXT_MOST:
            raise BadYaml(f"has more than {TEXT_MOST} characters with all aliases expanded")
        sizes[key] = nodes, characters
        return sizes[key]

    return size_of(root)[0]


def _inner(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
