"""What a run shows of itself: progress and statistics."""
