"""``nimbus warm ADDRESS``: fetch a dataset of a store to this machine before it is used."""

from __future__ import annotations

import time

from nimbus.runner.commands.options import AsJson, DatasetFolder
from nimbus.runner.system.output import write_json, write_out


def command(folder: DatasetFolder, *, as_json: AsJson = False) -> int:
    """Fetch the missing files, and print their size."""
    from nimbus.datagen.datasets.mirror import warm
    from nimbus.datagen.errors import InputError
    from nimbus.datagen.store.remote.traffic import read_traffic
    from nimbus.datagen.store.remote.working_copy import TRAFFIC, is_remote
    from nimbus.runner.monitor.output_summary import report_pending

    if not is_remote(folder):
        raise InputError("a folder is here already", where=str(folder), instead="give the address of a dataset")
    before, begin = read_traffic(folder), time.monotonic()
    count = warm(folder, report_pending)
    TRAFFIC.flush()
    now = read_traffic(folder)
    fetched, size = now.misses - before.misses, now.bytes_fetched - before.bytes_fetched
    seconds = time.monotonic() - begin
    if as_json:
        write_json({"files": count, "fetched": fetched, "bytes_fetched": size, "seconds": round(seconds, 1)})
    else:
        write_out(f"{count} files are here; {fetched} fetched, {size / 1e6:,.0f} MB in {seconds:.1f} s\n")
    return 0
