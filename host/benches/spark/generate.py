"""Makes the input of the comparison: files of equal size, one per micro-batch, the same for every system.

    generate.py FOLDER FILES ROWS KEYS

Columns: key STRING (of KEYS different ones, uniform), n BIGINT (always 1). The times of the files rise with their
numbers, since both systems read a folder in that order.
"""

import os
import sys

import numpy
import pyarrow
import pyarrow.parquet

SEED = 7
FIRST_FILE_TIME = 1_700_000_000


def main(folder: str, files: int, rows: int, keys: int) -> None:
    os.makedirs(folder)
    random = numpy.random.Generator(numpy.random.PCG64(SEED))
    for number in range(files):
        drawn = random.integers(0, keys, rows)
        table = pyarrow.table({
            "key": pyarrow.array([f"key-{key:08}" for key in drawn], pyarrow.string()),
            "n": pyarrow.array(numpy.ones(rows, dtype=numpy.int64)),
        })
        path = os.path.join(folder, f"{number:05}.parquet")
        pyarrow.parquet.write_table(table, path)
        os.utime(path, (FIRST_FILE_TIME + number, FIRST_FILE_TIME + number))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
