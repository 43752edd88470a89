"""3. Who else is there: one communicator, a single process or many."""
