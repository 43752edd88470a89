"""4. Sorting: radix in core, sample sort out of core. Serves ingest and MapReduce."""
