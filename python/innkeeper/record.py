"""A dict whose members are attributes too."""

from typing import Any


class Record(dict[str, Any]):
    """A dict whose members are attributes too, at every depth."""

    def __getattr__(self, name: str) -> Any:
        try:
            return _with_attributes(self[name])
        except KeyError:
            raise AttributeError(f"no member `{name}`") from None


def _with_attributes(value: Any) -> Any:
    if isinstance(value, dict) and not isinstance(value, Record):
        return Record(value)
    if isinstance(value, list):
        return [_with_attributes(item) for item in value]
    return value
