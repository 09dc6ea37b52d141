# SPDX-License-Identifier: MIT
"""etwatch.span: marks a stretch of work, so that a watcher can say why it was slow."""
import functools
from typing import Any, Callable, Dict, Optional, Protocol, TypeVar, Union, cast

from . import _marks

_Function = TypeVar("_Function", bound=Callable[..., Any])

_state: Dict[str, Optional[_marks.Marks]] = {"marks": _marks.connect()}
_NO_SPAN = _marks.NoSpan()


class _SpanFunction(Protocol):
    def __call__(self, name: str, session: Optional[str] = None) -> Union[_marks.Span, _marks.NoSpan]: ...
    def wrap(self, name: str, session: Optional[str] = None) -> Callable[[_Function], _Function]: ...


def wrap(name: str, session: Optional[str] = None) -> Callable[[_Function], _Function]:
    """The same as `span` for each call of a function."""
    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with span(name, session):
                return function(*args, **kwargs)
        return cast(_Function, call)
    return decorate


def _with_wrap(function: Callable[..., Any]) -> _SpanFunction:
    setattr(function, "wrap", wrap)
    return cast(_SpanFunction, function)


@_with_wrap
def span(name: str, session: Optional[str] = None) -> Union[_marks.Span, _marks.NoSpan]:
    """Marks what the block does: `with etwatch.span("tokenize"):`; as a decorator: `@etwatch.span.wrap("tokenize")`.

    `session` says what it is done with (a model, a route); spans are grouped by both. The block is reported by
    `etwatch run --spans -- CMD`; without a watcher nothing is written. A block that raises counts as failed.

    Example:

        with etwatch.span("tokenize"):
            words = "what the block does".split()
    """
    marks = _state["marks"]
    return _NO_SPAN if marks is None else _marks.Span(marks, name, session)
