"""Answers the questions of the guide in DuckDB over an export, and compares with the answers of the store's views."""
import json
import math
import os
import sys

import duckdb

folder, page = sys.argv[1:]
blocks = [block.split("```")[0] for block in open(page).read().split("```sql\n")[1:]]
questions = [block for block in blocks if block.startswith("-- DuckDB\n")]
stored = json.load(open(f"{folder}/answers.json"))
assert len(questions) == len(stored) == 5, f"{len(questions)} in DuckDB, {len(stored)} in the store"


def value(cell):
    """A cell as a number if it is one, otherwise as text."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return cell


def equal(mine, theirs):
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return mine == theirs


os.chdir(f"{folder}/warehouse")
duckdb.sql("SET TimeZone = 'UTC'")
answers = []
for number, (question, rows) in enumerate(zip(questions, stored), 1):
    mine = [[value(cell) for cell in row] for row in duckdb.sql(question).fetchall()]
    theirs = [[value(cell) for cell in row] for row in rows]
    same = len(mine) == len(theirs) and all(
        len(own) == len(other) and all(map(equal, own, other)) for own, other in zip(mine, theirs)
    )
    assert same, f"question {number}: {mine[:8]} in DuckDB, {theirs[:8]} in the store"
    answers.append(mine)

# The data must be such that a wrong query would differ.
unreached, frequency, churn, variants, delay = answers
assert len(unreached) > 10, unreached
assert len(frequency) > 2 and sum(row[2] for row in frequency) > 10, frequency
assert len({row[3] for row in churn}) > 2 and "not known" in [row[0] for row in churn], churn
assert len(variants) == 12 and all(0 < row[5] < row[4] < row[6] for row in variants), variants
assert len(delay) == 4 and delay[0][4] == 0 and delay[3][4] < 0, delay
print("the same")
