"""The executor on GPUs: the same programs, pages in frames on the device."""
