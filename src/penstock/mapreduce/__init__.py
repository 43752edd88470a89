"""5. How key-value work runs: chunks of columns under one budget, mapped, shuffled, grouped and reduced."""
