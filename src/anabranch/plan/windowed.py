"""How windows are written: ``window(…)``, ``session`` or ``rows``, by which columns, and what of each."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from anabranch.expressions.aggregates import Aggregate
from anabranch.expressions.expression import Expression
from anabranch.expressions.tree import plain_column
from anabranch.kernels.aggregate.window_times import WindowTimes
from anabranch.kernels.rows import RowWindows
from anabranch.kernels.session import Sessions
from anabranch.model.other_names import OF_WINDOWS, no_attribute
from anabranch.model.spelling import did_you_mean
from anabranch.plan.line import users_line
from anabranch.plan.node import Node, PlanError
from anabranch.plan.rows import Rows
from anabranch.plan.session import Session
from anabranch.plan.window import Window

if TYPE_CHECKING:
    from anabranch.plan.stream import Stream


@dataclass(frozen=True, slots=True, repr=False)
class Windowed:
    """Windows over a stream, of which nothing is said yet."""

    node: Node
    windows: WindowTimes | Sessions | RowWindows
    start: str | None = None
    end: str | None = None
    columns: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(no_attribute("windows of a stream", name, dir(Windowed), OF_WINDOWS))

    def __repr__(self) -> str:
        by = f" by {', '.join(self.columns)}" if self.columns else ""
        return f"<Windows{by} over {self.node.words()}; .agg(…) makes a stream of them>"

    def group_by(self, *columns: str | Expression) -> "Windowed":
        """By which columns the events of a window are told apart; null is a group."""
        with users_line().named():
            return replace(self, columns=(*self.columns, *map(_column, columns)))

    def agg(self, *aggregates: Aggregate, early: bool = False, **named: Aggregate) -> "Stream":
        """What is said of each window and group: aggregates, by their names or under those that are given.

        ``early``: at once, with corrections until the window closes; else when it closes. Only windows of
        time are said early.
        """
        from anabranch.plan.stream import Stream

        with users_line().named():
            made = [(_checked(one).called, one) for one in aggregates]
            made += [(name, _checked(one, name)) for name, one in named.items()]
            made = [(name, replace(one, name=None)) for name, one in made]
            _check_early(self.windows, early=early)
        given: dict[str, Any] = {
            "inputs": (self.node,),
            "columns": self.columns,
            "aggregates": tuple(made),
            "start": self.start,
            "end": self.end,
        }
        match self.windows:
            case Sessions():
                return Stream(Session(sessions=self.windows, **given))
            case RowWindows():
                return Stream(Rows(windows=self.windows, **given))
            case WindowTimes():
                return Stream(Window(times=self.windows, early=early, **given))


def _check_early(windows: WindowTimes | Sessions | RowWindows, *, early: bool) -> None:
    if early and not isinstance(windows, WindowTimes):
        error = PlanError(
            "which rows a session or a window of rows has is known once the stable has passed them, "
            "so none is said early"
        )
        error.add_note("Leave early out; windows of time, .window(…), can be said early.")
        raise error


def _column(given: Any) -> str:
    name = plain_column(given.tree) if isinstance(given, Expression) and given.name is None else given
    if not isinstance(name, str):
        error = PlanError(f"a group is by columns, {given!r} is none")
        error.add_note("Make it one before the window: .with_columns(name=…).")
        raise error
    return name


def _checked(given: Any, name: str | None = None) -> Aggregate:
    if isinstance(given, Aggregate):
        return given
    what = repr(given) if name is None else f"{name}={given!r}"
    meant = did_you_mean(name, ("early",)) if isinstance(given, bool) else ""
    error = PlanError(f"a window says aggregates, {what} is none{meant}")
    error.add_note("Write for example col('price').sum(), or anabranch.count().")
    raise error
