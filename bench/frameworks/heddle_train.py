"""Heddle with its defaults."""

import json
import os
import sys
import time

begin, data, seed = time.perf_counter(), os.environ["HEDDLE_BESIDE"], int(sys.argv[1])
# user code
import heddle

run = heddle.train(data, seed=seed)
# end
sent = sum(run.metrics["bytes"][door] for door in ("halo", "reduce", "control"))
print(json.dumps({"test": run.metrics["test"], "bytes": sent, "seconds": time.perf_counter() - begin}))
