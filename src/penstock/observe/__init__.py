"""What a run shows of itself: progress, statistics, and a timeline."""
