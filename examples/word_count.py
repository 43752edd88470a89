"""Words counted with MapReduce, every chunk of pairs on disk: as for a text much larger than the memory."""

import tempfile
from pathlib import Path

import penstock as pk

TEXT = "the pipe carries the water from the reservoir to the turbine\n"

with tempfile.TemporaryDirectory() as folder:
    for number in range(4):
        (Path(folder) / f"{number}.txt").write_text(TEXT * 500)

    with pk.MapReduce(memory_limit="8MB", force_out_of_core=True) as mr:

        @pk.mapreduce.chunk
        def words(piece):  # bytes of whole lines -> keys and values, as columns
            return pk.mapreduce.words(piece), None

        pairs = mr.map_pieces(folder, words)
        counts = pairs.collate().reduce("count")  # all values of a word meet, and are counted
        print(f"{pairs.total:,} words, {counts.total} different ones; the most frequent:")
        for word, count in list(counts.sort_values(descending=True))[:3]:
            print(f"  {word}: {count:,}")
        print(f"{mr.stats()['spill_written']:,} bytes went to disk on the way")

        short = pk.jobs.word_count(mr, folder)  # the same, as it comes with Penstock
        print("the built-in job agrees:", dict(short) == dict(counts))
