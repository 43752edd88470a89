"""NetworkX's modules of this name, as far as Penstock has their functions."""
