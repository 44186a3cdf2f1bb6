"""Recomputes a report from the exported tables, with pandas and with DuckDB, and compares every number."""
import glob
import json
import sys

import duckdb
import pandas

folder = sys.argv[1]
report = json.load(open(f"{folder}/report.json"))


def table(name):
    pattern = f"{folder}/warehouse/{name}*.parquet" if name == "devices" else f"{folder}/warehouse/{name}/*/*.parquet"
    files = sorted(glob.glob(pattern))
    assert files, f"no files of {name}"
    return pandas.concat([pandas.read_parquet(file) for file in files])


def same(name, mine, theirs):
    assert mine == theirs, f"{name}: {mine} from the export, {theirs} in the report"


runs, deliveries, events = table("runs"), table("deliveries"), table("events")
devices, timeline = table("devices"), table("timeline")
counts = report["counts"]
by_state = deliveries.state.value_counts()
for state in ["accepted", "rejected", "unknown", "suppressed"]:
    same(state, int(by_state.get(state, 0)), counts[state])
    same(f"{state} of the run", int(runs[state].iloc[0]), counts[state])
    same(f"{state} of the timeline", int(timeline[state].sum()), counts[state])
same("audience", len(deliveries), counts["audience"])
same("devices", len(devices), len(deliveries))
for variant in report["by_variant"]:
    rows = deliveries[deliveries.variant == variant["name"]]
    same(f"variant {variant['name']}", int((rows.state == "accepted").sum()), variant["counts"]["accepted"])
feedback = report["feedback"]
accepted = deliveries[deliveries.state == "accepted"]
opened = events[(events.type == "opened") & (events.run == report["run"]) & events.device.isin(accepted.device)]
same("opened", opened.device.nunique(), feedback["opened"]["devices"])
by_variant = opened.merge(deliveries[["device", "variant"]], on="device").variant.value_counts()
for variant in feedback["variants"]:
    same(f"opened by {variant['name']}", int(by_variant.get(variant["name"], 0)), variant["share"]["devices"])
by_locale = accepted.text_locale.value_counts()
opens_by_locale = opened.merge(accepted[["device", "text_locale"]], on="device").text_locale.value_counts()
for locale in feedback.get("locales") or []:
    if locale["name"] == "other":
        continue
    same(f"accepted in {locale['name']}", int(by_locale[locale["name"]]), locale["share"]["of"])
    same(f"opened in {locale['name']}", int(opens_by_locale.get(locale["name"], 0)), locale["share"]["devices"])
assert set(deliveries.token if "token" in deliveries else []) == set()
assert devices.token.isna().all(), "a token that nobody asked for"

held_out = deliveries[deliveries.is_held_out]
same("held out", len(held_out), int(((deliveries.state == "suppressed") & (deliveries.reason == "holdout")).sum()))
played = events[(events.type == "converted") & (events.name == "played")]
assert str(played.value.iloc[0]) == "2.500000", played.value.iloc[0]

# DuckDB reads the partitions by name, and agrees.
query = f"""
    SELECT d.state, count(*), count(e.device) FILTER (WHERE e.type = 'opened')
    FROM read_parquet('{folder}/warehouse/deliveries/*/*.parquet', hive_partitioning = true) AS d
    LEFT JOIN '{folder}/warehouse/events/*/*.parquet' AS e ON e.run = d.run AND e.device = d.device
    GROUP BY 1
"""
found = {state: (count, opens) for state, count, opens in duckdb.sql(query).fetchall()}
same("accepted in DuckDB", found["accepted"][0], counts["accepted"])
same("opened in DuckDB", found["accepted"][1], feedback["opened"]["devices"])
moment = duckdb.sql(f"SELECT typeof(settled_at) FROM '{folder}/warehouse/deliveries/*/*.parquet' LIMIT 1").fetchall()[0][0]
same("type of a time", moment, "TIMESTAMP WITH TIME ZONE")

# The other formats hold the same rows.
for name, frame in [("runs", runs), ("deliveries", deliveries), ("events", events), ("timeline", timeline)]:
    texts = pandas.concat([pandas.read_csv(file) for file in glob.glob(f"{folder}/csv/{name}/*/*.csv")])
    lines = [json.loads(line) for file in glob.glob(f"{folder}/jsonl/{name}/*/*.jsonl") for line in open(file)]
    same(f"rows of {name} in CSV", len(texts), len(frame))
    same(f"rows of {name} in JSON Lines", len(lines), len(frame))
    same(f"columns of {name}", list(texts.columns), list(frame.columns))
    same(f"keys of {name}", list(lines[0]), list(frame.columns))
print("the same")
