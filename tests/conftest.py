"""What every test starts from: no settings of the caller's, and hypothesis that waits for the compiler."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
    del os.environ[name]

# The first example of a property may compile a kernel, which is no sign of a slow test.
settings.register_profile("penstock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("penstock")
