"""Text files in: tokens, lines, and the formats made of them."""
