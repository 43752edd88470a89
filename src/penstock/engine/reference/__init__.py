"""The executor `reference`: plain Python and NumPy, slow and obvious. What the other executors do is what it does.

Functions are called as they stand, with NumPy scalars: fields, messages and totals in their declared types, parameters
as bool, int64 and float64. A result is cast to the declared type as C would do it; what happens in between follows
NumPy's rules, so a function that relies on the width of an intermediate value must cast it.
"""
