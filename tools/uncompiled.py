"""Kernels as the Python they are written in: ``python tools/uncompiled.py``, further arguments go to pytest.

Compiled code neither checks an index nor says that a number overflows; as Python, both are errors.  These tests reach
kernels of labels, intervals, tables, tiles and regions, none of clusters, and are quick without the compiler.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "tests/labels/test_kernels.py",
    "tests/intervals/test_cut.py::test_optimal_for_numbers_of_any_length",
    "tests/intervals/test_cut.py::test_max_takes_the_most_intervals_among_the_best_cuts",
    "tests/tables/test_insertion.py::test_every_row_goes_where_trying_all_groups_sends_it",
    "tests/tables/test_insertion.py::test_what_stays_and_what_is_set_aside_is_eligible_and_every_row_comes_back",
    "tests/tables/test_near_limits.py::test_of_one_column_a_class_publishes_the_largest_part_within_both_shares",
    "tests/tables/test_near_limits.py::test_they_are_those_of_the_definition_in_its_order",
    "tests/tables/test_quotas.py::test_groups_dealt_are_close_disjoint_and_of_the_sizes_asked",
    "tests/tiles/test_split.py::test_tiles_cover_the_plane_and_hold_k",
    "tests/tiles/test_split.py::test_best_cuts_is_the_optimum_over_guillotine_partitions",
    "tests/tiles/test_split.py::test_a_pinwheel_beats_every_guillotine_partition",
    "tests/regions/test_tree.py::test_on_a_tree_one_pass_gives_as_many_regions_as_can_be_and_the_lemmas_bound_holds",
    "tests/regions/test_tree.py::test_hanging_weights_by_taking_each_vertex_out",
    "tests/regions/test_tree.py::test_exchanges_end_within_one_of_the_least_degree",
)


def main() -> int:
    """Run them."""
    command = [sys.executable, "-m", "pytest", *TESTS, *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
