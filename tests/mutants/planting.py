# SPDX-License-Identifier: Apache-2.0
"""Making a rule not hold: how a mutant takes the place of what it is a wrong version of."""

import sys
from collections.abc import Callable
from typing import Any

import attrs

Wrong = Callable[..., Any]


@attrs.frozen
class Mutant:
    """A wrong version of raftlog with a plausible bug, which a log like this has had.

    Attributes:
        name: its name, which starts with the number of the bug in its catalogue: K for bugs of Kafka, R for other raft
            systems, W for weak spots of Kafka's own guards, S for ways in which disks fail, M for memory errors in the
            compiled kernel.
        rule: the rule that the mutant breaks.
        source: the source of the bug: an issue, a pull request, a report or a test.
        plant: puts the wrong version in place, for the rest of the process.
        killers: tests of the default tier, the first of which must fail then, and soon; the others run if it does not.
        needs_compiler: whether planting it compiles a kernel.
    """

    name: str
    rule: str
    source: str
    plant: Callable[[], None]
    killers: tuple[str, ...]
    needs_compiler: bool = False


def swap(owner: Any, name: str, make_wrong: Callable[[Any], Wrong]) -> None:
    """Replace a method of a class, or a function of a module and of all modules that have imported it.

    Args:
        owner: the class or module.
        name: of the method or function.
        make_wrong: is given the right version, and returns the wrong one.
    """
    right = vars(owner)[name]
    wrong = make_wrong(right.__func__ if isinstance(right, classmethod) else right)
    setattr(owner, name, classmethod(wrong) if isinstance(right, classmethod) else wrong)
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith(("raftlog.", "tests.")) and vars(module).get(name) is right:
            setattr(module, name, wrong)


def _check_target(owner: Any, name: str) -> None:
    """Check at the making of a mutant that its target is there: the catalogue fails as soon as it is imported."""
    if name not in vars(owner):
        raise LookupError(f"{owner.__name__} has no {name} of its own: it was moved or renamed")


def swapped(owner: Any, name: str, make_wrong: Callable[[Any], Wrong]) -> Callable[[], None]:
    """Return what does ``swap`` when it is called.

    Raises:
        LookupError: the class or module has no such method or function of its own.
    """
    _check_target(owner, name)
    return lambda: swap(owner, name, make_wrong)


def instead(owner: Any, name: str, wrong: Wrong) -> Callable[[], None]:
    """Return what replaces a method or function by one that does not need the right one."""
    return swapped(owner, name, lambda _: wrong)


def missing(owner: Any, name: str) -> Callable[[], None]:
    """Return what makes a method or function do nothing."""
    return instead(owner, name, lambda *_, **__: None)


def all_of(*plants: Callable[[], None]) -> Callable[[], None]:
    """Return what plants several parts of one bug; whether all their targets are there has been checked already."""

    def plant() -> None:
        for each in plants:
            each()

    return plant


def instead_of_property(owner: type, name: str, wrong: Wrong) -> Callable[[], None]:
    """Return what replaces a property."""
    if not hasattr(owner, name):
        raise LookupError(f"{owner.__name__} has no {name}: it was renamed")
    return lambda: setattr(owner, name, property(wrong))


def forgiving(owner: Any, name: str, error: type[Exception], result: Wrong) -> Callable[[], None]:
    """Return a function that makes a check accept what it refuses.

    Args:
        owner: as for ``swap``.
        name: likewise.
        error: the refusal.
        result: gets the arguments, and returns the result in place of the refusal.
    """

    def make_wrong(right: Wrong) -> Wrong:
        def wrong(*arguments: Any, **keywords: Any) -> Any:
            try:
                return right(*arguments, **keywords)
            except error:
                return result(*arguments, **keywords)

        return wrong

    return swapped(owner, name, make_wrong)
