"""Reads Parquet files with pyarrow, DuckDB and pandas, and prints one line of JSON for each file.

Usage: read_parquet.py FILE...   or, for many files, a path in each line of the standard input.

Values are printed as text, so that no reader of JSON changes them: integers and timestamps (milliseconds) in decimal,
doubles as the hex digits of their bits, texts and bytes as hex digits, decimals as a count of millionths. `problems`
lists contradictions between pages, footer, statistics and values.
"""

import decimal
import json
import math
import struct
import sys

import duckdb
import pandas
import pyarrow as pa
import pyarrow.parquet as pq

decimal.getcontext().prec = 60


def text(value):
    if value is None or value is pandas.NA or value is pandas.NaT:
        return None
    if isinstance(value, (bool,)) or type(value).__name__ in ("bool_", "bool"):
        return "true" if value else "false"
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value).hex()
    if isinstance(value, decimal.Decimal):
        return str(int(value.scaleb(6)))
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, pandas.Timestamp):
        return str(value.as_unit("ms").asm8.astype("int64"))
    return str(int(value))


def plain(column):
    """Returns the values of a pyarrow column, with timestamps as integers of any size."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.to_pylist()


def with_pyarrow(path):
    table = pq.read_table(path)
    return {
        "names": table.schema.names,
        "types": [str(field.type) for field in table.schema],
        "nullable": [field.nullable for field in table.schema],
        "columns": [[text(value) for value in plain(column)] for column in table.columns],
    }


def with_duckdb(path):
    connection = duckdb.connect()
    source = "read_parquet('" + path.replace("'", "''") + "')"
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    selected = []
    for name, kind, *_ in described:
        quoted = '"' + name.replace('"', '""') + '"'
        selected.append(f"epoch_ms({quoted})" if kind.startswith("TIMESTAMP") else quoted)
    rows = connection.execute(f"SELECT {', '.join(selected)} FROM {source}").fetchall()
    problems = []
    for index, (name, kind, *_) in enumerate(described):
        if kind != "BIGINT":
            continue
        values = [row[index] for row in rows if row[index] is not None]
        for pivot in {values[0], max(values), min(values)} if values else []:
            for sign, expected in ((">=", sum(v >= pivot for v in values)), ("<", sum(v < pivot for v in values))):
                found = connection.execute(
                    f"SELECT count(*) FROM {source} WHERE {selected[index]} {sign} ({pivot})::BIGINT").fetchone()[0]
                if found != expected:
                    problems.append(f"{name} {sign} {pivot}: DuckDB finds {found} rows instead of {expected}")
    return {
        "names": [row[0] for row in described],
        "types": [row[1] for row in described],
        "nullable": [row[2] == "YES" for row in described],
        "columns": [[text(row[index]) for row in rows] for index in range(len(described))],
    }, problems


def with_pandas(path):
    frame = pandas.read_parquet(path, dtype_backend="numpy_nullable")
    return {
        "names": list(frame.columns),
        "types": [str(kind) for kind in frame.dtypes],
        "nullable": [True for _ in frame.columns],
        "columns": [[text(value) for value in frame.iloc[:, index].tolist()] for index in range(frame.shape[1])],
    }


class Compact:
    """Reads a structure of Thrift's compact protocol as a dictionary from field numbers to values."""

    def __init__(self, data, position):
        self.data, self.position = data, position

    def byte(self):
        self.position += 1
        return self.data[self.position - 1]

    def varint(self):
        result = shift = 0
        while True:
            byte = self.byte()
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result

    def zigzag(self):
        number = self.varint()
        return number >> 1 ^ -(number & 1)

    def struct(self):
        fields, last = {}, 0
        while True:
            head = self.byte()
            if head == 0:
                return fields
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            kind = head & 15
            if kind in (1, 2):
                fields[last] = kind == 1
            elif kind in (4, 5, 6):
                fields[last] = self.zigzag()
            elif kind == 12:
                fields[last] = self.struct()
            else:
                raise ValueError(f"a page header has a field of type {kind}")


