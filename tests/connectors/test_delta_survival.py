"""A table that others see to: what they may do, and what a query does not go on from."""

import pytest
from test_delta import HIGH, LOW, rows_of, shown, table_of, writer

from anabranch import Adjust, Insert
from anabranch.connectors.tables.table_error import TableError


def test_a_table_that_someone_else_compacts_and_vacuums_is_gone_on_with(tmp_path):
    made = writer(tmp_path)
    for number in range(3):
        made.write(rows_of([Insert(LOW, 10 * number, 10 * number + 5)]), number)
    table_of(tmp_path).optimize.compact()
    table_of(tmp_path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    made.write(rows_of([Adjust(LOW, 10, 15, 12), Insert(HIGH, 40, 45)]), 3)
    writer(tmp_path).write(rows_of([Adjust(LOW, 20, 25, 22)]), 4)
    assert sorted((start, end) for _, start, end in shown(tmp_path, "history")) == [
        (0, 5),
        (10, 12),
        (20, 22),
        (40, 45),
    ]


@pytest.mark.parametrize("again", [True, False], ids=["a new run", "the same run"])
def test_a_table_that_someone_else_set_back_is_named_and_goes_on_when_that_is_undone(tmp_path, again):
    made = writer(tmp_path)
    for number in range(3):
        made.write(rows_of([Insert(LOW, 10 * number, 10 * number + 5)]), number)
    table_of(tmp_path).restore(1)
    if again:
        made = writer(tmp_path)
    with pytest.raises(TableError, match="was restored to version 1, and had more rows since") as caught:
        made.write(rows_of([Insert(HIGH, 40, 45)]), 3)
    assert "Restore it to version 3" in caught.value.__notes__[0]
    table_of(tmp_path).restore(3)
    made.write(rows_of([Insert(HIGH, 40, 45)]), 3)
    assert sorted(start for _, start, _ in shown(tmp_path, "history")) == [0, 10, 20, 40]


def test_a_table_that_was_set_back_to_what_it_is_is_gone_on_with(tmp_path):
    made = writer(tmp_path)
    for number in range(2):
        made.write(rows_of([Insert(LOW, 10 * number, 10 * number + 5)]), number)
    table_of(tmp_path).optimize.compact()
    table_of(tmp_path).restore(2)
    made.write(rows_of([Insert(HIGH, 40, 45)]), 2)
    assert table_of(tmp_path).to_pyarrow_table().num_rows == 3
