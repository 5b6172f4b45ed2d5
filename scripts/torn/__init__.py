"""What `scripts/crash.py` is made of. Here, before numpy is imported: a process with threads cannot be forked."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