def chunk_pages(data, chunk, problems):
    """Returns the pages of a column chunk, and checks that they fill it."""
    start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    position, rows, uncompressed, pages = start, 0, 0, []
    while position < start + chunk.total_compressed_size:
        reader = Compact(data, position)
        header = reader.struct()
        details = header[7] if header[1] == 2 else header[5]
        if header[1] == 0 and not pages and position != chunk.data_page_offset:
            problems.append(f"{chunk.path_in_schema}: wrong data page offset")
        if header[1] == 0:
            rows += details[1]
        pages.append({"type": header[1], "encoding": details[2], "rows": details[1], "size": header[2]})
        uncompressed += reader.position - position + header[2]
        position = reader.position + header[3]
    if position != start + chunk.total_compressed_size:
        problems.append(f"{chunk.path_in_schema}: the pages end at {position}")
    if uncompressed != chunk.total_uncompressed_size:
        problems.append(f"{chunk.path_in_schema}: the pages have {uncompressed} bytes uncompressed")
    if rows != chunk.num_values:
        problems.append(f"{chunk.path_in_schema}: the pages have {rows} rows")
    return pages


def unscaled(value):
    return int(value.scaleb(6)) if isinstance(value, decimal.Decimal) else value


def raw(value):
    return value.encode() if isinstance(value, str) else unscaled(value)


def check_statistics(chunk, values, problems):
    """Returns whether the chunk has a minimum and a maximum."""
    statistics = chunk.statistics
    name = chunk.path_in_schema
    if statistics is None:
        problems.append(f"{name}: no statistics")
        return False
    present = [raw(value) for value in values if value is not None]
    if statistics.null_count != len(values) - len(present):
        problems.append(f"{name}: wrong null count {statistics.null_count}")
    ordered = [value for value in present if not (isinstance(value, float) and math.isnan(value))]
    is_short = all(len(value) <= 64 for value in ordered) if ordered and isinstance(ordered[0], bytes) else True
    if statistics.has_min_max != bool(ordered) and is_short:
        problems.append(f"{name}: has_min_max is {statistics.has_min_max} of {len(ordered)} values")
    if statistics.has_min_max and ordered:
        found = (raw(statistics.min_raw), raw(statistics.max_raw))
        if found != (min(ordered), max(ordered)):
            problems.append(f"{name}: range {found} instead of {(min(ordered), max(ordered))}")
    return statistics.has_min_max


def structure(path):
    with open(path, "rb") as file:
        data = file.read()
    reader = pq.ParquetFile(path)
    metadata, problems = reader.metadata, []
    chunks = []
    for group in range(metadata.num_row_groups):
        table = reader.read_row_group(group)
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            has_range = check_statistics(chunk, plain(table.column(index)), problems)
            chunks.append({
                "group": group, "column": index, "codec": chunk.compression, "encodings": list(chunk.encodings),
                "hasRange": has_range, "pages": chunk_pages(data, chunk, problems),
            })
    return {
        "rows": metadata.num_rows, "createdBy": metadata.created_by, "version": metadata.format_version,
        "metadata": {k.decode(): v.decode() for k, v in (metadata.metadata or {}).items()},
        "groups": [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)],
        "chunks": chunks,
    }, problems


def report(path):
    result, problems = structure(path)
    result["pyarrow"] = with_pyarrow(path)
    # DuckDB has no timestamps beyond the microseconds of 64 bits. Files with such ones say so in their name.
    if not path.endswith(".extreme.parquet"):
        result["duckdb"], found = with_duckdb(path)
        problems += found
        result["pandas"] = with_pandas(path)
    result["problems"] = problems
    return result


paths = sys.argv[1:] or (line.rstrip("\n") for line in sys.stdin)
for path in paths:
    try:
        print(json.dumps(report(path)), flush=True)
    except Exception as error:
        print(json.dumps({"failure": f"{type(error).__name__}: {error}"}), flush=True)
