"""Smoke tests run the examples with the programs of a build, in a copy of the tree's definitions."""
from programs import database, program, run, solver, workplace  # noqa: F401 # pylint: disable=unused-import
from ranks import no_rank_is_left  # noqa: F401 # pylint: disable=unused-import
